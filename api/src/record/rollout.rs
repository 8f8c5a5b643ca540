//! OCM's RolloutStrategy (`cluster.open-cluster-management.io/v1alpha1`), field by field.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How slices are rolled out to clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// Which of the three it is.
    #[serde(rename = "type", default)]
    pub type_: RolloutType,
    /// Settings of type All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutConfig>,
    /// Settings of type Progressive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,
    /// Settings of type ProgressivePerGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,
}

/// The kinds of rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutType {
    /// All clusters at once.
    #[default]
    All,
    /// A number of clusters at a time.
    Progressive,
    /// One decision group after the other.
    ProgressivePerGroup,
}

/// What makes a rollout go on or stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutConfig {
    /// How long a cluster must be well before the next one starts, for example `30s`. Default `0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub min_success_time: Option<String>,
    /// How long a cluster may take, for example `10m`. Default `None`: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^(([0-9])+[h|m|s])|None$"))]
    pub progress_deadline: Option<String>,
    /// How many clusters, or which percentage, may fail before the rollout stops. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<IntOrString>,
}

/// Settings of a Progressive rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressive {
    /// Common settings.
    #[serde(flatten)]
    pub config: RolloutConfig,
    /// Groups that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// How many clusters, or which percentage, at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<IntOrString>,
}

/// Settings of a rollout by decision groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    /// Common settings.
    #[serde(flatten)]
    pub config: RolloutConfig,
    /// Groups that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
}

/// Names a decision group, by name or else by index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    /// The group's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub group_name: String,
    /// The group's index, from 0; used without a name.
    #[serde(default)]
    pub group_index: i32,
}
