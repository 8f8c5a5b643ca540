//! What the index keeps of each object: only what the fold reads, never the object as received.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use kube::core::{DynamicObject, Selector, SelectorExt};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tenant_records_api::digest::digest;
use tenant_records_api::ocm::{
    CLUSTER_AVAILABLE, Condition, ConditionsExt, FALSE, LABEL_CLUSTER_SET, LABEL_GROUP_INDEX, LABEL_PLACEMENT,
    LABEL_REPLICA_SET, ManagedCluster, ManagedClusterAddOn, ManagedClusterSet, ManagedClusterSetBinding, ManifestWork,
    ManifestWorkReplicaSet, Placement, PlacementDecision, TAINT_UNAVAILABLE, TAINT_UNREACHABLE, TRUE, WORK_APPLIED,
    WORK_AVAILABLE,
};
use tenant_records_api::{
    Held, LABEL_TENANT_NAMESPACE, ObjectIdentity, Phase, ResolvedObject, TenantDeploymentRecordPage, WorkloadSource,
};
use tenant_records_runtime::ObjectKey;

/// Labels as Kubernetes holds them.
pub type Labels = BTreeMap<String, String>;

/// A manifest above this size, in bytes of JSON, is recorded without its content.
const MANIFEST_LIMIT: usize = 32 * 1024;

/// The status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It doesn't hold.
    False,
    /// Nobody can tell, or it is about an older generation.
    #[default]
    Unknown,
}

impl ConditionStatus {
    fn of(condition: Option<&Condition>) -> Self {
        match condition.map(|c| c.status.as_str()) {
            Some(TRUE) => Self::True,
            Some(FALSE) => Self::False,
            _ => Self::Unknown,
        }
    }

    /// The status as it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A Placement.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementRow {
    pub labels: Labels,
    pub satisfied: bool,
    pub reason: String,
}

impl From<&Placement> for PlacementRow {
    fn from(placement: &Placement) -> Self {
        let satisfied = placement.status.conditions.condition("PlacementSatisfied");
        Self {
            labels: labels(&placement.metadata),
            satisfied: ConditionStatus::of(satisfied) == ConditionStatus::True,
            reason: satisfied.map(|c| c.reason.clone()).unwrap_or_default(),
        }
    }
}

/// A page of a Placement's decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRow {
    pub placement: String,
    pub group: i32,
    pub clusters: Vec<String>,
}

impl From<&PlacementDecision> for DecisionRow {
    fn from(decision: &PlacementDecision) -> Self {
        let label = |name| decision.metadata.labels.as_ref().and_then(|labels| labels.get(name));
        Self {
            placement: label(LABEL_PLACEMENT).cloned().unwrap_or_default(),
            group: label(LABEL_GROUP_INDEX).and_then(|index| index.parse().ok()).unwrap_or_default(),
            clusters: decision.status.decisions.iter().map(|d| d.cluster_name.clone()).collect(),
        }
    }
}

/// A ManagedClusterSetBinding; its name is the set's.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingRow {
    pub bound: bool,
}

impl From<&ManagedClusterSetBinding> for BindingRow {
    fn from(binding: &ManagedClusterSetBinding) -> Self {
        Self { bound: binding.status.conditions.is_true("Bound") }
    }
}

/// A ManagedClusterSet.
#[derive(Clone, Debug, PartialEq)]
pub enum SetRow {
    /// Its clusters carry the label of exclusive sets with its name.
    Exclusive,
    /// Its clusters match a selector.
    Selected(LabelSelector),
    /// It has no clusters: OCM takes an absent selector, or a type that it doesn't know, as nothing.
    Empty,
}

impl From<&ManagedClusterSet> for SetRow {
    fn from(set: &ManagedClusterSet) -> Self {
        let selector = &set.spec.cluster_selector;
        match selector.selector_type.as_str() {
            "LabelSelector" => selector.label_selector.clone().map_or(Self::Empty, Self::Selected),
            "" | "ExclusiveClusterSetLabel" => Self::Exclusive,
            _ => Self::Empty,
        }
    }
}

impl SetRow {
    /// Whether a cluster with these labels belongs to this set of that name.
    pub fn contains(&self, set: &str, labels: &Labels) -> bool {
        match self {
            Self::Exclusive => labels.get(LABEL_CLUSTER_SET).is_some_and(|label| label == set),
            Self::Selected(selector) => matches(selector, labels),
            Self::Empty => false,
        }
    }
}

