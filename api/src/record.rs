//! TenantDeploymentRecord: what a tenant deploys where, and how it fares.

mod rollout;
mod status;

pub use rollout::*;
pub use status::*;

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a tenant deploys where. The tenant writes it in its workspace namespace on the hub; the hub manager answers
/// in the status and in pages beside it.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "tenancy.open-cluster-management.io",
    version = "v1alpha1",
    kind = "TenantDeploymentRecord",
    namespaced,
    status = "TenantDeploymentRecordStatus",
    shortname = "tdr",
    category = "open-cluster-management",
    derive = "Default",
    derive = "PartialEq",
    doc = "One record per tenant: where its workloads are, what they are, and how they fare.",
    printcolumn(name = "Env", type_ = "string", json_path = ".spec.environment"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.clusterType"),
    printcolumn(name = "Clusters", type_ = "integer", json_path = ".status.summary.clusters"),
    printcolumn(name = "Healthy", type_ = "string", json_path = ".status.summary.healthy"),
    printcolumn(name = "Attention", type_ = "integer", json_path = ".status.summary.attention"),
    printcolumn(name = "Current", type_ = "string", json_path = ".status.summary.current"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantDeploymentRecordSpec {
    /// The environment, for example `prod`. Rules of a label value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63), regex(pattern = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"))]
    pub environment: String,
    /// The type of cluster, for example `api`. Rules of a label value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63), regex(pattern = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"))]
    pub cluster_type: String,
    /// Placements of this namespace that choose the clusters. A cluster in several counts once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(validation = Rule::new("self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))")
        .message("name each Placement once"))]
    pub placement_refs: Vec<PlacementReference>,
    /// Clusters by name, allowed only inside cluster sets that are bound to this namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub cluster_names: Vec<String>,
    /// The tenant's configuration objects, in this namespace: any kind that the manager may read, but no Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub config_refs: Vec<ConfigReference>,
    /// What the tenant runs. Each entry has exactly one source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".to_string()]),
        validation = Rule::new("self.filter(w, has(w.manifestWorkReplicaSetRef)).size() <= 16")
            .message("at most 16 entries may have a manifestWorkReplicaSetRef")
    )]
    pub workload: Vec<WorkloadEntry>,
}

/// Chooses Placements of the record's namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.name) != has(self.selector)").message("give exactly one of name, selector"))]
pub struct PlacementReference {
    /// The Placement's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Placements by label; `{}` takes every Placement of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How slices are rolled out to the clusters that this reference chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_strategy: Option<RolloutStrategy>,
}

/// Names or selects configuration objects of the record's namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.name) != has(self.selector)").message("give exactly one of name, selector"),
    validation = Rule::new("self.resource != 'secrets' || (has(self.group) && self.group != '')")
        .message("Secrets can't be recorded; name a ConfigMap or a resource of your own")
)]
pub struct ConfigReference {
    /// API group; empty for core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Plural resource name, for example `configmaps`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub resource: String,
    /// The object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Objects by label; `{}` takes every object of that resource in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// A part of what the tenant runs, with exactly one source.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "[has(self.manifestWorkReplicaSetRef), has(self.manifestWorkSelector), has(self.manifest), has(self.manifests)]\
         .filter(given, given).size() == 1"
    ).message("give exactly one of manifestWorkReplicaSetRef, manifestWorkSelector, manifest, manifests"),
    validation = Rule::new("!has(self.clusterName) || has(self.manifest) || has(self.manifests)")
        .message("clusterName narrows an entry with manifest or manifests only")
)]
pub struct WorkloadEntry {
    /// The entry's name, unique in the record.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Narrows an inline entry to one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
    /// What a ManifestWorkReplicaSet of this namespace deploys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_work_replica_set_ref: Option<ManifestWorkReplicaSetReference>,
    /// What ManifestWorks deploy that carry these labels and the label
    /// `tenancy.open-cluster-management.io/tenant-namespace` with this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_work_selector: Option<LabelSelector>,
    /// One object that something else applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<InlineManifest>,
    /// Objects that something else applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50))]
    pub manifests: Option<Vec<InlineManifest>>,
}

/// Names or selects ManifestWorkReplicaSets of the record's namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.name) != has(self.selector)").message("give exactly one of name, selector"))]
pub struct ManifestWorkReplicaSetReference {
    /// The set's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Sets by label; `{}` takes every set of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// A whole Kubernetes object in JSON.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Manifest(pub serde_json::Value);

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl JsonSchema for Manifest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Manifest".into()
    }

    /// The API server checks apiVersion, kind and metadata and keeps the rest as it is.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}

/// A whole Kubernetes object in JSON that a tenant gives: one object with a name, and no Secret.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InlineManifest(pub serde_json::Value);

impl fmt::Debug for InlineManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl JsonSchema for InlineManifest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "InlineManifest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Manifest::json_schema(generator);
        let rules = serde_json::json!([
            {
                "rule": "has(self.metadata) && has(self.metadata.name) && self.metadata.name != ''",
                "message": "metadata.name is missing",
            },
            {"rule": "!self.kind.endsWith('List')", "message": "a list hides objects: give each object by itself"},
            {"rule": "!(self.kind == 'Secret' && self.apiVersion == 'v1')", "message": "Secrets can't be recorded"},
        ]);
        schema.insert("x-kubernetes-validations".to_owned(), rules);
        schema
    }
}
