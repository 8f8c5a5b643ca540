//! Kinds of `addon.open-cluster-management.io`.
//!
//! This module alone chooses the version: v1alpha1, which every supported OCM serves and stores.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Condition, lean_metadata, or_default};
use crate::lean_resource;

/// The group of OCM's add-on kinds.
pub const ADDON_GROUP: &str = "addon.open-cluster-management.io";
/// Group and version of OCM's add-on kinds, also for owner references to them.
pub const ADDON_API_VERSION: &str = "addon.open-cluster-management.io/v1alpha1";
/// The plural of [`AddOnDeploymentConfig`].
pub const ADDON_DEPLOYMENT_CONFIGS: &str = "addondeploymentconfigs";
/// The plural of AddOnTemplate; an add-on that is configured by one belongs to OCM's own addon-manager.
pub const ADDON_TEMPLATES: &str = "addontemplates";

/// The label of a ManifestWork, a CertificateSigningRequest, a Role or a RoleBinding that names its add-on.
pub const LABEL_ADDON_NAME: &str = "open-cluster-management.io/addon-name";
/// The label of a CertificateSigningRequest that names its cluster. Its author may have set anything.
pub const LABEL_CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
/// The annotation of a ClusterManagementAddOn that says who installs and configures the add-on.
pub const ANNOTATION_LIFECYCLE: &str = "addon.open-cluster-management.io/lifecycle";
/// The value of [`ANNOTATION_LIFECYCLE`] that leaves installation and configuration to OCM's addon-manager.
pub const LIFECYCLE_ADDON_MANAGER: &str = "addon-manager";
/// The annotation of a ManagedClusterAddOn with values for the agent's templates: a JSON object.
pub const ANNOTATION_VALUES: &str = "addon.open-cluster-management.io/values";
/// The annotation of a manifest that stays when the add-on goes, whatever its value.
pub const ANNOTATION_DELETION_ORPHAN: &str = "addon.open-cluster-management.io/deletion-orphan";
/// The annotation of a deploy work that says which configurations it was rendered from.
pub const ANNOTATION_CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";
/// The annotation of a ManagedCluster with image registries to use there: `{"registries": [{"source", "mirror"}]}`.
pub const ANNOTATION_IMAGE_REGISTRIES: &str = "open-cluster-management.io/image-registries";

/// The namespace on a managed cluster where agents of add-ons live unless something else was asked for.
pub const DEFAULT_INSTALL_NAMESPACE: &str = "open-cluster-management-agent-addon";

/// The condition that says whether the agent may register with the hub, and has its rights there.
pub const ADDON_REGISTRATION_APPLIED: &str = "RegistrationApplied";
/// The condition, written by OCM's addon-manager, that says whether the add-on's configurations are decided.
pub const ADDON_CONFIGURED: &str = "Configured";
/// The condition that says whether the agent's manifests are applied.
pub const ADDON_MANIFEST_APPLIED: &str = "ManifestApplied";
/// The condition that says whether the agent is alive.
pub const ADDON_AVAILABLE: &str = "Available";

/// Like [`lean_resource`], for this group and version.
macro_rules! addon_resource {
    ($kind:ident, $plural:literal, $scope:ident) => {
        lean_resource!($kind, "addon.open-cluster-management.io", "v1alpha1", $plural, $scope);
    };
}

/// An add-on that a hub offers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClusterManagementAddOn {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What the add-on is and how it is installed.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ClusterManagementAddOnSpec,
    /// Which configurations are in use.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ClusterManagementAddOnStatus,
}
addon_resource!(ClusterManagementAddOn, "clustermanagementaddons", ClusterResourceScope);

/// The read part of a ClusterManagementAddOn's spec.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterManagementAddOnSpec {
    /// Texts for people.
    #[serde(deserialize_with = "or_default")]
    pub add_on_meta: AddOnMeta,
    /// The kinds of objects that configure the add-on.
    #[serde(deserialize_with = "or_default")]
    pub supported_configs: Vec<ConfigMeta>,
}

/// What people read about an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddOnMeta {
    /// The add-on's name for people.
    #[serde(deserialize_with = "or_default")]
    pub display_name: String,
    /// What it does.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
}

/// A kind of configuration that an add-on understands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMeta {
    /// The kind.
    #[serde(flatten)]
    pub kind: ConfigGroupResource,
    /// The object that configures every cluster for which nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_config: Option<ConfigReferent>,
}

/// A kind of configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigGroupResource {
    /// API group; empty for core.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// Plural resource name.
    #[serde(deserialize_with = "or_default")]
    pub resource: String,
}

