//! The agent's manifests, by way of deploy works.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenant_records_api::ocm::{AddOnDeploymentConfigSpec, ConfigGroupResource};
use tenant_records_runtime::ObjectKey;

use super::{ReconcileError, Reconciler};
use crate::addon::Target;
use crate::change::{Change, Owner};
use crate::cluster::Cluster;
use crate::config::{ConfigObject, config_spec_hash_annotation};
use crate::hub::Written;
use crate::status::ManifestApplied;
use crate::view::OnCluster;
use crate::works::{DeployRequest, DeployedWork, Manifest, Ownership, WorksError, plan};

/// The configuration that is decided for a cluster, and what follows from it.
pub(super) struct Settings {
    pub(super) configs: BTreeMap<ConfigGroupResource, Arc<ConfigObject>>,
    pub(super) deployment: Option<AddOnDeploymentConfigSpec>,
    pub(super) install_namespace: String,
}

impl Reconciler {
    /// Renders the manifests and writes the deploy works.
    pub(super) async fn deploy(
        &self,
        owner: &Owner<'_>,
        on: &OnCluster,
        cluster: &Cluster,
        settings: &Settings,
    ) -> Result<ManifestApplied, ReconcileError> {
        let target = Target {
            cluster,
            addon: &on.addon,
            install_namespace: &settings.install_namespace,
            deployment_config: settings.deployment.as_ref(),
            configs: &settings.configs,
        };
        // The same target gives the same manifests: trying again is of no use until something changes.
        let objects = match self.addon.manifests(&target) {
            Ok(objects) => objects,
            Err(error) => {
                tracing::warn!(addon = owner.addon, cluster = owner.namespace, %error, "there are no manifests");
                return Ok(ManifestApplied::NotWritten(format!(
                    "failed to get manifest from agent interface: {error}"
                )));
            }
        };
        let request = DeployRequest {
            owner: *owner,
            config_spec_hash: config_spec_hash_annotation(&on.addon.status.config_references),
            manifest_configs: self.addon.manifest_configs(&objects),
            manifests: Manifest::all(objects)?,
        };
        let plan = plan(&request, &on.works)?;
        for change in &plan.changes {
            self.write_work(owner, change).await?;
        }
        Ok(ManifestApplied::of(&plan.applied))
    }

    async fn write_work(&self, owner: &Owner<'_>, change: &Change) -> Result<(), ReconcileError> {
        if self.hub.write(&self.kinds.work, owner.namespace, change).await? == Written::Yes {
            let action = match change {
                Change::Create { .. } => "created",
                Change::Update { .. } => "changed",
                Change::Delete { .. } => "deleted",
            };
            tracing::info!(
                addon = owner.addon,
                cluster = owner.namespace,
                work = change.name(),
                "{action} a deploy work"
            );
            return Ok(());
        }
        // Another's work, which the watch doesn't see for lack of the label, or one that it hasn't seen yet.
        let key = ObjectKey::new(owner.namespace, change.name());
        let present: Option<DeployedWork> = self.hub.read(&key).await?;
        match present {
            Some(work) if work.ownership(owner) == Ownership::Foreign => {
                Err(WorksError::NameTaken(key.to_string()).into())
            }
            _ => Err(ReconcileError::Outdated(format!("ManifestWork {key}"))),
        }
    }
}
