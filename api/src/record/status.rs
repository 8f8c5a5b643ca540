//! What the hub manager answers in a record's status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;
use crate::state::{ClusterCounts, ObjectIdentity, Phase};

/// Types of a record's conditions. All have positive polarity: True is well.
pub mod condition {
    /// The summary: True when all others are.
    pub const READY: &str = "Ready";
    /// Every reference of the spec names something that exists and may be read.
    pub const SOURCES_RESOLVED: &str = "SourcesResolved";
    /// Every cluster of the record holds its newest slice.
    pub const DISTRIBUTED: &str = "Distributed";
    /// Every cluster of the record has a current report.
    pub const REPORTED: &str = "Reported";
    /// Every cluster of the record is Healthy.
    pub const HEALTHY: &str = "Healthy";
}

/// The state of a record. Lists are bounded; counts are always exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantDeploymentRecordStatus {
    /// The spec's generation that this status is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// Ready, SourcesResolved, Distributed, Reported, Healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// The numbers of the printer columns.
    #[serde(default)]
    pub summary: RecordSummary,
    /// The clusters of the record, sorted; at most 1000, see `clusterNamesTruncated`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub cluster_names: Vec<String>,
    /// Whether `clusterNames` is cut; the pages have all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cluster_names_truncated: bool,
    /// Exact counts of clusters.
    #[serde(default)]
    pub clusters: ClusterCounts,
    /// What the record is joined from.
    #[serde(default)]
    pub sources: Sources,
    /// What needs a person's attention, worst first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub attention: Vec<Attention>,
    /// What is wrong with the record or its sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub findings: Vec<Finding>,
    /// The record's pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub pages: Vec<PageSummary>,
    /// Changes exactly when a source changes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub inputs_digest: String,
}

/// The numbers of the printer columns, each of which can show one stored field only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordSummary {
    /// Clusters in the record.
    pub clusters: u32,
    /// Healthy clusters of all, for example `1/2`.
    #[schemars(length(max = 32))]
    pub healthy: String,
    /// Clusters that need a person's attention.
    pub attention: u32,
    /// Clusters with a current report of all, for example `2/2`.
    #[schemars(length(max = 32))]
    pub current: String,
}

/// What a record is joined from. Each list has at most 50 entries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sources {
    /// ManagedClusterSetBindings of the namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub cluster_set_bindings: Vec<ClusterSetBindingSource>,
    /// Placements that the record references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub placements: Vec<PlacementSource>,
    /// ManifestWorkReplicaSets that the record references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub manifest_work_replica_sets: Vec<ManifestWorkReplicaSetSource>,
    /// Counts of the ManifestWorks that carry the record's workload.
    #[serde(default)]
    pub manifest_works: ManifestWorkCounts,
    /// Configuration objects that the record references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub configs: Vec<ConfigSource>,
}

/// A ManagedClusterSetBinding of the record's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetBindingSource {
    /// The set's name.
    pub name: String,
    /// Whether OCM bound it; only then it counts.
    pub bound: bool,
}

/// A Placement that the record references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSource {
    /// The Placement's name.
    pub name: String,
    /// How many clusters it chooses.
    pub selected: u32,
    /// Its condition PlacementSatisfied.
    pub satisfied: bool,
    /// The condition's reason, for example `AllDecisionsScheduled`; `NotFound` when there is no such Placement.
    pub reason: String,
    /// How many decision groups it has.
    pub decision_groups: u32,
}

/// A ManifestWorkReplicaSet that the record references, in OCM's own numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetSource {
    /// The set's name.
    pub name: String,
    /// Works that were applied.
    pub applied: u32,
    /// Works whose objects exist.
    pub available: u32,
    /// All works.
    pub total: u32,
    /// Its condition PlacementRolledOut.
    pub rolled_out: bool,
}

/// Counts of ManifestWorks, made from the works themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkCounts {
    /// All works that carry the record's workload.
    pub total: u32,
    /// Those that are applied at their current generation.
    pub applied: u32,
    /// Those that could not be applied.
    pub failed: u32,
}

/// A configuration object that the record references.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSource {
    /// API group; empty for core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// Its generation; absent for kinds without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Whether it exists.
    pub found: bool,
}

/// Something that needs a person's attention.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attention {
    /// One readable line.
    pub summary: String,
    /// The cluster.
    pub cluster_name: String,
    /// The object; absent where it is about the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectIdentity>,
    /// The phase.
    pub phase: Phase,
    /// Machine-readable cause.
    pub reason: String,
    /// Human-readable cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// What can be wrong with a record or its sources, in the order of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FindingType {
    /// A referenced Placement doesn't exist.
    PlacementNotFound,
    /// A Placement chooses no cluster.
    NoDecision,
    /// An explicit cluster is outside the cluster sets bound to the namespace.
    ClusterNotBound,
    /// A cluster isn't accepted by the hub.
    ClusterNotAccepted,
    /// A cluster can't be reached.
    ClusterUnavailable,
    /// A cluster doesn't have this add-on.
    AddOnNotEnabled,
    /// A referenced ManifestWorkReplicaSet doesn't exist.
    SourceNotFound,
    /// A referenced configuration object, or its kind, doesn't exist.
    ConfigNotFound,
    /// The manager may not read a kind of configuration object.
    ConfigForbidden,
    /// A kind of configuration object can't be read at the moment; what was known of it stays.
    ConfigUnreadable,
    /// A ManifestWork could not be applied.
    WorkApplyFailed,
    /// A Placement chooses a cluster and there is no ManifestWork for it.
    DecisionWithoutWork,
    /// A ManifestWork is there and no Placement chooses the cluster.
    WorkWithoutDecision,
}

/// Something wrong with a record or its sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// One readable line.
    pub summary: String,
    /// What is wrong.
    #[serde(rename = "type")]
    pub type_: FindingType,
    /// How often; exact.
    pub count: u32,
    /// A few of them, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub examples: Vec<String>,
}

/// A page of the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageSummary {
    /// The page's name.
    pub name: String,
    /// What it holds.
    pub contents: crate::PageContents,
    /// How many rows or entries.
    pub count: u32,
    /// The digest of its contents: root and pages with equal digests are one consistent set.
    pub digest: String,
}
