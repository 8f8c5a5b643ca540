//! Watches of the tenants' configuration kinds, which come and go with the records that reference them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures::StreamExt;
use kube::core::{ApiResource, DynamicObject};
use kube::discovery::{self, Scope};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tenant_records_runtime::{Failure, ObjectKey, Update, watch};
use tokio::sync::mpsc::Sender;
use tokio::task::AbortHandle;

use crate::index::rows::ConfigRow;
use crate::index::{ConfigKind, Event, Unreadable};

/// The first and longest wait before asking again for a kind that isn't served.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// One watch per kind that a record references.
pub struct ConfigWatches {
    client: Client,
    events: Sender<Event>,
    running: HashMap<ConfigKind, Running>,
    started: u64,
}

struct Running {
    namespaces: BTreeSet<String>,
    task: AbortHandle,
}

/// Which watches started and stopped.
#[derive(Debug, Default)]
pub struct ConfigChanges {
    /// Kinds with the number of their new watch and the namespaces that it covers.
    pub started: Vec<(ConfigKind, u64, BTreeSet<String>)>,
    /// Kinds that nobody asks about any more.
    pub stopped: Vec<ConfigKind>,
}

impl ConfigWatches {
    /// No watches yet.
    pub fn new(client: Client, events: Sender<Event>) -> Self {
        Self { client, events, running: HashMap::new(), started: 0 }
    }

    /// Watches just these kinds; of each only objects in these namespaces are kept. A kind that is wanted in a new
    /// namespace is listed again.
    pub fn set(&mut self, wanted: HashMap<ConfigKind, BTreeSet<String>>) -> ConfigChanges {
        let mut changes = ConfigChanges::default();
        self.running.retain(|kind, running| {
            let now = wanted.get(kind);
            let stays = now.is_some_and(|namespaces| namespaces.is_subset(&running.namespaces));
            if !stays {
                running.task.abort();
            }
            if now.is_none() {
                changes.stopped.push(kind.clone());
            }
            stays
        });
        for (kind, namespaces) in wanted {
            if self.running.contains_key(&kind) {
                continue;
            }
            self.started += 1;
            tracing::info!(%kind, namespaces = namespaces.len(), "watching configuration objects");
            let watch = KindWatch {
                client: self.client.clone(),
                kind: kind.clone(),
                number: self.started,
                namespaces: namespaces.clone(),
                events: self.events.clone(),
            };
            changes.started.push((kind.clone(), self.started, namespaces.clone()));
            self.running.insert(kind, Running { namespaces, task: tokio::spawn(watch.run()).abort_handle() });
        }
        changes
    }
}

impl Drop for ConfigWatches {
    fn drop(&mut self) {
        self.running.values().for_each(|running| running.task.abort());
    }
}

/// The watch of one kind.
struct KindWatch {
    client: Client,
    kind: ConfigKind,
    number: u64,
    namespaces: BTreeSet<String>,
    events: Sender<Event>,
}

impl KindWatch {
    /// Finds out how the kind is served and relays its objects, for ever.
    async fn run(self) {
        let mut wait = ASK_AGAIN.0;
        loop {
            match discover(&self.client, &self.kind).await {
                Ok(Some(resource)) if self.relay(&resource).await => wait = ASK_AGAIN.0,
                Ok(Some(_)) => {}
                Ok(None) => self.unreadable(Unreadable::NotServed).await,
                Err(error) => {
                    tracing::warn!(kind = %self.kind, %error, "can't find out how a kind is served");
                    self.unreadable(Unreadable::Failed).await;
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(ASK_AGAIN.1);
        }
    }

    /// Relays the objects until the kind isn't served or readable any more; tells whether it ever listed.
    async fn relay(&self, resource: &ApiResource) -> bool {
        let updates = watch::<DynamicObject>(Api::all_with(self.client.clone(), resource), watcher::Config::default());
        let mut updates = std::pin::pin!(updates);
        let mut listed = false;
        while let Some(update) = updates.next().await {
            match update {
                Update::Applied(object) if !self.is_wanted(&object) => {}
                Update::Failed(Failure { code: Some(404), .. }) => return listed,
                Update::Failed(Failure { code: Some(403), .. }) => {
                    self.unreadable(Unreadable::Forbidden).await;
                    return listed;
                }
                // A watch that has listed goes on by itself, and what it knows is true enough meanwhile.
                Update::Failed(_) if !listed => self.unreadable(Unreadable::Failed).await,
                other => {
                    listed |= matches!(other, Update::Synced);
                    let rows = other.map(|object| (ObjectKey::of(&object), ConfigRow::from(object)));
                    self.send(Event::Config(self.kind.clone(), self.number, rows)).await;
                }
            }
        }
        listed
    }

    fn is_wanted(&self, object: &DynamicObject) -> bool {
        object.namespace().is_some_and(|namespace| self.namespaces.contains(&namespace))
    }

    async fn unreadable(&self, why: Unreadable) {
        self.send(Event::ConfigUnreadable(self.kind.clone(), self.number, why)).await;
    }

    async fn send(&self, event: Event) {
        // The engine stops listening only when the process ends, and this task with it.
        let _ = self.events.send(event).await;
    }
}

/// The API that serves the kind, if any does. Objects without a namespace can't be a tenant's.
async fn discover(client: &Client, kind: &ConfigKind) -> Result<Option<ApiResource>, kube::Error> {
    let group = match discovery::group(client, &kind.group).await {
        Ok(group) => group,
        Err(kube::Error::Discovery(_)) => return Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut resources = group.resources_by_stability().into_iter();
    let found = resources
        .find(|(resource, capabilities)| resource.plural == kind.resource && capabilities.scope == Scope::Namespaced);
    Ok(found.map(|(resource, _)| resource))
}
