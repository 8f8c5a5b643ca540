//! A work queue of keys.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::back_off::BackOff;

/// How a [`Queue`] behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueConfig {
    /// The delay before a key that failed comes again.
    pub back_off: BackOff,
}

/// Keys of work to do, in the order of their arrival, for one worker or many.
///
/// - A key that waits already isn't added twice.
/// - A key is never handed out while it is being worked on; one added meanwhile comes again afterwards.
/// - A key that fails again and again comes ever later, until it succeeds.
///
/// A worker takes a key with [`next`](Self::next) and gives it back with [`done`](Self::done) or
/// [`retry`](Self::retry); a key that isn't given back never comes again.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    back_off: BackOff,
}

/// A timer's place in the order of timers; the number tells timers of the same instant apart.
type Due = (Instant, u64);

#[derive(Debug)]
struct State<K> {
    /// What is known of each key that is ready, delayed, at work or has failed.
    keys: HashMap<K, Key>,
    ready: VecDeque<K>,
    timers: BTreeMap<Due, K>,
    timers_made: u64,
}

#[derive(Debug, Default)]
struct Key {
    phase: Phase,
    timer: Option<Due>,
    failures: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Ready,
    Working,
    /// At work, and added again meanwhile.
    WorkingAndAdded,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        let state = State { keys: HashMap::new(), ready: VecDeque::new(), timers: BTreeMap::new(), timers_made: 0 };
        Self { state: Mutex::new(state), changed: Notify::new(), back_off: config.back_off }
    }

    /// Adds a key to be worked on as soon as a worker is free, also when it is waiting for a later time.
    pub fn add(&self, key: K) {
        self.state().add(key);
        self.changed.notify_one();
    }

    /// Adds a key after a delay. Of several delays of a key the one that ends first counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        self.state().add_at(key, Instant::now() + delay);
        self.changed.notify_one();
    }

    /// The next key, as soon as there is one.
    ///
    /// Cancel safe: a key is either returned or stays in the queue.
    pub async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.state();
                state.ripen(Instant::now());
                if let Some(key) = state.take() {
                    // Another worker may sleep through a timer that only this one knew of.
                    if !state.ready.is_empty() || !state.timers.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.timers.first_key_value().map(|(due, _)| due.0)
            };
            match due {
                None => self.changed.notified().await,
                Some(due) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }

    /// Gives a key back after success: its failures are forgotten.
    pub fn done(&self, key: &K) {
        self.state().give_back(key, None);
        self.changed.notify_one();
    }

    /// Gives a key back after a failure: it comes again after the returned delay, or earlier if it is added.
    pub fn retry(&self, key: &K) -> Duration {
        let delay = self.state().give_back(key, Some(self.back_off));
        self.changed.notify_one();
        delay
    }

    /// How many keys are ready for a worker.
    pub fn depth(&self) -> usize {
        let mut state = self.state();
        state.ripen(Instant::now());
        state.ready.len()
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn add(&mut self, key: K) {
        let entry = self.keys.entry(key.clone()).or_default();
        match entry.phase {
            Phase::Idle => {
                entry.phase = Phase::Ready;
                self.ready.push_back(key);
            }
            Phase::Working => entry.phase = Phase::WorkingAndAdded,
            Phase::Ready | Phase::WorkingAndAdded => {}
        }
    }

    fn add_at(&mut self, key: K, at: Instant) {
        let entry = self.keys.entry(key.clone()).or_default();
        match entry.timer {
            Some((earlier, _)) if earlier <= at => return,
            Some(later) => drop(self.timers.remove(&later)),
            None => {}
        }
        self.timers_made += 1;
        let due = (at, self.timers_made);
        entry.timer = Some(due);
        self.timers.insert(due, key);
    }

    /// Makes keys ready whose time has come.
    fn ripen(&mut self, now: Instant) {
        while let Some(timer) = self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            let key = timer.remove();
            if let Some(entry) = self.keys.get_mut(&key) {
                entry.timer = None;
            }
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        if let Some(entry) = self.keys.get_mut(&key) {
            entry.phase = Phase::Working;
        }
        Some(key)
    }

    fn give_back(&mut self, key: &K, failed: Option<BackOff>) -> Duration {
        let Some(entry) = self.keys.get_mut(key) else { return Duration::ZERO };
        let added = match entry.phase {
            Phase::Working => false,
            Phase::WorkingAndAdded => true,
            // Not handed out, so nothing to give back.
            Phase::Idle | Phase::Ready => return Duration::ZERO,
        };
        entry.phase = Phase::Idle;
        entry.failures = if failed.is_some() { entry.failures.saturating_add(1) } else { 0 };
        let delay = failed.map(|back_off| back_off.delay(entry.failures));
        let forgettable = entry.failures == 0 && entry.timer.is_none();
        match (added, delay) {
            (true, _) => self.add(key.clone()),
            (false, Some(delay)) => self.add_at(key.clone(), Instant::now() + delay),
            (false, None) if forgettable => drop(self.keys.remove(key)),
            (false, None) => {}
        }
        if added { Duration::ZERO } else { delay.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests;
