//! A watch that proves that it still hears.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream, Stream};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::back_off::BackOff;
use crate::failure::Failure;
use crate::watch::{ObjectKey, Update};

/// What a [`live_watch`] tells.
#[derive(Clone, Debug)]
pub enum Signal<K> {
    /// As in every watch. All but [`Update::Failed`] come from the API server.
    Update(Update<K>),
    /// Nothing changed; the API server said so itself just now.
    Alive,
}

/// An API server sends a bookmark a minute, unless it has just started. A list then gets it going.
const SILENCE: Duration = Duration::from_secs(75);
const WATCH_SECONDS: u32 = 290;
const BACK_OFF: BackOff = BackOff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };

/// Watches all objects of a kind for ever, as [`watch`](crate::watch()) does, and gives a signal at least every 75
/// seconds while the API server is heard. After 75 seconds of silence it lists anew.
///
/// For few and small objects: each list is held in memory as a whole.
pub fn live_watch<K>(api: Api<K>) -> impl Stream<Item = Signal<K>> + Send
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    let watch = LiveWatch { api, phase: Phase::List, signals: VecDeque::new(), failures: 0 };
    stream::unfold(watch, |mut watch| async move {
        loop {
            if let Some(signal) = watch.signals.pop_front() {
                return Some((signal, watch));
            }
            watch.step().await;
        }
    })
}

struct LiveWatch<K> {
    api: Api<K>,
    phase: Phase<K>,
    /// What was heard and not yet told.
    signals: VecDeque<Signal<K>>,
    /// Since something was heard.
    failures: u32,
}

enum Phase<K> {
    List,
    Start { version: String },
    Watch { version: String, events: BoxStream<'static, kube::Result<WatchEvent<K>>> },
}

impl<K> LiveWatch<K>
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    async fn step(&mut self) {
        if self.failures > 0 && !matches!(self.phase, Phase::Watch { .. }) {
            sleep(BACK_OFF.delay(self.failures)).await;
        }
        // A phase that fails is followed by a list.
        self.phase = match std::mem::replace(&mut self.phase, Phase::List) {
            Phase::List => self.list().await,
            Phase::Start { version } => self.start(version).await,
            Phase::Watch { version, events } => self.hear(version, events).await,
        };
    }

    async fn list(&mut self) -> Phase<K> {
        match self.api.list(&ListParams::default()).await {
            Ok(list) => {
                self.failures = 0;
                self.tell(Update::Restarted);
                for object in list.items {
                    self.tell(Update::Applied(object));
                }
                self.tell(Update::Synced);
                Phase::Start { version: list.metadata.resource_version.unwrap_or_default() }
            }
            Err(error) => self.failed(&error),
        }
    }

    async fn start(&mut self, version: String) -> Phase<K> {
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        match self.api.watch(&params, &version).await {
            Ok(events) => Phase::Watch { version, events: events.boxed() },
            Err(kube::Error::Api(status)) if is_expired(&status) => Phase::List,
            Err(error) => {
                self.failed(&error);
                Phase::Start { version }
            }
        }
    }

    async fn hear(&mut self, version: String, mut events: BoxStream<'static, kube::Result<WatchEvent<K>>>) -> Phase<K> {
        let Ok(event) = timeout(SILENCE, events.next()).await else {
            tracing::info!(path = self.api.resource_url(), "the watch is silent; listing anew");
            return Phase::List;
        };
        let version = match event {
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                let version = object.meta().resource_version.clone().unwrap_or(version);
                self.tell(Update::Applied(object));
                version
            }
            Some(Ok(WatchEvent::Deleted(object))) => {
                let version = object.meta().resource_version.clone().unwrap_or(version);
                self.tell(Update::Deleted(ObjectKey::of(&object)));
                version
            }
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                self.signals.push_back(Signal::Alive);
                bookmark.metadata.resource_version
            }
            Some(Ok(WatchEvent::Error(status))) if is_expired(&status) => return Phase::List,
            Some(Ok(WatchEvent::Error(status))) => return self.failed(&kube::Error::Api(status)),
            Some(Err(error)) => {
                self.failed(&error);
                return Phase::Start { version };
            }
            None => {
                // In order, unless it ends again and again with nothing heard.
                self.failures += 1;
                return Phase::Start { version };
            }
        };
        self.failures = 0;
        Phase::Watch { version, events }
    }

    fn tell(&mut self, update: Update<K>) {
        self.signals.push_back(Signal::Update(update));
    }

    fn failed(&mut self, error: &kube::Error) -> Phase<K> {
        self.failures = self.failures.saturating_add(1);
        let failure = Failure::from(error);
        let path = self.api.resource_url();
        tracing::warn!(path, reason = %failure, failures = self.failures, "watch failed, trying again");
        self.tell(Update::Failed(failure));
        Phase::List
    }
}

/// Whether the resource version to go on from is too old.
fn is_expired(status: &Status) -> bool {
    status.code == 410
}

#[cfg(test)]
mod tests;
