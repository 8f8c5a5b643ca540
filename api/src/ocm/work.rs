//! Kinds of `work.open-cluster-management.io`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Condition, lean_metadata, or_default};
use crate::lean_resource;

/// The label of a ManifestWork that a ManifestWorkReplicaSet made; its value is `<namespace>.<name>` of the set.
pub const LABEL_REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";
/// The condition that says whether manifests were applied.
pub const WORK_APPLIED: &str = "Applied";
/// The condition that says whether the applied objects exist (not whether they are ready).
pub const WORK_AVAILABLE: &str = "Available";

/// Manifests for one cluster, in that cluster's namespace on the hub.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManifestWork {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// The manifests.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ManifestWorkSpec,
    /// What the work agent says.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ManifestWorkStatus,
}
lean_resource!(ManifestWork, "work.open-cluster-management.io", "v1", "manifestworks", NamespaceResourceScope);

/// The read part of a ManifestWork's spec.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ManifestWorkSpec {
    /// The manifests.
    #[serde(deserialize_with = "or_default")]
    pub workload: Workload,
}

/// Manifests as text: hundreds of them are never parsed whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Whole objects in JSON.
    #[serde(deserialize_with = "or_default")]
    pub manifests: Vec<Box<RawValue>>,
}

/// The read part of a ManifestWork's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestWorkStatus {
    /// Conditions of the whole work.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Conditions of each manifest.
    #[serde(deserialize_with = "or_default")]
    pub resource_status: ResourceStatus,
}

/// The status of a work's manifests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceStatus {
    /// One entry per manifest.
    #[serde(deserialize_with = "or_default")]
    pub manifests: Vec<ManifestCondition>,
}

/// The status of one manifest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestCondition {
    /// Which manifest.
    #[serde(deserialize_with = "or_default")]
    pub resource_meta: ResourceMeta,
    /// Its conditions, see [`WORK_APPLIED`] and [`WORK_AVAILABLE`].
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
}

/// Says which manifest of a work a status entry is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceMeta {
    /// The manifest's index in the work.
    #[serde(deserialize_with = "or_default")]
    pub ordinal: i32,
    /// API group; empty for core.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// API version.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// Kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// Plural resource name.
    #[serde(deserialize_with = "or_default")]
    pub resource: String,
    /// The object's namespace; empty when it has none.
    #[serde(deserialize_with = "or_default")]
    pub namespace: String,
    /// The object's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// One ManifestWork for each cluster that its Placements choose.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManifestWorkReplicaSet {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// The template and the Placements.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ManifestWorkReplicaSetSpec,
    /// What OCM's controller says.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ManifestWorkReplicaSetStatus,
}
lean_resource!(
    ManifestWorkReplicaSet,
    "work.open-cluster-management.io",
    "v1alpha1",
    "manifestworkreplicasets",
    NamespaceResourceScope
);

/// The read part of a ManifestWorkReplicaSet's spec.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestWorkReplicaSetSpec {
    /// The spec of the works it makes.
    #[serde(deserialize_with = "or_default")]
    pub manifest_work_template: ManifestWorkSpec,
    /// The Placements, in the set's namespace, that choose the clusters.
    #[serde(deserialize_with = "or_default")]
    pub placement_refs: Vec<LocalPlacementReference>,
}

/// Names a Placement of the same namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalPlacementReference {
    /// The Placement's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// The read part of a ManifestWorkReplicaSet's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ManifestWorkReplicaSetStatus {
    /// `PlacementVerified`, `PlacementRolledOut`, `ManifestworkApplied`.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// Counts of works.
    #[serde(deserialize_with = "or_default")]
    pub summary: ManifestWorkReplicaSetSummary,
}

/// Counts of a ManifestWorkReplicaSet's works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManifestWorkReplicaSetSummary {
    /// All works.
    #[serde(deserialize_with = "or_default")]
    pub total: i64,
    /// Those that were applied.
    #[serde(deserialize_with = "or_default")]
    pub applied: i64,
    /// Those whose objects exist.
    #[serde(deserialize_with = "or_default")]
    pub available: i64,
}
