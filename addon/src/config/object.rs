//! A configuration object of any kind.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;
use serde_json::{Map, Value};
use tenant_records_api::ocm::{AddOnDeploymentConfigSpec, lean_metadata, or_default};

use super::{ConfigError, spec_hash};

/// An object that configures the add-on, of any kind, with OCM's hash of its content.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Served")]
pub struct ConfigObject {
    /// Standard metadata without managedFields.
    pub metadata: ObjectMeta,
    /// See [`spec_hash`].
    pub spec_hash: String,
    /// Everything but `apiVersion`, `kind`, `metadata` and `status`.
    pub content: Map<String, Value>,
}

#[derive(Deserialize)]
struct Served {
    #[serde(deserialize_with = "lean_metadata")]
    metadata: ObjectMeta,
    #[serde(flatten)]
    content: Map<String, Value>,
}

impl From<Served> for ConfigObject {
    fn from(Served { metadata, content }: Served) -> Self {
        let mut object = Value::Object(content);
        let spec_hash = spec_hash(&object);
        let mut content = object.as_object_mut().map(std::mem::take).unwrap_or_default();
        content.retain(|key, _| super::is_content(key));
        Self { metadata, spec_hash, content }
    }
}

impl ConfigObject {
    /// The settings of an object that is an AddOnDeploymentConfig.
    ///
    /// # Errors
    /// [`ConfigError::Undecodable`] when it isn't one.
    pub fn deployment_config(&self) -> Result<AddOnDeploymentConfigSpec, ConfigError> {
        #[derive(Deserialize)]
        struct Content {
            #[serde(default, deserialize_with = "or_default")]
            spec: AddOnDeploymentConfigSpec,
        }
        Content::deserialize(&Value::Object(self.content.clone())).map(|content| content.spec).map_err(|source| {
            ConfigError::Undecodable {
                namespace: self.metadata.namespace.clone().unwrap_or_default(),
                name: self.metadata.name.clone().unwrap_or_default(),
                source,
            }
        })
    }
}

impl Resource for ConfigObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        kind.kind.as_str().into()
    }
    fn group(kind: &ApiResource) -> Cow<'_, str> {
        kind.group.as_str().into()
    }
    fn version(kind: &ApiResource) -> Cow<'_, str> {
        kind.version.as_str().into()
    }
    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        kind.plural.as_str().into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
