//! TenantRecordReport: what a cluster's agent sees, on the hub.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::slice::{ObjectCounts, ObservedObject};

/// What the agent of a cluster sees, for all its slices, in the cluster's namespace on the hub. Number 0 is created
/// empty by the hub manager; apart from that the agent alone writes it.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "tenancy.open-cluster-management.io",
    version = "v1alpha1",
    kind = "TenantRecordReport",
    namespaced,
    no_spec,
    shortname = "trr",
    derive = "Default",
    derive = "PartialEq",
    doc = "What the agent of a managed cluster reports about the slices there.",
    printcolumn(name = "Number", type_ = "integer", json_path = ".number"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ReportData {
    /// Its number among the cluster's reports, from 0; the hub reads at most 16.
    #[schemars(range(max = 15))]
    pub number: u32,
    /// One row per slice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub slices: Vec<SliceReport>,
}

/// The state of a slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceReport {
    /// The record's namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The record's name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The digest of the slice that it is about.
    #[schemars(length(max = 64))]
    pub digest: String,
    /// Counts of objects per phase.
    pub counts: ObjectCounts,
    /// The objects that aren't plainly Healthy, and who manages each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2000))]
    pub objects: Vec<ObservedObject>,
}
