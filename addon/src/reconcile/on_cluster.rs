//! The add-on on one cluster, in the order of the add-on contract: configuration, registration, deployment, status.

use jiff::Timestamp;
use kube::core::ApiResource;
use serde_json::Value;
use tenant_records_api::ocm::{ADDON_CONFIGURED, AddOnDeploymentConfig, ConditionsExt, ManagedClusterAddOn};
use tenant_records_runtime::ObjectKey;

use super::deploy::Settings;
use super::{ReconcileError, Reconciler, group_resource, is_templated};
use crate::change::Owner;
use crate::cluster::Cluster;
use crate::config::{ConfigError, desired_configs};
use crate::registration::{install_namespace, kube_client_registration, registrations};
use crate::status::{AddOnReport, ManifestApplied, RegistrationApplied, RegistrationReport};
use crate::view::OnCluster;

impl Reconciler {
    pub(super) async fn reconcile_on_cluster(&self, name: &str) -> Result<(), ReconcileError> {
        let on = self.view().on_cluster(self.addon.name(), &self.addon.hub_role_name(), name);
        let Some(on) = on else { return Ok(()) };
        let Some(cluster) = on.cluster.clone().filter(|cluster| !cluster.is_deleting()) else { return Ok(()) };
        if !is_for_us(&on.addon) {
            return Ok(());
        }
        let uid = on.addon.metadata.uid.clone().unwrap_or_default();
        let owner = Owner { addon: self.addon.name(), namespace: name, uid: &uid, manager: self.addon.manager_name() };
        self.bring_about(&owner, &on, &cluster).await
    }

    async fn bring_about(&self, owner: &Owner<'_>, on: &OnCluster, cluster: &Cluster) -> Result<(), ReconcileError> {
        let mut failure = None;
        let mut report = AddOnReport {
            supported_configs: self.supported.clone(),
            known: on.known.clone(),
            ..AddOnReport::default()
        };
        match self.settings(on) {
            Ok(settings) => {
                let wanted = kube_client_registration(&*self.addon, owner.namespace);
                let published = registrations(wanted.clone(), &on.addon.status);
                let permissions = self.apply_permissions(owner, on, &published).await;
                let applied = told(permissions, &mut failure, RegistrationApplied::Failed);
                let namespace = settings.install_namespace.clone();
                report.registration = applied.map(|applied| RegistrationReport { wanted, namespace, applied });
                if on.addon.status.conditions.is_true(ADDON_CONFIGURED) {
                    let deployed = self.deploy(owner, on, cluster, &settings).await;
                    report.manifest_applied = told(deployed, &mut failure, ManifestApplied::NotWritten);
                }
            }
            // OCM's addon-manager will decide; until then everything stays as it is.
            Err(pending) if pending.is_pending() => {}
            Err(error) => report.manifest_applied = Some(ManifestApplied::NotWritten(error.to_string())),
        }
        self.write_report(owner, on, &report).await?;
        failure.map_or(Ok(()), Err)
    }

    fn settings(&self, on: &OnCluster) -> Result<Settings, ConfigError> {
        let references = &on.addon.status.config_references;
        let configs = desired_configs(references, &self.supported, &on.known)?;
        let kind = group_resource(&ApiResource::erase::<AddOnDeploymentConfig>(&()));
        let deployment = configs.get(&kind).map(|config| config.deployment_config()).transpose()?;
        let configured = deployment.as_ref().map(|config| config.agent_install_namespace.as_str());
        let install_namespace = install_namespace(&*self.addon, &on.addon, configured);
        Ok(Settings { configs, deployment, install_namespace })
    }

    /// Writes what the ManagedClusterAddOn's status doesn't say yet; without a call when it says everything.
    async fn write_report(
        &self,
        owner: &Owner<'_>,
        on: &OnCluster,
        report: &AddOnReport,
    ) -> Result<(), ReconcileError> {
        let now = Timestamp::now();
        let present = serde_json::to_value(&*on.addon).unwrap_or_default();
        let mut edited = present.clone();
        report.write_to(&mut edited, now);
        if edited != present {
            let key = ObjectKey::new(owner.namespace, owner.addon);
            let edit = |addon: &mut Value| report.write_to(addon, now);
            self.hub.edit_status(&self.kinds.addon, &key, owner.uid, edit).await?;
        }
        Ok(())
    }
}

/// What a step has to say in the status; a failure that passes by itself says nothing. Failures are kept for the end: one
/// step's doesn't stop the others.
fn told<T>(
    result: Result<T, ReconcileError>,
    failure: &mut Option<ReconcileError>,
    says: impl FnOnce(String) -> T,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let answer = error.is_for_people().then(|| says(error.to_string()));
            failure.get_or_insert(error);
            answer
        }
    }
}

/// Whether this manager takes care of it: it isn't about to go, OCM's addon-manager has accepted it and decided how it is
/// configured, and not by an AddOnTemplate.
fn is_for_us(addon: &ManagedClusterAddOn) -> bool {
    let accepted = addon
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.kind == "ClusterManagementAddOn" && Some(&owner.name) == addon.metadata.name.as_ref());
    let decided = addon.status.conditions.is_true(ADDON_CONFIGURED) || !addon.status.config_references.is_empty();
    addon.metadata.deletion_timestamp.is_none() && accepted && decided && !is_templated(addon)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_this_manager_takes_care_of() {
        let ours = json!({
            "metadata": {"name": "demo", "ownerReferences": [
                {"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ClusterManagementAddOn", "name": "demo", "uid": "u"},
            ]},
            "status": {
                "conditions": [{"type": "Configured", "status": "True"}],
                "configReferences": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "name": "x"}],
            },
        });
        let check = |path: &str, value: Value| {
            let mut changed = ours.clone();
            let (parent, last) = path.rsplit_once('/').expect("a path");
            changed.pointer_mut(parent).expect("a parent")[last] = value;
            is_for_us(&serde_json::from_value(changed).expect("an add-on"))
        };
        assert!(check("/status/namespace", json!("anything")));
        assert!(check("/status/configReferences", json!([])));
        assert!(check("/status/conditions", json!([])), "its turn in a rollout hasn't come, but it is decided");
        let template =
            json!([{"group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": "x"}]);
        for (path, value) in [
            ("/metadata/deletionTimestamp", json!("2026-11-30T10:00:00Z")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/name", json!("other")),
            ("/status", json!({})),
            ("/status/configReferences", template),
        ] {
            assert!(!check(path, value), "{path}");
        }
    }

    #[test]
    fn only_what_people_can_mend_is_told() {
        let mut failure = None;
        let outdated = Err(ReconcileError::Outdated("ManifestWork a/b".into()));
        assert_eq!(told(outdated, &mut failure, ManifestApplied::NotWritten), None);
        let taken = Err(crate::works::WorksError::NameTaken("a/b".into()).into());
        assert!(matches!(told(taken, &mut failure, ManifestApplied::NotWritten), Some(ManifestApplied::NotWritten(_))));
        assert!(matches!(failure, Some(ReconcileError::Outdated(_))), "the first failure is kept");
    }
}