/// Whether the labels match the selector. One that can't be parsed matches nothing.
pub fn matches(selector: &LabelSelector, labels: &Labels) -> bool {
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}

/// A ManagedCluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFacts {
    pub labels: Labels,
    pub accepted: bool,
    pub available: ConditionStatus,
    /// Whether it carries a taint that OCM sets on clusters that it can't reach.
    pub tainted: bool,
    pub deleting: bool,
    pub kubernetes_version: String,
}

impl From<&ManagedCluster> for ClusterFacts {
    fn from(cluster: &ManagedCluster) -> Self {
        let unreachable = |key: &str| key == TAINT_UNREACHABLE || key == TAINT_UNAVAILABLE;
        Self {
            labels: labels(&cluster.metadata),
            accepted: cluster.spec.hub_accepts_client,
            available: ConditionStatus::of(cluster.status.conditions.condition(CLUSTER_AVAILABLE)),
            tainted: cluster.spec.taints.iter().any(|taint| unreachable(&taint.key)),
            deleting: cluster.metadata.deletion_timestamp.is_some(),
            kubernetes_version: cluster.status.version.kubernetes.clone(),
        }
    }
}

impl ClusterFacts {
    /// Whether the hub can reach it.
    pub fn is_reachable(&self) -> bool {
        self.available == ConditionStatus::True && !self.tainted
    }
}

/// A recorded manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestRow {
    pub object: ObjectIdentity,
    /// Empty for a Secret.
    pub digest: String,
    /// Bytes of JSON.
    pub size: usize,
    /// Canonical JSON; none for a Secret or above the size limit.
    pub json: Option<Box<str>>,
}

impl ManifestRow {
    /// The manifest of that JSON text; nothing when it isn't an object with kind and name.
    pub fn parse(raw: &RawValue) -> Option<Self> {
        Self::of(&serde_json::from_str(raw.get()).ok()?)
    }

    /// The manifest of that object; nothing when it has no kind or name.
    pub fn of(value: &Value) -> Option<Self> {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let object = ObjectIdentity {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
        };
        if object.kind.is_empty() || object.name.is_empty() {
            return None;
        }
        let json = value.to_string();
        let secret = object.group.is_empty() && object.kind == "Secret";
        Some(Self {
            digest: if secret { String::new() } else { digest(value) },
            size: json.len(),
            json: (!secret && json.len() <= MANIFEST_LIMIT).then(|| json.into()),
            object,
        })
    }
}

/// A ManifestWorkReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetRow {
    pub labels: Labels,
    pub placements: Vec<String>,
    pub total: u32,
    pub applied: u32,
    pub available: u32,
    pub rolled_out: bool,
    pub manifests: Arc<[ManifestRow]>,
}

impl From<&ManifestWorkReplicaSet> for ReplicaSetRow {
    fn from(set: &ManifestWorkReplicaSet) -> Self {
        let summary = &set.status.summary;
        let count = |n: i64| u32::try_from(n).unwrap_or_default();
        Self {
            labels: labels(&set.metadata),
            placements: set.spec.placement_refs.iter().map(|r| r.name.clone()).collect(),
            total: count(summary.total),
            applied: count(summary.applied),
            available: count(summary.available),
            rolled_out: set.status.conditions.is_true("PlacementRolledOut"),
            manifests: manifests(&set.spec.manifest_work_template.workload.manifests),
        }
    }
}

/// Whose workload a ManifestWork carries.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkOwner {
    /// A ManifestWorkReplicaSet's; its manifests are the set's.
    ReplicaSet(ObjectKey),
    /// A tenant's, by label.
    Tenant { namespace: String, labels: Labels, manifests: Arc<[ManifestRow]> },
}

/// A ManifestWork that carries somebody's workload.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRow {
    pub owner: WorkOwner,
    pub applied: ConditionStatus,
    pub available: ConditionStatus,
    /// The first complaint about a manifest that couldn't be applied.
    pub failure: Option<String>,
}

