//! The watches that feed the index: one per kind, projected to rows before they reach the engine.

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tenant_records_api::ocm::{
    ManagedCluster, ManagedClusterAddOn, ManagedClusterSet, ManagedClusterSetBinding, ManifestWork,
    ManifestWorkReplicaSet, Placement, PlacementDecision,
};
use tenant_records_api::{ADDON_NAME, TenantDeploymentRecord, TenantDeploymentRecordPage};
use tenant_records_runtime::{ObjectKey, watch};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use crate::index::rows::{
    AddOnRow, BindingRow, ClusterFacts, DecisionRow, PageRow, PlacementRow, ReplicaSetRow, SetRow, WorkRow,
};
use crate::index::{Event, Rows};

/// Starts all watches; each ends when the engine stops listening.
pub fn start(client: &Client, events: &Sender<Event>) -> JoinSet<()> {
    let all = watcher::Config::default;
    let our_addon = all().fields(&format!("metadata.name={ADDON_NAME}"));
    let mut watches = Watches { client, events, tasks: JoinSet::new() };
    watches.add(all(), |record: TenantDeploymentRecord| Arc::new(without_managed_fields(record)), Event::Record);
    watches.add(all(), |page: TenantDeploymentRecordPage| Arc::new(PageRow::from(&page)), Event::Page);
    watches.add(all(), |placement: Placement| PlacementRow::from(&placement), Event::Placement);
    watches.add(all(), |decision: PlacementDecision| DecisionRow::from(&decision), Event::Decision);
    watches.add(all(), |binding: ManagedClusterSetBinding| BindingRow::from(&binding), Event::Binding);
    watches.add(all(), |set: ManagedClusterSet| SetRow::from(&set), Event::Set);
    watches.add(all(), |cluster: ManagedCluster| ClusterFacts::from(&cluster), Event::Cluster);
    watches.add(all(), |set: ManifestWorkReplicaSet| Arc::new(ReplicaSetRow::from(&set)), Event::ReplicaSet);
    watches.add(all(), |work: ManifestWork| WorkRow::of(&work).map(Arc::new), Event::Work);
    watches.add(our_addon, |addon: ManagedClusterAddOn| AddOnRow::from(&addon), Event::AddOn);
    watches.tasks
}

struct Watches<'a> {
    client: &'a Client,
    events: &'a Sender<Event>,
    tasks: JoinSet<()>,
}

impl Watches<'_> {
    fn add<K, R>(&mut self, config: watcher::Config, project: fn(K) -> R, event: fn(Rows<R>) -> Event)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let updates = watch::<K>(Api::all(self.client.clone()), config);
        let events = self.events.clone();
        self.tasks.spawn(async move {
            let mut updates = std::pin::pin!(updates);
            while let Some(update) = updates.next().await {
                let rows = update.map(|object| (ObjectKey::of(&object), project(object)));
                if events.send(event(rows)).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Most of an object's memory is its managedFields, which nobody reads here.
pub fn without_managed_fields<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}
