//! The ClusterManagementAddOn: what this manager says about the add-on as a whole.

use serde_json::{Value, json};
use tenant_records_api::ocm::{
    ADDON_API_VERSION, ANNOTATION_LIFECYCLE, AddOnMeta, ClusterManagementAddOn, ConfigGroupResource, ConfigMeta,
    DesiredConfigReference, LIFECYCLE_ADDON_MANAGER,
};
use tenant_records_runtime::ObjectKey;

use super::{ReconcileError, Reconciler, is_template};
use crate::change::annotation;
use crate::config::ConfigKey;
use crate::status::write_spec_hashes;

impl Reconciler {
    /// Registers with a ClusterManagementAddOn that somebody made, and keeps the hashes of its configurations current.
    pub(super) async fn reconcile_offer(&self) -> Result<(), ReconcileError> {
        let name = self.addon.name();
        let Some(offer) = self.view().offer(name) else {
            tracing::info!(addon = name, "waiting for its ClusterManagementAddOn");
            return Ok(());
        };
        let templated = |config: &ConfigMeta| is_template(&config.kind) && config.default_config.is_some();
        if offer.metadata.deletion_timestamp.is_some() || offer.spec.supported_configs.iter().any(templated) {
            return Ok(());
        }
        let meta =
            AddOnMeta { display_name: self.addon.display_name().into(), description: self.addon.description().into() };
        if let Some(fields) = registration(&offer, &meta, &self.supported) {
            self.hub.apply(&self.kinds.offer, name, &fields).await?;
            tracing::info!(addon = name, "registered with its ClusterManagementAddOn");
        }
        self.write_hashes(&offer).await
    }

    async fn write_hashes(&self, offer: &ClusterManagementAddOn) -> Result<(), ReconcileError> {
        let known = self.view().known(configs_of(offer));
        let mut edited = serde_json::to_value(offer).unwrap_or_default();
        let present = edited.clone();
        write_spec_hashes(&mut edited, &known);
        if edited != present {
            let key = ObjectKey::new("", self.addon.name());
            let uid = offer.metadata.uid.as_deref().unwrap_or_default();
            let edit = |offer: &mut Value| write_spec_hashes(offer, &known);
            self.hub.edit_status(&self.kinds.offer, &key, uid, edit).await?;
        }
        Ok(())
    }
}

/// The fields that this manager owns, if the ClusterManagementAddOn doesn't have them all. The UID among them keeps the
/// API server from making a new one.
fn registration(offer: &ClusterManagementAddOn, meta: &AddOnMeta, supported: &[ConfigGroupResource]) -> Option<Value> {
    let has = |kind: &ConfigGroupResource| offer.spec.supported_configs.iter().any(|config| config.kind == *kind);
    let complete = annotation(&offer.metadata, ANNOTATION_LIFECYCLE) == Some(LIFECYCLE_ADDON_MANAGER)
        && offer.spec.add_on_meta == *meta
        && supported.iter().all(has);
    if complete {
        return None;
    }
    Some(json!({
        "apiVersion": ADDON_API_VERSION,
        "kind": "ClusterManagementAddOn",
        "metadata": {
            "name": offer.metadata.name,
            "uid": offer.metadata.uid,
            "annotations": {ANNOTATION_LIFECYCLE: LIFECYCLE_ADDON_MANAGER},
        },
        "spec": {"addOnMeta": meta, "supportedConfigs": supported},
    }))
}

fn configs_of(offer: &ClusterManagementAddOn) -> impl Iterator<Item = ConfigKey> {
    let status = &offer.status;
    let of_placements = status.install_progressions.iter().flat_map(|progression| &progression.config_references);
    status.default_config_references.iter().chain(of_placements).filter_map(|reference: &DesiredConfigReference| {
        let desired = reference.desired_config.as_ref()?;
        Some(ConfigKey { kind: reference.kind.clone(), referent: desired.referent.clone() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(resource: &str) -> ConfigGroupResource {
        ConfigGroupResource { group: "addon.open-cluster-management.io".into(), resource: resource.into() }
    }

    #[test]
    fn only_what_is_missing_is_applied_and_only_to_the_object_that_was_seen() {
        let meta = AddOnMeta { display_name: "Demo".into(), description: "shows".into() };
        let supported = [kind("addondeploymentconfigs")];
        let mut offer: ClusterManagementAddOn = serde_json::from_value(json!({
            "metadata": {"name": "demo", "uid": "u", "annotations": {"others": "x"}},
            "spec": {"supportedConfigs": [{"group": "", "resource": "configmaps", "defaultConfig": {"name": "x"}}]},
        }))
        .expect("an offer");
        assert_eq!(
            registration(&offer, &meta, &supported),
            Some(json!({
                "apiVersion": "addon.open-cluster-management.io/v1alpha1",
                "kind": "ClusterManagementAddOn",
                "metadata": {
                    "name": "demo", "uid": "u",
                    "annotations": {"addon.open-cluster-management.io/lifecycle": "addon-manager"},
                },
                "spec": {
                    "addOnMeta": {"displayName": "Demo", "description": "shows"},
                    "supportedConfigs": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs"}],
                },
            }))
        );
        offer.metadata.annotations =
            Some([(ANNOTATION_LIFECYCLE.to_owned(), LIFECYCLE_ADDON_MANAGER.to_owned())].into());
        offer.spec.add_on_meta = meta.clone();
        assert!(registration(&offer, &meta, &supported).is_some());
        offer.spec.supported_configs.push(ConfigMeta { kind: supported[0].clone(), default_config: None });
        assert_eq!(registration(&offer, &meta, &supported), None);
    }
}
