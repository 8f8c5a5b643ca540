//! The spec of a deploy work: what is written, and what of a served one is compared.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tenant_records_api::ocm::or_default;

use super::manifest::{Manifest, ManifestKey, normalize};
use crate::config::go_json;

/// Tells the work agent what to do with one or more manifests beyond applying them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManifestConfig {
    /// Which manifests.
    #[serde(deserialize_with = "or_default")]
    pub resource_identifier: ResourceIdentifier,
    /// What to report of the applied objects.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How to apply; OCM's `Update` where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
}

/// Names one or more manifests of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceIdentifier {
    /// API group; empty for core.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource name.
    #[serde(deserialize_with = "or_default")]
    pub resource: String,
    /// The object's namespace, with `*` for any text; empty when it has none.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object's name, with `*` for any text.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// What the work agent reports of an applied object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FeedbackRule {
    /// `WellKnownStatus` or `JSONPaths`.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub type_: String,
    /// The fields, for `JSONPaths`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<JsonPath>,
}

impl FeedbackRule {
    /// The figures that OCM knows for the object's kind, such as a Deployment's replicas.
    pub fn well_known_status() -> Self {
        Self { type_: "WellKnownStatus".into(), json_paths: Vec::new() }
    }
}

/// A field that the work agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JsonPath {
    /// The name to report it under.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Where it is, for example `.status.phase`.
    #[serde(deserialize_with = "or_default")]
    pub path: String,
}

/// How the work agent applies a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// `Update`, `CreateOnly`, `ServerSideApply` or `ReadOnly`.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub type_: String,
    /// For `ServerSideApply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApply>,
}

/// How the work agent applies a manifest server-side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSideApply {
    /// Whether to take fields from others.
    #[serde(deserialize_with = "or_default")]
    pub force: bool,
    /// Begins with `work-agent`.
    #[serde(deserialize_with = "or_default")]
    pub field_manager: String,
}

/// What becomes of applied objects when their work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOption {
    #[serde(deserialize_with = "or_default")]
    propagation_policy: String,
    #[serde(deserialize_with = "or_default")]
    selectively_orphans: SelectivelyOrphan,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SelectivelyOrphan {
    #[serde(deserialize_with = "or_default")]
    orphaning_rules: Vec<OrphaningRule>,
}

/// An object that stays when its work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OrphaningRule {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub(super) group: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) resource: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
}

/// The spec of a deploy work. Fields of OCM's that aren't here are neither written nor compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WorkSpec {
    #[serde(deserialize_with = "or_default")]
    workload: Workload,
    delete_option: Option<DeleteOption>,
    #[serde(deserialize_with = "or_default")]
    manifest_configs: Vec<ManifestConfig>,
    /// The account that applies on the work agent's behalf; never one of ours.
    executor: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Workload {
    #[serde(deserialize_with = "or_default")]
    manifests: Vec<Value>,
}

impl WorkSpec {
    /// The spec of the work for some of an add-on's manifests. Rules about manifests of other works do no harm.
    pub(super) fn new<'m>(manifests: impl Iterator<Item = &'m Manifest> + Clone, configs: &[ManifestConfig]) -> Self {
        let orphaning_rules: Vec<_> = manifests.clone().filter_map(Manifest::orphaning_rule).collect();
        let delete_option = (!orphaning_rules.is_empty()).then(|| DeleteOption {
            propagation_policy: "SelectivelyOrphan".into(),
            selectively_orphans: SelectivelyOrphan { orphaning_rules },
        });
        let manifests = manifests.map(|manifest| manifest.object.clone()).collect();
        Self { workload: Workload { manifests }, delete_option, manifest_configs: configs.to_vec(), executor: None }
    }

    /// As it is written: absent fields are null, which removes them from a work that has them.
    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The digest of what is compared, the same for a spec that was written and for the served one that came of it.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut spec = self.clone();
        spec.workload.manifests.iter_mut().for_each(normalize);
        Sha256::digest(go_json(&spec.to_json())).into()
    }

    pub(super) fn keys(&self) -> Vec<ManifestKey> {
        self.workload.manifests.iter().filter_map(ManifestKey::of).collect()
    }
}

/// The feedback of each Deployment's and DaemonSet's replicas.
pub fn workload_feedback(manifests: &[Value]) -> Vec<ManifestConfig> {
    manifests
        .iter()
        .filter_map(|manifest| {
            let key = ManifestKey::of(manifest)?;
            let resource = match (key.group.as_str(), key.kind.as_str()) {
                ("apps", "Deployment") => "deployments",
                ("apps", "DaemonSet") => "daemonsets",
                _ => return None,
            };
            Some(ManifestConfig {
                resource_identifier: ResourceIdentifier {
                    group: key.group,
                    resource: resource.into(),
                    namespace: key.namespace,
                    name: key.name,
                },
                feedback_rules: vec![FeedbackRule::well_known_status()],
                update_strategy: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifests() -> Vec<Manifest> {
        Manifest::all(vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "agents",
                "annotations": {"addon.open-cluster-management.io/deletion-orphan": ""}}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "agents"},
                "spec": {"replicas": 1, "weight": 1.0}}),
        ])
        .expect("manifests")
    }

    #[test]
    fn a_spec_with_feedback_and_orphans() {
        let manifests = manifests();
        let objects: Vec<_> = manifests.iter().map(|manifest| manifest.object.clone()).collect();
        let spec = WorkSpec::new(manifests.iter(), &workload_feedback(&objects)).to_json();
        assert_eq!(
            spec["deleteOption"],
            json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": [{"resource": "namespaces", "name": "agents"}]},
            })
        );
        assert_eq!(
            spec["manifestConfigs"],
            json!([{
                "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "agents", "name": "agent"},
                "feedbackRules": [{"type": "WellKnownStatus"}],
            }])
        );
    }

    #[test]
    fn what_the_api_server_adds_is_no_difference() {
        let manifests = manifests();
        let objects: Vec<_> = manifests.iter().map(|manifest| manifest.object.clone()).collect();
        let written = WorkSpec::new(manifests.iter(), &workload_feedback(&objects));
        let mut served = written.to_json();
        served.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        served["manifestConfigs"][0]["feedbackScrapeType"] = "Poll".into();
        served["deleteOption"]["selectivelyOrphans"]["orphaningRules"][0]["group"] = "".into();
        served["workload"]["manifests"][1]["metadata"]["creationTimestamp"] = Value::Null;
        served["workload"]["manifests"][1]["spec"]["weight"] = 1.into();
        let read: WorkSpec = serde_json::from_value(served.clone()).expect("readable");
        assert_eq!(read.digest(), written.digest());

        for (path, value) in [
            ("/workload/manifests/1/spec/replicas", json!(2)),
            ("/workload/manifests/1/metadata/labels", json!({"a": "b"})),
            ("/manifestConfigs/0/resourceIdentifier/name", json!("other")),
            ("/deleteOption/propagationPolicy", json!("Orphan")),
            ("/executor", json!({"subject": {"type": "ServiceAccount"}})),
        ] {
            let mut changed = served.clone();
            let (parent, last) = path.rsplit_once('/').expect("a path");
            changed.pointer_mut(parent).expect("a parent")[last] = value;
            let read: WorkSpec = serde_json::from_value(changed).expect("readable");
            assert_ne!(read.digest(), written.digest(), "{path}");
        }
    }
}
