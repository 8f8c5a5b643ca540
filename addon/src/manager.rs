//! The manager of one add-on: watches, a queue, workers.
//!
//! ```text
//! watches ─▶ News ─▶ View ─▶ Key ─▶ Queue ─▶ workers ─▶ Reconciler ── while leading ─▶ hub
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use kube::Client;
use tenant_records_runtime::{Check, Leadership, Queue, QueueConfig, Shutdown};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::addon::AddOn;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::reconcile::{ReconcileError, Reconciler};
use crate::sources;
use crate::view::{Key, View};

/// How many things are brought to their wanted states at a time.
const WORKERS: usize = 8;

/// Does, for one add-on, what OCM's add-on contract asks of a manager on the hub.
pub struct Manager {
    client: Client,
    addon: Arc<dyn AddOn>,
    leadership: Leadership,
    metrics: Metrics,
    check: Option<Check>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager").field("addon", &self.addon.name()).finish_non_exhaustive()
    }
}

/// What the manager's tasks share.
struct Shared {
    addon: Arc<dyn AddOn>,
    client: Client,
    view: Arc<Mutex<View>>,
    queue: Queue<Key>,
    reconciler: Reconciler,
    leadership: Leadership,
    metrics: Metrics,
}

impl Manager {
    /// A manager that watches always and writes while it leads.
    pub fn new(client: Client, addon: Arc<impl AddOn>, leadership: Leadership, metrics: Metrics) -> Self {
        Self { client, addon, leadership, metrics, check: None }
    }

    /// Tells that check when everything has been listed.
    #[must_use]
    pub fn with_check(self, check: Check) -> Self {
        Self { check: Some(check), ..self }
    }

    /// Works until shutdown is requested; what is being written then is finished.
    ///
    /// Nothing stops it but that: what fails is tried again, ever later, and doesn't keep other things waiting.
    pub async fn run(self, shutdown: &Shutdown) {
        let view = Arc::new(Mutex::new(View::default()));
        let hub =
            Hub::new(self.client.clone(), self.leadership.clone(), self.metrics.clone(), self.addon.manager_name());
        let shared = Arc::new(Shared {
            reconciler: Reconciler::new(self.addon.clone(), hub, self.metrics.clone(), view.clone()),
            addon: self.addon,
            client: self.client,
            view,
            queue: Queue::new(QueueConfig::default()),
            leadership: self.leadership,
            metrics: self.metrics,
        });
        let (synced, is_synced) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(shared.clone(), synced, self.check, shutdown.clone()));
        for _ in 0..WORKERS {
            tasks.spawn(work(shared.clone(), is_synced.clone(), shutdown.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}

/// Keeps the view current.
async fn follow(shared: Arc<Shared>, synced: watch::Sender<bool>, check: Option<Check>, shutdown: Shutdown) {
    let mut news = sources::all(&shared.client, &*shared.addon);
    loop {
        let news = tokio::select! {
            news = news.next() => news,
            () = shutdown.requested() => None,
        };
        let Some(news) = news else { return };
        let (keys, complete) = {
            let mut view = shared.view.lock().unwrap_or_else(PoisonError::into_inner);
            (view.apply(news), view.is_synced())
        };
        for key in keys {
            shared.queue.add(key);
        }
        if complete && !*synced.borrow() {
            tracing::info!(addon = shared.addon.name(), "everything is listed");
            synced.send_replace(true);
            if let Some(check) = &check {
                check.pass();
            }
        }
    }
}

/// Brings one thing after the other to its wanted state. Before everything is listed something may seem to be missing, and
/// while another process leads it is that one's to do.
async fn work(shared: Arc<Shared>, mut synced: watch::Receiver<bool>, shutdown: Shutdown) {
    let ready = async {
        // It fails when the sender is gone, and then shutdown is requested.
        let _ = synced.wait_for(|synced| *synced).await;
    };
    tokio::select! {
        () = ready => {}
        () = shutdown.requested() => return,
    }
    loop {
        let next = async {
            shared.leadership.acquired().await;
            shared.queue.next().await
        };
        let key = tokio::select! {
            key = next => key,
            () = shutdown.requested() => return,
        };
        let result = shared.reconciler.reconcile(&key).await;
        settle(&shared, &key, result);
    }
}

fn settle(shared: &Shared, key: &Key, result: Result<(), ReconcileError>) {
    let subject = key.subject();
    match result {
        Ok(()) => {
            shared.queue.done(key);
            shared.metrics.reconciled(subject, "done");
        }
        Err(error) if error.is_outdated() => {
            let delay = shared.queue.retry(key);
            shared.metrics.reconciled(subject, "outdated");
            tracing::debug!(?key, %error, ?delay, "trying again on a newer state");
        }
        Err(error) => {
            let delay = shared.queue.retry(key);
            shared.metrics.reconciled(subject, "failed");
            tracing::warn!(?key, %error, ?delay, "trying again");
        }
    }
}