/// A configuration object of a known kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigReferent {
    /// Empty for an object without a namespace.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// A configuration object and the state of it that is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigSpecHash {
    /// The object.
    #[serde(flatten)]
    pub referent: ConfigReferent,
    /// The hash of its content; empty while that isn't known.
    #[serde(deserialize_with = "or_default")]
    pub spec_hash: String,
}

/// The read part of a ClusterManagementAddOn's status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterManagementAddOnStatus {
    /// The default configurations.
    #[serde(rename = "defaultconfigReferences", deserialize_with = "or_default")]
    pub default_config_references: Vec<DesiredConfigReference>,
    /// One entry per Placement of the install strategy.
    #[serde(rename = "installProgressions", deserialize_with = "or_default")]
    pub install_progressions: Vec<InstallProgression>,
}

/// A configuration that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DesiredConfigReference {
    /// Its kind.
    #[serde(flatten)]
    pub kind: ConfigGroupResource,
    /// The object and its hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
}

/// The configurations for the clusters of one Placement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstallProgression {
    /// What those clusters are configured with.
    #[serde(deserialize_with = "or_default")]
    pub config_references: Vec<DesiredConfigReference>,
}

/// An add-on on one cluster, in that cluster's namespace on the hub. Its name is the ClusterManagementAddOn's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ManagedClusterAddOn {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What is wanted for this cluster alone.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ManagedClusterAddOnSpec,
    /// What OCM's addon-manager, the add-on's own manager and the cluster's registration agent say.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ManagedClusterAddOnStatus,
}
addon_resource!(ManagedClusterAddOn, "managedclusteraddons", NamespaceResourceScope);

/// The read part of a ManagedClusterAddOn's spec.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterAddOnSpec {
    /// The namespace for the agent, unless an AddOnDeploymentConfig names one.
    #[serde(deserialize_with = "or_default")]
    pub install_namespace: String,
    /// Configurations that override the add-on's and the Placement's.
    #[serde(deserialize_with = "or_default")]
    pub configs: Vec<AddOnConfig>,
}

/// A configuration object and its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddOnConfig {
    /// The kind.
    #[serde(flatten)]
    pub kind: ConfigGroupResource,
    /// The object.
    #[serde(flatten)]
    pub referent: ConfigReferent,
}

/// The read part of a ManagedClusterAddOn's status. It serializes to the same names and values as it was read from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterAddOnStatus {
    /// Conditions of several writers; see [`ADDON_AVAILABLE`] and its neighbours.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The kinds of configuration that the add-on's manager understands.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub supported_configs: Vec<ConfigGroupResource>,
    /// The configurations that are decided for this cluster.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<ConfigReference>,
    /// The namespace on the managed cluster for the agent, its Lease and its Secrets.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// How the agent registers with the hub.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationConfig>,
    /// Who says whether the agent is alive.
    #[serde(deserialize_with = "or_default")]
    pub health_check: HealthCheck,
    /// `csr` or `token`: how the registration agent gets the agent's credentials; empty with an OCM that has one way only.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub kube_client_driver: String,
}

/// A configuration that is decided for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigReference {
    /// Its kind.
    #[serde(flatten)]
    pub kind: ConfigGroupResource,
    /// The object as v1alpha1 repeats it beside `desired_config`.
    #[serde(flatten)]
    pub referent: ConfigReferent,
    /// The object and the state of it that the cluster should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The object's generation that the add-on's manager has seen.
    #[serde(deserialize_with = "or_default")]
    pub last_observed_generation: i64,
}

/// One way in which the agent registers with the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistrationConfig {
    /// Who signs the agent's certificate.
    #[serde(deserialize_with = "or_default")]
    pub signer_name: String,
    /// Who the agent is for the hub.
    #[serde(deserialize_with = "or_default")]
    pub subject: Subject,
}

/// Who an agent is for the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// The user name: a certificate's common name.
    #[serde(deserialize_with = "or_default")]
    pub user: String,
    /// The groups: a certificate's organizations.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Organizational units, for custom signers.
    #[serde(rename = "organizationUnit", deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub organization_units: Vec<String>,
}

/// Who says whether an agent is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthCheck {
    /// `Lease`: the registration agent by the agent's Lease; `Customized`: the add-on's manager.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub mode: String,
}

/// Settings for the agent of an add-on, the same kind for all add-ons.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AddOnDeploymentConfig {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// The settings.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: AddOnDeploymentConfigSpec,
}
addon_resource!(AddOnDeploymentConfig, "addondeploymentconfigs", NamespaceResourceScope);

