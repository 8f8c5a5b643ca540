//! Writes to objects that this manager owns, decided by pure code and carried out elsewhere.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use tenant_records_api::ocm::ADDON_API_VERSION;

/// The annotation of works, Roles and RoleBindings that names the manager that made them, or took them over.
pub const ANNOTATION_MANAGER: &str = "addon.open-cluster-management.io/manager";

/// A write to one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Make it.
    Create {
        /// Its name.
        name: String,
        /// The whole object.
        object: Value,
    },
    /// Change it.
    Update {
        /// Its name.
        name: String,
        /// A JSON merge patch that holds only for the state that was seen.
        patch: Value,
    },
    /// Delete it.
    Delete {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// The resource version that was seen.
        resource_version: String,
    },
}

impl Change {
    /// Deletes an object in the state in which it was seen.
    pub fn delete(metadata: &ObjectMeta) -> Self {
        Self::Delete {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
        }
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        match self {
            Self::Create { name, .. } | Self::Update { name, .. } | Self::Delete { name, .. } => name,
        }
    }
}

/// On whose behalf objects exist.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'o> {
    /// The add-on's name, which is the ManagedClusterAddOn's too.
    pub addon: &'o str,
    /// The cluster's namespace on the hub.
    pub namespace: &'o str,
    /// The UID of the ManagedClusterAddOn.
    pub uid: &'o str,
    /// The manager's name.
    pub manager: &'o str,
}

impl Owner<'_> {
    /// The reference to the ManagedClusterAddOn.
    pub fn reference(&self, controller: bool) -> OwnerReference {
        OwnerReference {
            api_version: ADDON_API_VERSION.into(),
            kind: "ManagedClusterAddOn".into(),
            name: self.addon.into(),
            uid: self.uid.into(),
            controller: controller.then_some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// The metadata of a merge patch that holds only for the state that was seen.
pub(crate) fn seen(metadata: &ObjectMeta) -> Value {
    json!({"uid": metadata.uid, "resourceVersion": metadata.resource_version})
}

/// The value of an object's annotation.
pub(crate) fn annotation<'m>(metadata: &'m ObjectMeta, key: &str) -> Option<&'m str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The value of an object's label.
pub(crate) fn label<'m>(metadata: &'m ObjectMeta, key: &str) -> Option<&'m str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}
