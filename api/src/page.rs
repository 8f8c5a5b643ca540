//! TenantDeploymentRecordPage: a record's rows and its resolved workload.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Manifest;
use crate::schema;
use crate::state::{Drift, ObjectIdentity, Phase};

/// A page of a record: rows of clusters, or the workload that the rows' indices mean. Like an EndpointSlice it has
/// neither spec nor status. Owned by its record; written by the hub manager alone.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "tenancy.open-cluster-management.io",
    version = "v1alpha1",
    kind = "TenantDeploymentRecordPage",
    namespaced,
    no_spec,
    shortname = "tdrp",
    derive = "Default",
    derive = "PartialEq",
    doc = "A page of a TenantDeploymentRecord. Written by the hub manager; read-only for everybody else.",
    printcolumn(name = "Record", type_ = "string", json_path = ".recordName"),
    printcolumn(name = "Contents", type_ = "string", json_path = ".contents"),
    printcolumn(name = "Count", type_ = "integer", json_path = ".count"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PageData {
    /// The record's name, in the same namespace.
    #[schemars(length(max = 253))]
    pub record_name: String,
    /// What the page holds.
    pub contents: PageContents,
    /// How many rows (contents `Clusters`) or entries (contents `Workload`) the page holds.
    pub count: u32,
    /// Rows sorted by cluster; contents `Clusters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub clusters: Vec<ClusterRow>,
    /// The record's workload entries; contents `Workload`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub workload: Vec<ResolvedWorkload>,
    /// The objects of the workload entries, each distinct manifest once; contents `Workload`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub objects: Vec<ResolvedObject>,
    /// The tenant's configuration objects; contents `Workload`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub config: Vec<ResolvedConfig>,
}

/// What a page holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PageContents {
    /// Rows of clusters.
    #[default]
    Clusters,
    /// The resolved workload and configuration.
    Workload,
}

/// A cluster of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRow {
    /// The ManagedCluster's name.
    pub cluster_name: String,
    /// The Placements that choose it, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<RowPlacement>,
    /// Whether the record names it in `clusterNames`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explicit: bool,
    /// Why it is still in the record although nothing chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The cluster itself.
    #[serde(default)]
    pub cluster: RowCluster,
    /// The slice that the cluster should hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<RowSlice>,
    /// What OCM says of the works that carry the workload, and what the agent says of their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload: Vec<RowWorkload>,
    /// The agent's newest report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RowReport>,
    /// The worst of the inspected objects.
    pub phase: Phase,
    /// Why, where the objects don't say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When the phase last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// What is wrong with the row's sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<crate::FindingType>,
}

/// A Placement that chooses a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowPlacement {
    /// The Placement's name.
    pub name: String,
    /// The index of the decision group.
    pub decision_group: i32,
}

/// A cluster that nothing chooses any more stays in the record while it can't be reached: OCM's taints make
/// Placements drop it, and an outage must not make a record look smaller or healthier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Since when nothing chooses it.
    pub since: Option<Time>,
    /// Since when it is back without a break; it leaves when that has lasted for the return grace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Time>,
}

/// A row's facts about the cluster itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowCluster {
    /// Its condition ManagedClusterConditionAvailable: `True`, `False` or `Unknown`.
    pub available: String,
    /// Its Kubernetes version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
    /// The bound cluster sets that it belongs to, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
}

/// The slice of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowSlice {
    /// The digest of the newest slice.
    pub digest: String,
    /// Whether the cluster holds it.
    pub delivered: bool,
}

/// A workload entry on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowWorkload {
    /// The entry's index in the Workload page.
    pub index: u32,
    /// The ManifestWork that carries it; absent for an inline entry, or when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<RowWork>,
    /// What the agent says of the entry's objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<RowObject>,
}

/// What OCM says of a ManifestWork.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowWork {
    /// Its name, in the cluster's namespace.
    pub name: String,
    /// Whether all its manifests are applied at the current generation: `True`, `False` or `Unknown`.
    pub applied: String,
    /// Whether all its objects exist: `True`, `False` or `Unknown`.
    pub available: String,
}

/// What the agent says of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowObject {
    /// The object's index in the Workload page.
    pub index: u32,
    /// Its state.
    pub phase: Phase,
    /// Machine-readable cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Human-readable cause; none when Healthy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Recorded fields that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
    /// Who applies the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manager: String,
}

/// The agent's newest report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RowReport {
    /// The digest of the slice that it is about.
    pub digest: String,
    /// Whether it is about what the cluster holds now, and agent and cluster are available.
    pub current: bool,
}

/// A workload entry with what its source says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedWorkload {
    /// The index that rows use. An entry keeps its index while it stays.
    pub index: u32,
    /// The entry's name in the record.
    pub entry: String,
    /// Where its objects come from.
    pub source: WorkloadSource,
    /// The indices of its objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<u32>,
}

/// Where a workload entry's objects come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSource {
    /// `ManifestWorkReplicaSet`, `ManifestWork` or `Inline`.
    pub kind: SourceKind,
    /// The source's name; empty for inline objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Kinds of sources of a workload entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SourceKind {
    /// The record itself.
    #[default]
    Inline,
    /// A ManifestWorkReplicaSet of the record's namespace.
    ManifestWorkReplicaSet,
    /// ManifestWorks in clusters' namespaces.
    ManifestWork,
}

/// An object of the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedObject {
    /// The index that entries and rows use.
    pub index: u32,
    /// Which object it is.
    #[serde(flatten)]
    pub object: ObjectIdentity,
    /// The SHA-256 of the manifest's JSON; absent for a Secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The manifest's size in bytes.
    pub size: u32,
    /// The manifest, unless omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// Whether the manifest is left out, for its size or because it is a Secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}

/// A configuration object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedConfig {
    /// API group; empty for core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// The SHA-256 of the content's JSON.
    pub digest: String,
    /// Everything but apiVersion, kind, metadata and status, unless omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::opaque_object")]
    pub content: Option<serde_json::Value>,
    /// Whether the content is left out for its size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omitted: bool,
}