/// The settings of an AddOnDeploymentConfig.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddOnDeploymentConfigSpec {
    /// Values for the agent's templates.
    #[serde(deserialize_with = "or_default")]
    pub customized_variables: Vec<CustomizedVariable>,
    /// Where the agent's Pods may run.
    pub node_placement: Option<NodePlacement>,
    /// Where images come from.
    #[serde(deserialize_with = "or_default")]
    pub registries: Vec<ImageMirror>,
    /// The proxy between the agent and the hub.
    #[serde(deserialize_with = "or_default")]
    pub proxy_config: ProxyConfig,
    /// The namespace for the agent; the API server's default is [`DEFAULT_INSTALL_NAMESPACE`], empty leaves it open.
    #[serde(deserialize_with = "or_default")]
    pub agent_install_namespace: String,
    /// Resource requirements of containers; of several entries for a container the last counts.
    #[serde(deserialize_with = "or_default")]
    pub resource_requirements: Vec<ContainerResourceRequirements>,
}

/// A value for the agent's templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomizedVariable {
    /// The value's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The value.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
}

/// Where Pods may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePlacement {
    /// Labels that a node must have.
    #[serde(deserialize_with = "or_default")]
    pub node_selector: BTreeMap<String, String>,
    /// Kubernetes' Tolerations, handed on as they are.
    #[serde(deserialize_with = "or_default")]
    pub tolerations: Vec<Value>,
}

/// Where images of one origin come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageMirror {
    /// What replaces the origin.
    #[serde(deserialize_with = "or_default")]
    pub mirror: String,
    /// The origin: the beginning of an image's name; empty for every image.
    #[serde(deserialize_with = "or_default")]
    pub source: String,
}

/// A proxy between agent and hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyConfig {
    /// The proxy for plain HTTP.
    #[serde(deserialize_with = "or_default")]
    pub http_proxy: String,
    /// The proxy for HTTPS.
    #[serde(deserialize_with = "or_default")]
    pub https_proxy: String,
    /// Hosts to reach without a proxy, separated by commas.
    #[serde(deserialize_with = "or_default")]
    pub no_proxy: String,
    /// Certificates (PEM) that the proxy is trusted by.
    #[serde(deserialize_with = "or_default")]
    pub ca_bundle: ByteString,
}

/// Resource requirements of the containers that an expression names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerResourceRequirements {
    /// `<plural of the workload's kind>:<workload's name>:<container's name>`, `*` for any.
    #[serde(rename = "containerID", deserialize_with = "or_default")]
    pub container_id: String,
    /// Kubernetes' ResourceRequirements, handed on as they are.
    #[serde(deserialize_with = "or_default")]
    pub resources: Value,
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use serde_json::json;

    use super::*;

    #[test]
    fn one_version() {
        assert_eq!(ManagedClusterAddOn::api_version(&()), ADDON_API_VERSION);
        assert_eq!(ClusterManagementAddOn::api_version(&()), ADDON_API_VERSION);
        assert_eq!(AddOnDeploymentConfig::api_version(&()), ADDON_API_VERSION);
        assert_eq!(AddOnDeploymentConfig::plural(&()), ADDON_DEPLOYMENT_CONFIGS);
        assert_eq!(AddOnDeploymentConfig::group(&()), ADDON_GROUP);
    }

    #[test]
    fn status_comes_back_as_it_was_read() {
        let status = json!({
            "conditions": [{
                "type": "Configured", "status": "True", "reason": "ConfigurationsConfigured",
                "message": "Configurations configured", "lastTransitionTime": "2026-11-30T10:00:00Z",
            }],
            "supportedConfigs": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs"}],
            "configReferences": [{
                "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
                "namespace": "ocm", "name": "default", "lastObservedGeneration": 2,
                "desiredConfig": {"namespace": "ocm", "name": "default", "specHash": "abc"},
            }],
            "namespace": "agents",
            "registrations": [{
                "signerName": "kubernetes.io/kube-apiserver-client",
                "subject": {"user": "u", "groups": ["g"], "organizationUnit": ["o"]},
            }],
            "healthCheck": {"mode": "Lease"},
            "kubeClientDriver": "csr",
        });
        let read: ManagedClusterAddOnStatus = serde_json::from_value(status.clone()).expect("readable");
        assert_eq!(serde_json::to_value(read).expect("writable"), status);
    }

    #[test]
    fn nulls_and_absent_fields_are_defaults() {
        let addon: ManagedClusterAddOn = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "c"},
            "spec": {"configs": null},
            "status": {"configReferences": [{"resource": "x", "name": "y", "desiredConfig": null}], "registrations": null},
        }))
        .expect("readable");
        assert_eq!(addon.status.config_references[0].desired_config, None);
        assert!(addon.status.registrations.is_empty());

        let config: AddOnDeploymentConfig = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "c"},
            "spec": {"proxyConfig": {"caBundle": "Q0E="}, "nodePlacement": null},
        }))
        .expect("readable");
        assert_eq!(config.spec.proxy_config.ca_bundle.0, b"CA");
    }
}
