//! States of objects and clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of an object on a cluster, or of a cluster in a record. Variants stand worst first.
///
/// A cluster's phase is the worst of its inspected objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// It won't get well by itself.
    Failed,
    /// It was recorded and isn't there.
    Missing,
    /// A recorded field has another value.
    Drifted,
    /// Nobody can tell; the reason says why.
    #[default]
    Unknown,
    /// It is on its way.
    Progressing,
    /// It is as it should be.
    Healthy,
    /// It isn't looked at, as a Secret; neither healthy nor unknown.
    NotInspected,
    /// The cluster is leaving the record and its slice is being withdrawn.
    Leaving,
}

impl Phase {
    /// The name as it stands in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Missing => "Missing",
            Self::Drifted => "Drifted",
            Self::Unknown => "Unknown",
            Self::Progressing => "Progressing",
            Self::Healthy => "Healthy",
            Self::NotInspected => "NotInspected",
            Self::Leaving => "Leaving",
        }
    }
}

/// Why a phase is what it is, where the object itself doesn't say.
pub mod reason {
    /// No report of this cluster has come yet.
    pub const NEVER_REPORTED: &str = "NeverReported";
    /// The cluster can't be reached; its last state is kept.
    pub const CLUSTER_UNAVAILABLE: &str = "ClusterUnavailable";
    /// The newest report isn't about what the cluster holds now.
    pub const REPORT_STALE: &str = "ReportStale";
}

/// One recorded field that has another value on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// JSON pointer (RFC 6901) into the object.
    #[schemars(length(max = 512))]
    pub path: String,
    /// The recorded value in JSON, cut to 256 bytes; absent where values aren't given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub recorded: Option<String>,
    /// The actual value in JSON, cut to 256 bytes; absent where the field is absent or values aren't given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub actual: Option<String>,
}

/// Names an object on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectIdentity {
    /// API group; empty for core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// API version.
    #[schemars(length(max = 63))]
    pub version: String,
    /// Kind.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// The object's namespace; empty when it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// The object's name.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// What is known of one object on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectState {
    /// The object's state.
    pub phase: Phase,
    /// Machine-readable cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub reason: String,
    /// Human-readable cause, at most 256 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub message: String,
    /// Who applies the object, from its managedFields.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub manager: String,
    /// When the phase last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Recorded fields that differ, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub drift: Vec<Drift>,
    /// How many recorded fields differ in all, when more than are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_total: Option<u32>,
}

/// Counts of clusters per phase. `total` is the sum of all but `leaving`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCounts {
    /// Clusters in the record.
    pub total: u32,
    /// Clusters that hold their newest slice.
    pub delivered: u32,
    /// Clusters that ever reported.
    pub reported: u32,
    /// Clusters whose report is current.
    pub current: u32,
    /// Clusters in phase Healthy.
    pub healthy: u32,
    /// Clusters in phase Progressing.
    pub progressing: u32,
    /// Clusters in phase Drifted.
    pub drifted: u32,
    /// Clusters in phase Missing.
    pub missing: u32,
    /// Clusters in phase Failed.
    pub failed: u32,
    /// Clusters in phase Unknown.
    pub unknown: u32,
    /// Clusters that are leaving; not in `total`.
    pub leaving: u32,
}
