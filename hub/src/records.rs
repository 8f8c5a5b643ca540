//! Runs the engine: watches in, writes out.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tenant_records_runtime::{Check, Leadership, Shutdown};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::config_watches::ConfigWatches;
use crate::engine::{Effects, Engine, Read, Written};
use crate::fold::Settings;
use crate::index::Event;
use crate::index::rows::ClusterFacts;
use crate::metrics::{Metrics, ResultLabel};
use crate::watches;
use crate::writer::Writer;

/// Events taken in at once before the engine folds.
const BATCH: usize = 4096;
/// Records written at the same time.
const FLUSHES: usize = 32;
/// ManagedClusters read at the same time.
const READS: usize = 16;
/// How long writes under way may take at the end.
const FINISH: std::time::Duration = std::time::Duration::from_secs(5);
/// How long to wait before reading again what couldn't be read.
const READ_AGAIN: std::time::Duration = std::time::Duration::from_secs(2);

/// Keeps records right until shutdown is requested or a watch ends.
pub async fn run(
    client: Client,
    leadership: Leadership,
    settings: Settings,
    metrics: Metrics,
    synced: Check,
    shutdown: &Shutdown,
) -> anyhow::Result<()> {
    let (event_sender, mut events) = mpsc::channel(BATCH);
    let (done_sender, mut done) = mpsc::unbounded_channel();
    let mut watches = watches::start(&client, &event_sender);
    let mut config_watches = ConfigWatches::new(client.clone(), event_sender);
    let mut engine = Engine::new(settings);
    let outside = Outside {
        writer: Writer::new(client, leadership.clone()),
        slots: Arc::new(Semaphore::new(FLUSHES)),
        readers: Arc::new(Semaphore::new(READS)),
        done: done_sender,
        metrics: metrics.clone(),
    };
    let mut tasks = JoinSet::new();
    let mut batch = Vec::with_capacity(BATCH);
    let (mut leading, mut records_changed) = (false, false);
    loop {
        // While every writer is busy there is nothing to fold for; the end of a write goes on.
        let next_due = engine.next_due().filter(|_| outside.room() > 0);
        tokio::select! {
            count = events.recv_many(&mut batch, BATCH) => anyhow::ensure!(count > 0, "all watches ended"),
            Some(done) = done.recv() => take_in(&mut engine, done),
            () = sleep_until(next_due.unwrap_or_else(Instant::now)), if next_due.is_some() => {}
            () = leadership.acquired(), if !leading => {
                leading = true;
                engine.lead(Instant::now());
            }
            Some(ended) = watches.join_next() => { ended?; anyhow::bail!("a watch ended"); }
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => ended?,
            () = shutdown.requested() => break,
        }
        records_changed |= batch.iter().any(|event| matches!(event, Event::Record(_)));
        for event in batch.drain(..) {
            engine.handle(event, Instant::now());
        }
        if engine.index().is_synced() {
            synced.pass();
            if std::mem::take(&mut records_changed) {
                metrics.records.set(engine.index().records.len() as i64);
                engine.configs_watched(config_watches.set(engine.wanted_configs()));
            }
        }
        let started = Instant::now();
        let effects = engine.run(started, Timestamp::now(), outside.room());
        if !effects.flushes.is_empty() {
            metrics.fold_seconds.observe(started.elapsed().as_secs_f64());
        }
        outside.start(effects, &mut tasks);
    }
    let finish = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(FINISH, finish).await.is_err() {
        tracing::warn!("stopping amid writes; the next leader compares and repairs");
    }
    Ok(())
}

/// What came back from outside.
enum Done {
    Written(Written),
    Read(Read, Option<ClusterFacts>),
}

fn take_in(engine: &mut Engine, done: Done) {
    match done {
        Done::Written(written) => engine.written(written, Instant::now()),
        Done::Read(read, facts) => engine.read(&read, facts, Instant::now()),
    }
}

/// Starts what the engine wants done outside; what comes of it arrives as [`Done`].
struct Outside {
    writer: Writer,
    slots: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    done: mpsc::UnboundedSender<Done>,
    metrics: Metrics,
}

impl Outside {
    /// How many more records can be written at once.
    fn room(&self) -> usize {
        self.slots.available_permits()
    }

    fn start(&self, effects: Effects, tasks: &mut JoinSet<()>) {
        for flush in effects.flushes {
            let (writer, done, metrics) = (self.writer.clone(), self.done.clone(), self.metrics.clone());
            // The engine gives out no more than there is room for.
            let slot = self.slots.clone().try_acquire_owned();
            tasks.spawn(async move {
                metrics.flushing.inc();
                let started = Instant::now();
                let written = writer.flush(flush).await;
                metrics.flush_seconds.observe(started.elapsed().as_secs_f64());
                let result = if written.failed { "error" } else { "ok" };
                metrics.flushes.get_or_create(&ResultLabel { result }).inc();
                metrics.flushing.dec();
                drop(slot);
                // The receiver is gone only when the process ends.
                let _ = done.send(Done::Written(written));
            });
        }
        for read in effects.reads {
            let (writer, done, readers) = (self.writer.clone(), self.done.clone(), self.readers.clone());
            tasks.spawn(async move {
                let _reader = readers.acquire_owned().await;
                let facts = loop {
                    match writer.read(&read).await {
                        Ok(facts) => break facts,
                        Err(error) => tracing::warn!(cluster = %read.cluster, %error, "can't read a ManagedCluster"),
                    }
                    sleep(READ_AGAIN).await;
                };
                let _ = done.send(Done::Read(read, facts));
            });
        }
    }
}
