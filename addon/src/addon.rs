//! What an add-on tells the manager about itself.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::ApiResource;
use serde_json::Value;
use tenant_records_api::ocm::{
    AddOnDeploymentConfig, AddOnDeploymentConfigSpec, ConfigGroupResource, DEFAULT_INSTALL_NAMESPACE,
    ManagedClusterAddOn,
};

use crate::cluster::Cluster;
use crate::config::ConfigObject;
use crate::works::{ManifestConfig, workload_feedback};

/// An add-on: the parts of OCM's add-on contract that differ from one to the other. No method does I/O.
pub trait AddOn: Send + Sync + 'static {
    /// The name of its ClusterManagementAddOn and its ManagedClusterAddOns.
    fn name(&self) -> &str;

    /// Its name for people.
    fn display_name(&self) -> &str;

    /// What it does, for people.
    fn description(&self) -> &str;

    /// Who this manager is: the field manager of all that it writes, and how it knows its works again. It stays the same
    /// for the add-on's life; no two managers of a hub may have the same.
    fn manager_name(&self) -> &str;

    /// The last part of the user name that its agent has on the hub.
    fn agent_name(&self) -> &str {
        self.name()
    }

    /// The namespace for the agent where nobody asks for another.
    fn default_install_namespace(&self) -> &str {
        DEFAULT_INSTALL_NAMESPACE
    }

    /// The kinds of objects that configure it.
    fn supported_configs(&self) -> Vec<ApiResource> {
        vec![ApiResource::erase::<AddOnDeploymentConfig>(&())]
    }

    /// The name of the Role and the RoleBinding that give the agent its rights in its cluster's namespace on the hub.
    fn hub_role_name(&self) -> String {
        format!("{}-agent", self.name())
    }

    /// The rights of a cluster's agent in that cluster's namespace on the hub; none make no Role. The manager must hold
    /// all of them itself.
    fn hub_permissions(&self, cluster: &str) -> Vec<PolicyRule>;

    /// The objects to have on the cluster. The same target must give the same manifests.
    ///
    /// # Errors
    /// When there are none for this target. The message reaches the ManagedClusterAddOn's condition `ManifestApplied`.
    fn manifests(&self, target: &Target<'_>) -> Result<Vec<Value>, ManifestsError>;

    /// What the work agent should do with some of the manifests beyond applying them. By default it reports the replicas
    /// of each Deployment and DaemonSet.
    fn manifest_configs(&self, manifests: &[Value]) -> Vec<ManifestConfig> {
        workload_feedback(manifests)
    }
}

/// Why an add-on has no manifests for a target.
pub type ManifestsError = Box<dyn Error + Send + Sync>;

/// One cluster to deploy an add-on to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'t> {
    /// The cluster.
    pub cluster: &'t Cluster,
    /// The add-on on that cluster, as the hub has it.
    pub addon: &'t ManagedClusterAddOn,
    /// The namespace for the agent.
    pub install_namespace: &'t str,
    /// The AddOnDeploymentConfig that is decided for this cluster.
    pub deployment_config: Option<&'t AddOnDeploymentConfigSpec>,
    /// All configuration objects that are decided for this cluster, at most one of a kind.
    pub configs: &'t BTreeMap<ConfigGroupResource, Arc<ConfigObject>>,
}
