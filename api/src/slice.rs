//! TenantRecordSlice: the part of a record that concerns one cluster, on that cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ocm::ClusterClaim;
use crate::schema;
use crate::state::{ObjectIdentity, ObjectState};
use crate::{Manifest, ResolvedConfig, RowPlacement, WorkloadSource};

/// The part of a record that concerns this cluster. The hub writes the spec by ManifestWork, the agent the status;
/// it stays readable while the hub is away.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "tenancy.open-cluster-management.io",
    version = "v1alpha1",
    kind = "TenantRecordSlice",
    namespaced,
    status = "TenantRecordSliceStatus",
    shortname = "trs",
    derive = "Default",
    derive = "PartialEq",
    doc = "A tenant's record as far as it concerns this cluster, with the local state of each recorded object.",
    printcolumn(name = "Record", type_ = "string", json_path = ".status.summary.record"),
    printcolumn(name = "Env", type_ = "string", json_path = ".spec.environment"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.clusterType"),
    printcolumn(name = "Healthy", type_ = "string", json_path = ".status.summary.healthy"),
    printcolumn(name = "Drifted", type_ = "integer", json_path = ".status.counts.drifted"),
    printcolumn(name = "InSync", type_ = "string", json_path = ".status.conditions[?(@.type==\"InSync\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantRecordSliceSpec {
    /// The record that it is a slice of.
    pub record_ref: RecordReference,
    /// The record's environment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// The record's type of cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_type: String,
    /// This cluster as the hub knows it.
    pub cluster: SliceCluster,
    /// The Placements that chose this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<RowPlacement>,
    /// The tenant's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<ResolvedConfig>,
    /// What the tenant runs on this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload: Vec<SliceWorkload>,
    /// The digest of everything above.
    #[schemars(length(max = 64))]
    pub digest: String,
    /// The version of this layout; an agent keeps fields that it doesn't know.
    pub format_version: u32,
}

/// Names the record on its hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordReference {
    /// The UID of the hub's Namespace `kube-system`.
    pub hub: String,
    /// The record's namespace on the hub, and the slice's here.
    pub namespace: String,
    /// The record's name.
    pub name: String,
    /// The record's UID.
    pub uid: String,
    /// The record's generation.
    pub generation: i64,
}

/// A cluster as the hub knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceCluster {
    /// The ManagedCluster's name.
    pub name: String,
    /// The bound cluster sets that it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// Its claims, those that the hub admin exposes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClusterClaim>,
    /// Its Kubernetes version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
}

/// A workload entry on this cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceWorkload {
    /// The entry's name in the record.
    pub name: String,
    /// Where its objects come from.
    pub source: WorkloadSource,
    /// Its objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<SliceManifest>,
}

/// A recorded object: identity always, manifest unless omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceManifest {
    /// Which object it is.
    #[serde(flatten)]
    pub object: ObjectIdentity,
    /// The SHA-256 of the manifest's JSON; absent for a Secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The manifest, unless omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// Whether the manifest is left out for its size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}

/// What the agent sees on this cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantRecordSliceStatus {
    /// The `spec.digest` that this status is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub observed_digest: String,
    /// Counts of objects per phase.
    #[serde(default)]
    pub counts: ObjectCounts,
    /// The values of the printer columns.
    #[serde(default)]
    pub summary: SliceSummary,
    /// Observed, InSync, Healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// One entry per recorded object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub objects: Vec<ObservedObject>,
}

/// Counts of objects per phase. `total` is the sum of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCounts {
    /// Recorded objects.
    pub total: u32,
    /// Objects in phase Healthy.
    pub healthy: u32,
    /// Objects in phase Progressing.
    pub progressing: u32,
    /// Objects in phase Drifted.
    pub drifted: u32,
    /// Objects in phase Missing.
    pub missing: u32,
    /// Objects in phase Failed.
    pub failed: u32,
    /// Objects in phase Unknown.
    pub unknown: u32,
    /// Objects that aren't looked at.
    pub not_inspected: u32,
}

/// The values of a slice's printer columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceSummary {
    /// `<namespace>/<name>` of the record.
    pub record: String,
    /// Healthy objects of all, for example `6/7`.
    pub healthy: String,
}

/// An object on this cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObservedObject {
    /// Which object it is.
    #[serde(flatten)]
    pub object: ObjectIdentity,
    /// What is known of it.
    #[serde(flatten)]
    pub state: ObjectState,
}
