//! Kinds of `cluster.open-cluster-management.io`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, lean_metadata, or_default};
use crate::lean_resource;

/// The condition of a ManagedCluster that says whether its agent renews its lease.
pub const CLUSTER_AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// The taint that OCM sets on a cluster whose agent doesn't renew its lease.
pub const TAINT_UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
/// The taint that OCM sets on a cluster whose agent says that its API server is unwell.
pub const TAINT_UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
/// The label that puts a cluster into an exclusive set.
pub const LABEL_CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
/// The label of a PlacementDecision that names its Placement.
pub const LABEL_PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
/// The label of a PlacementDecision that gives its decision group's index, from 0.
pub const LABEL_GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
/// The label of a PlacementDecision that gives its decision group's name, which may be empty.
pub const LABEL_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";

/// A cluster that OCM manages. Its name is also its namespace on the hub.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManagedCluster {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What the hub wants of the cluster.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ManagedClusterSpec,
    /// What the cluster's agent and the hub's controllers say.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ManagedClusterStatus,
}
lean_resource!(ManagedCluster, "cluster.open-cluster-management.io", "v1", "managedclusters", ClusterResourceScope);

/// The read part of a ManagedCluster's spec.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSpec {
    /// Whether the hub accepted the cluster.
    #[serde(deserialize_with = "or_default")]
    pub hub_accepts_client: bool,
    /// Taints, which Placements may tolerate.
    #[serde(deserialize_with = "or_default")]
    pub taints: Vec<Taint>,
}

/// A ManagedCluster's taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// For example [`TAINT_UNREACHABLE`].
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// May be empty.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
    /// `NoSelect`, `PreferNoSelect` or `NoSelectIfNew`.
    #[serde(deserialize_with = "or_default")]
    pub effect: String,
}

/// The read part of a ManagedCluster's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterStatus {
    /// See [`CLUSTER_AVAILABLE`].
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Versions.
    #[serde(deserialize_with = "or_default")]
    pub version: ManagedClusterVersion,
    /// Claims that the cluster makes about itself.
    #[serde(deserialize_with = "or_default")]
    pub cluster_claims: Vec<ClusterClaim>,
}

/// A ManagedCluster's versions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ManagedClusterVersion {
    /// Kubernetes' version, for example `v1.35.4`.
    #[serde(deserialize_with = "or_default")]
    pub kubernetes: String,
}

/// A claim that a cluster makes about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClusterClaim {
    /// The claim's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The claim's value.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
}

/// A set of clusters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManagedClusterSet {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// Which clusters belong to it.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ManagedClusterSetSpec,
}
lean_resource!(
    ManagedClusterSet,
    "cluster.open-cluster-management.io",
    "v1beta2",
    "managedclustersets",
    ClusterResourceScope
);

/// The spec of a ManagedClusterSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSetSpec {
    /// How the set chooses its clusters.
    #[serde(deserialize_with = "or_default")]
    pub cluster_selector: ClusterSelector,
}

/// How a ManagedClusterSet chooses its clusters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSelector {
    /// `ExclusiveClusterSetLabel` (also when empty): by [`LABEL_CLUSTER_SET`]; `LabelSelector`: by `label_selector`.
    #[serde(deserialize_with = "or_default")]
    pub selector_type: String,
    /// Used with `LabelSelector`.
    pub label_selector: Option<LabelSelector>,
}

/// Lets Placements of a namespace choose from a set. Its name is the set's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManagedClusterSetBinding {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// Only a binding with condition `Bound` True counts.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ConditionsOnly,
}
lean_resource!(
    ManagedClusterSetBinding,
    "cluster.open-cluster-management.io",
    "v1beta2",
    "managedclustersetbindings",
    NamespaceResourceScope
);

/// A status of which only the conditions are read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionsOnly {
    /// The conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// Chooses clusters for its namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Placement {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What the scheduler says.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PlacementStatus,
}
lean_resource!(Placement, "cluster.open-cluster-management.io", "v1beta1", "placements", NamespaceResourceScope);

/// The read part of a Placement's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementStatus {
    /// `PlacementSatisfied` and `PlacementMisconfigured`.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// How many clusters the scheduler chose.
    #[serde(deserialize_with = "or_default")]
    pub number_of_selected_clusters: i32,
}

/// A page of a Placement's decisions (at most 100 clusters, all of one decision group).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlacementDecision {
    /// Standard metadata without managedFields; the labels name Placement and group.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// The decisions.
    #[serde(default, deserialize_with = "or_default")]
    pub status: PlacementDecisionStatus,
}
lean_resource!(
    PlacementDecision,
    "cluster.open-cluster-management.io",
    "v1beta1",
    "placementdecisions",
    NamespaceResourceScope
);

/// The read part of a PlacementDecision's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacementDecisionStatus {
    /// One entry per chosen cluster.
    #[serde(deserialize_with = "or_default")]
    pub decisions: Vec<ClusterDecision>,
}

/// One chosen cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterDecision {
    /// The ManagedCluster's name.
    #[serde(deserialize_with = "or_default")]
    pub cluster_name: String,
}
