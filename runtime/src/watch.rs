//! One watch of one kind that heals by itself.

use std::fmt;

use futures::stream::{self, BoxStream, Stream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::guarded::{Guarded, Undecodable};

/// Names an object within its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for an object without a namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// The key of that name in that namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The object's own key.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// What a watch tells, in order.
#[derive(Clone, Debug)]
pub enum Update<K> {
    /// A complete list follows: `Applied` for each object that exists, then `Synced`.
    Restarted,
    /// The object exists and looks like this.
    Applied(K),
    /// The object exists and can't be decoded; what was known of it before stays the best knowledge.
    Undecodable(Box<Undecodable>),
    /// The object is gone.
    Deleted(ObjectKey),
    /// The list is complete: what wasn't in it since `Restarted` is gone.
    Synced,
    /// The watch failed and tries again after a back-off.
    Failed(Failure),
}

impl<K> Update<K> {
    /// The same update about something made of the object.
    pub fn map<T>(self, f: impl FnOnce(K) -> T) -> Update<T> {
        match self {
            Self::Restarted => Update::Restarted,
            Self::Applied(object) => Update::Applied(f(object)),
            Self::Undecodable(undecodable) => Update::Undecodable(undecodable),
            Self::Deleted(key) => Update::Deleted(key),
            Self::Synced => Update::Synced,
            Self::Failed(failure) => Update::Failed(failure),
        }
    }
}

/// Watches what `config` selects, for ever, with back-off after failures.
///
/// The first list comes as a stream where the API server can do that, else in pages.
/// An object that doesn't decode is reported and doesn't stop the others.
pub fn watch<K>(api: Api<Guarded<K>>, config: watcher::Config) -> impl Stream<Item = Update<K>> + Send
where
    K: Resource + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    struct State<K> {
        api: Api<Guarded<K>>,
        config: watcher::Config,
        events: BoxStream<'static, watcher::Result<watcher::Event<Guarded<K>>>>,
        streaming: bool,
    }
    let streamed = watcher(api.clone(), config.clone().streaming_lists()).default_backoff().boxed();
    let state = State { api, config, events: streamed, streaming: true };
    stream::unfold(state, |mut state| async move {
        let event = state.events.next().await?;
        if let (Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))), true) = (&event, state.streaming)
            && matches!(status.code, 400 | 422)
        {
            tracing::info!(reason = %status.message, "the API server doesn't stream lists; reading pages instead");
            state.events = watcher(state.api.clone(), state.config.clone()).default_backoff().boxed();
            state.streaming = false;
        }
        Some((to_update(event, state.api.resource_url()), state))
    })
}

fn to_update<K: Resource>(event: watcher::Result<watcher::Event<Guarded<K>>>, path: &str) -> Update<K> {
    use watcher::Event;
    match event {
        Ok(Event::Init) => Update::Restarted,
        Ok(Event::InitApply(Guarded::Valid(object)) | Event::Apply(Guarded::Valid(object))) => Update::Applied(object),
        Ok(Event::InitApply(Guarded::Undecodable(bad)) | Event::Apply(Guarded::Undecodable(bad))) => {
            tracing::warn!(path, object = %bad, "can't decode an object; what was known of it stays");
            Update::Undecodable(bad)
        }
        Ok(Event::Delete(Guarded::Valid(object))) => Update::Deleted(ObjectKey::of(&object)),
        Ok(Event::Delete(Guarded::Undecodable(bad))) => Update::Deleted(ObjectKey::new(
            bad.metadata.namespace.unwrap_or_default(),
            bad.metadata.name.unwrap_or_default(),
        )),
        Ok(Event::InitDone) => Update::Synced,
        Err(error) => {
            let failure = Failure::from(&error);
            tracing::warn!(path, reason = %failure, "watch failed, trying again");
            Update::Failed(failure)
        }
    }
}
