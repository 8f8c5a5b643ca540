//! What is kept of a deploy work that exists: not its manifests, only what tells whether they are as they should be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use tenant_records_api::ocm::{
    Condition, ConditionsExt, FALSE, LABEL_ADDON_NAME, ManifestCondition, ManifestWork, ManifestWorkStatus, TRUE,
    WORK_APPLIED, lean_metadata, or_default,
};

use super::deploy_work_index;
use super::manifest::ManifestKey;
use super::spec::WorkSpec;
use crate::change::{ANNOTATION_MANAGER, Owner, annotation, label};
use crate::projection::projection;

/// At most so many failing manifests of a work are told.
const FAILURES_TOLD: usize = 3;

/// A ManifestWork, reduced.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Served")]
pub struct DeployedWork {
    /// Standard metadata without managedFields.
    pub metadata: ObjectMeta,
    /// Who has written to it, by the names in its managedFields.
    pub(super) field_managers: Vec<String>,
    /// What it holds.
    pub(super) keys: Vec<ManifestKey>,
    /// Of the fields that this library writes.
    pub(super) digest: [u8; 32],
    applied: Applied,
}
projection!(DeployedWork of ManifestWork);

/// What the work agent says about the manifests of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing yet.
    Unknown,
    /// All of them are applied.
    Yes,
    /// Some of them aren't.
    No {
        /// Some of those and why, one text each.
        failures: Vec<String>,
    },
}

/// To whom a work with the name of a deploy work belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// This manager made it for this ManagedClusterAddOn.
    Ours,
    /// OCM's addon-manager made it for this ManagedClusterAddOn, from an AddOnTemplate. It may be taken over.
    Inherited,
    /// This manager made it for an earlier ManagedClusterAddOn of the same name. It is about to go.
    Former,
    /// Somebody else made it.
    Foreign,
}

#[derive(Deserialize)]
struct Served {
    metadata: Box<RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    spec: WorkSpec,
    #[serde(default, deserialize_with = "or_default")]
    status: ManifestWorkStatus,
}

impl TryFrom<Served> for DeployedWork {
    type Error = serde_json::Error;

    fn try_from(served: Served) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Lean(#[serde(deserialize_with = "lean_metadata")] ObjectMeta);
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Managed {
            #[serde(default, deserialize_with = "or_default")]
            managed_fields: Vec<ManagedFields>,
        }
        #[derive(Default, Deserialize)]
        struct ManagedFields {
            #[serde(default, deserialize_with = "or_default")]
            manager: String,
        }
        let Lean(metadata) = serde_json::from_str(served.metadata.get())?;
        let Managed { managed_fields } = serde_json::from_str(served.metadata.get())?;
        Ok(Self {
            metadata,
            field_managers: managed_fields.into_iter().map(|fields| fields.manager).collect(),
            keys: served.spec.keys(),
            digest: served.spec.digest(),
            applied: applied_of(&served.status),
        })
    }
}

fn applied_of(status: &ManifestWorkStatus) -> Applied {
    match status.conditions.condition(WORK_APPLIED) {
        None => Applied::Unknown,
        Some(condition) if condition.status == TRUE => Applied::Yes,
        Some(_) => Applied::No {
            failures: status.resource_status.manifests.iter().filter_map(failure_of).take(FAILURES_TOLD).collect(),
        },
    }
}

fn failure_of(manifest: &ManifestCondition) -> Option<String> {
    let condition: &Condition = manifest.conditions.condition(WORK_APPLIED).filter(|c| c.status == FALSE)?;
    let meta = &manifest.resource_meta;
    let key = ManifestKey {
        group: meta.group.clone(),
        kind: if meta.kind.is_empty() { meta.resource.clone() } else { meta.kind.clone() },
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
    };
    Some(format!("{key}: {}", condition.message))
}

impl DeployedWork {
    /// The work's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The work's index, if it has the name of one of the add-on's deploy works.
    pub fn index(&self, addon: &str) -> Option<u32> {
        deploy_work_index(addon, self.name())
    }