impl WorkRow {
    /// The row of a work; nothing for works that no record can be about.
    pub fn of(work: &ManifestWork) -> Option<Self> {
        let labels = labels(&work.metadata);
        let owner = if let Some(set) = labels.get(LABEL_REPLICA_SET) {
            let (namespace, name) = set.split_once('.')?;
            WorkOwner::ReplicaSet(ObjectKey::new(namespace, name))
        } else {
            let namespace = labels.get(LABEL_TENANT_NAMESPACE)?.clone();
            WorkOwner::Tenant { namespace, labels, manifests: manifests(&work.spec.workload.manifests) }
        };
        let generation = work.metadata.generation;
        let at_generation = |type_| {
            let condition = work.status.conditions.condition(type_);
            ConditionStatus::of(
                condition.filter(|c| c.observed_generation.is_none() || c.observed_generation == generation),
            )
        };
        let applied = at_generation(WORK_APPLIED);
        let failed = |c: &&Condition| c.type_ == WORK_APPLIED && c.status == FALSE;
        let mut complaints =
            work.status.resource_status.manifests.iter().flat_map(|m| m.conditions.iter()).filter(failed);
        Some(Self {
            owner,
            applied,
            available: at_generation(WORK_AVAILABLE),
            failure: (applied == ConditionStatus::False).then(|| match complaints.next() {
                Some(condition) => condition.message.clone(),
                None => "not applied".to_owned(),
            }),
        })
    }
}

/// This add-on on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct AddOnRow {
    pub available: ConditionStatus,
    pub deleting: bool,
}

impl From<&ManagedClusterAddOn> for AddOnRow {
    fn from(addon: &ManagedClusterAddOn) -> Self {
        Self {
            available: ConditionStatus::of(addon.status.conditions.condition("Available")),
            deleting: addon.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// A tenant's configuration object.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigRow {
    pub labels: Labels,
    pub generation: Option<i64>,
    pub digest: String,
    /// Everything but apiVersion, kind, metadata and status.
    pub content: Arc<Value>,
}

impl From<DynamicObject> for ConfigRow {
    fn from(object: DynamicObject) -> Self {
        let mut content = match object.data {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        content.remove("status");
        let content = Value::Object(content);
        Self {
            labels: labels(&object.metadata),
            generation: object.metadata.generation,
            digest: digest(&content),
            content: Arc::new(content),
        }
    }
}

/// What must be remembered of a page that we wrote: what only history can say, and what to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRow {
    /// The UID of the record that owns it.
    pub owner: String,
    /// That record's name.
    pub record: String,
    pub uid: String,
    pub resource_version: String,
    /// The digest of its contents as the API server holds them.
    pub digest: String,
    pub clusters: Vec<ClusterMemory>,
    pub workload: Vec<(WorkloadKey, u32)>,
    pub objects: Vec<(ObjectIdentity, String, u32)>,
    pub is_workload: bool,
}

/// A workload entry's identity: its name in the record and its source.
pub type WorkloadKey = (String, WorkloadSource);

/// What a row's history says.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterMemory {
    pub cluster: String,
    pub phase: Phase,
    pub reason: String,
    pub since: Option<Time>,
    pub held: Option<Held>,
}

impl From<&TenantDeploymentRecordPage> for PageRow {
    fn from(page: &TenantDeploymentRecordPage) -> Self {
        let data = &page.spec;
        let memory = |row: &tenant_records_api::ClusterRow| ClusterMemory {
            cluster: row.cluster_name.clone(),
            phase: row.phase,
            reason: row.reason.clone(),
            since: row.since.clone(),
            held: row.held.clone(),
        };
        let object = |o: &ResolvedObject| (o.object.clone(), o.digest.clone(), o.index);
        let owners = page.metadata.owner_references.iter().flatten();
        Self {
            owner: owners.filter(|o| o.controller == Some(true)).map(|o| o.uid.clone()).next().unwrap_or_default(),
            record: data.record_name.clone(),
            uid: page.metadata.uid.clone().unwrap_or_default(),
            resource_version: page.metadata.resource_version.clone().unwrap_or_default(),
            digest: digest(data),
            clusters: data.clusters.iter().map(memory).collect(),
            workload: data.workload.iter().map(|w| ((w.entry.clone(), w.source.clone()), w.index)).collect(),
            objects: data.objects.iter().map(object).collect(),
            is_workload: data.contents == tenant_records_api::PageContents::Workload,
        }
    }
}

fn labels(meta: &ObjectMeta) -> Labels {
    meta.labels.clone().unwrap_or_default()
}

fn manifests(raw: &[Box<RawValue>]) -> Arc<[ManifestRow]> {
    raw.iter().filter_map(|manifest| ManifestRow::parse(manifest)).collect()
}

/// Names of clusters, sorted.
pub type ClusterNames = BTreeSet<String>;