    /// Whether it is about to go.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What the work agent says about its manifests.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// To whom it belongs, seen from the manager of an add-on on a cluster.
    pub fn ownership(&self, owner: &Owner<'_>) -> Ownership {
        let references = self.metadata.owner_references.iter().flatten();
        let mut controllers = references.filter(|reference| reference.controller == Some(true));
        let for_this = controllers.any(|reference| reference.uid == owner.uid);
        let labelled = label(&self.metadata, LABEL_ADDON_NAME) == Some(owner.addon);
        let marked = annotation(&self.metadata, ANNOTATION_MANAGER) == Some(owner.manager);
        let by_us = marked && self.field_managers.iter().any(|name| name == owner.manager);
        match (for_this, by_us) {
            (true, true) => Ownership::Ours,
            (true, false) if labelled => Ownership::Inherited,
            (false, true) => Ownership::Former,
            _ => Ownership::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const OWNER: Owner<'static> = Owner { addon: "demo", namespace: "edge-01", uid: "uid", manager: "demo-manager" };

    fn work(metadata: Value) -> DeployedWork {
        serde_json::from_str(&json!({ "metadata": metadata }).to_string()).expect("a work")
    }

    fn metadata(controller_uid: &str, annotated: &str, managers: &[&str]) -> Value {
        json!({
            "name": "addon-demo-deploy-0",
            "labels": {LABEL_ADDON_NAME: "demo"},
            "annotations": {ANNOTATION_MANAGER: annotated},
            "ownerReferences": [{
                "apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ManagedClusterAddOn",
                "name": "demo", "uid": controller_uid, "controller": true,
            }],
            "managedFields": managers.iter().map(|name| json!({
                "manager": name, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}},
            })).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn ownership_takes_more_than_a_name() {
        for (controller, annotated, managers, expected) in [
            ("uid", "demo-manager", &["demo-manager", "work"][..], Ownership::Ours),
            ("uid", "", &["addon"], Ownership::Inherited),
            ("uid", "demo-manager", &["addon"], Ownership::Inherited),
            ("old", "demo-manager", &["demo-manager"], Ownership::Former),
            ("old", "demo-manager", &["kubectl"], Ownership::Foreign),
            ("old", "", &["demo-manager"], Ownership::Foreign),
        ] {
            let work = work(metadata(controller, annotated, managers));
            assert_eq!(work.ownership(&OWNER), expected, "{controller} {annotated} {managers:?}");
        }
        let mut owned_by_chance = metadata("uid", "", &["kubectl"]);
        owned_by_chance["labels"] = json!({});
        assert_eq!(work(owned_by_chance).ownership(&OWNER), Ownership::Foreign);
        let mut not_controlled = metadata("uid", "demo-manager", &["demo-manager"]);
        not_controlled["ownerReferences"][0]["controller"] = false.into();
        assert_eq!(work(not_controlled).ownership(&OWNER), Ownership::Former);
        assert_eq!(work(json!({"name": "addon-demo-deploy-0"})).ownership(&OWNER), Ownership::Foreign);
    }

    #[test]
    fn failures_say_which_manifest_and_why() {
        let failing = |name: &str| {
            json!({
                "resourceMeta": {"group": "apps", "kind": "Deployment", "namespace": "n", "name": name},
                "conditions": [{"type": "Applied", "status": "False", "message": "no quota"}],
            })
        };
        let text = json!({
            "metadata": {"name": "addon-demo-deploy-0"},
            "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}]}},
            "status": {
                "conditions": [{"type": "Applied", "status": "False"}],
                "resourceStatus": {"manifests": [
                    {"resourceMeta": {"kind": "Namespace", "name": "n"}, "conditions": [{"type": "Applied", "status": "True"}]},
                    failing("a"), failing("b"), failing("c"), failing("d"),
                ]},
            },
        })
        .to_string();
        let work: DeployedWork = serde_json::from_str(&text).expect("a work");
        assert_eq!(work.keys.len(), 1);
        let Applied::No { failures } = work.applied() else { panic!("{:?}", work.applied()) };
        assert_eq!(failures.len(), FAILURES_TOLD);
        assert_eq!(failures[0], "Deployment n/a: no quota");
    }
}
