//! Configuration objects: which ones a cluster should have, and how OCM recognises their content.

mod go_json;
mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tenant_records_api::ocm::{ConfigGroupResource, ConfigReference, ConfigReferent};

pub(crate) use go_json::go_json;
pub use object::ConfigObject;

/// Why a cluster's configuration can't be used now.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Nobody has written the hash of the wanted content yet, or it isn't known yet which objects there are.
    #[error("it isn't decided yet which content of {config} is wanted")]
    Undecided {
        /// The object.
        config: ConfigKey,
    },
    /// The object has another content than the one decided for this cluster: a rollout hasn't come here yet.
    #[error("the present content of {config} isn't rolled out to this cluster yet")]
    NotRolledOut {
        /// The object.
        config: ConfigKey,
    },
    /// There is no such object.
    #[error("{config} doesn't exist")]
    NotFound {
        /// The object.
        config: ConfigKey,
    },
    /// The object isn't what its kind promises.
    #[error("can't read configuration {namespace}/{name}: {source}")]
    Undecodable {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The decoder's complaint.
        source: serde_json::Error,
    },
}

impl ConfigError {
    /// Whether time alone mends it: OCM's addon-manager has yet to decide.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Undecided { .. } | Self::NotRolledOut { .. })
    }
}

/// Names a configuration object among all kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigKey {
    /// The kind.
    pub kind: ConfigGroupResource,
    /// The object.
    pub referent: ConfigReferent,
}

impl std::fmt::Display for ConfigKey {
    /// As OCM's annotation of deploy works has it: `<resource>.<group>/<namespace>/<name>`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind.resource)?;
        if !self.kind.group.is_empty() {
            write!(f, ".{}", self.kind.group)?;
        }
        write!(f, "/{}/{}", self.referent.namespace, self.referent.name)
    }
}

/// What is known of configuration objects.
#[derive(Clone, Debug, Default)]
pub struct KnownConfigs {
    /// Those that exist.
    pub configs: BTreeMap<ConfigKey, Arc<ConfigObject>>,
    /// The kinds of which it is known that there are no others.
    pub kinds: BTreeSet<ConfigGroupResource>,
}

/// OCM's hash of an object's content: SHA-256, in lower-case hex, over Go's JSON of the object as the API server gives it,
/// without `apiVersion`, `kind`, `metadata` and `status`.
///
/// Source: `GetSpecHash` in addon-framework `pkg/utils/helpers.go`.
pub fn spec_hash(object: &Value) -> String {
    let content: Map<String, Value> = object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| is_content(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    hex(&Sha256::digest(go_json(&Value::Object(content))))
}

/// Whether a top-level field of an object belongs to its content.
fn is_content(key: &str) -> bool {
    !matches!(key, "apiVersion" | "kind" | "metadata" | "status")
}

/// The value of a deploy work's annotation `open-cluster-management.io/config-spec-hash`: which content of which
/// configurations it was rendered from. None when nothing configures the add-on.
///
/// OCM's addon-manager compares it with `references`, and finishes a rollout only when they agree.
pub fn config_spec_hash_annotation(references: &[ConfigReference]) -> Option<String> {
    if references.is_empty() {
        return None;
    }
    let hashes: Map<String, Value> = references
        .iter()
        .filter_map(|reference| {
            let desired = reference.desired_config.as_ref()?;
            let key = ConfigKey { kind: reference.kind.clone(), referent: desired.referent.clone() };
            Some((key.to_string(), Value::String(desired.spec_hash.clone())))
        })
        .collect();
    Some(go_json(&Value::Object(hashes)))
}

/// The configuration objects that are decided for a cluster, of the kinds that the add-on supports. Of several of one
/// kind the first counts.
///
/// An object must have exactly the content that was decided, so that a rollout reaches a cluster only in its turn.
///
/// # Errors
/// [`ConfigError::Undecided`], [`ConfigError::NotRolledOut`] and [`ConfigError::NotFound`] for the first object that can't
/// be used.
pub fn desired_configs(
    references: &[ConfigReference],
    supported: &[ConfigGroupResource],
    known: &KnownConfigs,
) -> Result<BTreeMap<ConfigGroupResource, Arc<ConfigObject>>, ConfigError> {
    let mut found = BTreeMap::new();
    for reference in references {
        if !supported.contains(&reference.kind) || found.contains_key(&reference.kind) {
            continue;
        }
        let Some(desired) = &reference.desired_config else { continue };
        let config = ConfigKey { kind: reference.kind.clone(), referent: desired.referent.clone() };
        if desired.spec_hash.is_empty() {
            return Err(ConfigError::Undecided { config });
        }
        match known.configs.get(&config) {
            None if !known.kinds.contains(&config.kind) => return Err(ConfigError::Undecided { config }),
            None => return Err(ConfigError::NotFound { config }),
            Some(object) if object.spec_hash != desired.spec_hash => return Err(ConfigError::NotRolledOut { config }),
            Some(object) => found.insert(config.kind, object.clone()),
        };
    }
    Ok(found)
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenant_records_api::ocm::ConfigSpecHash;

    use super::*;

    fn kind(group: &str, resource: &str) -> ConfigGroupResource {
        ConfigGroupResource { group: group.into(), resource: resource.into() }
    }

    fn reference(kind: ConfigGroupResource, namespace: &str, name: &str, hash: &str) -> ConfigReference {
        let referent = ConfigReferent { namespace: namespace.into(), name: name.into() };
        ConfigReference {
            kind,
            referent: referent.clone(),
            desired_config: Some(ConfigSpecHash { referent, spec_hash: hash.into() }),
            last_observed_generation: 1,
        }
    }

    fn object(content: Value) -> Arc<ConfigObject> {
        Arc::new(serde_json::from_value(content).expect("a config object"))
    }

    /// The hash was computed by Go from the same text, see `go_json`.
    #[test]
    fn hash_of_an_addon_deployment_config() {
        let text = r#"{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnDeploymentConfig",
            "metadata":{"name":"x","generation":3},"spec":{"agentInstallNamespace":"open-cluster-management-agent-addon",
            "customizedVariables":[{"name":"B","value":"<a href=\"x\">&\u2028\u2029 \u00e9 \ud83d\ude00 \t\n\r\b\f\u0001\u007f\\ /"},
            {"name":"A","value":""}],"nodePlacement":{"nodeSelector":{"z":"1","a":"2"},
            "tolerations":[{"key":"k","tolerationSeconds":30}]}},"status":{"x":1}}"#;
        let expected = "c575142dd1f465081ecccc20587e66a249028dd7b59b4e1d8db5f103cb6a5789";
        assert_eq!(spec_hash(&serde_json::from_str(text).expect("JSON")), expected);

        let object: ConfigObject = serde_json::from_str(text).expect("a config object");
        assert_eq!(object.spec_hash, expected);
        assert_eq!(object.content.keys().collect::<Vec<_>>(), ["spec"]);
        let spec = object.deployment_config().expect("an AddOnDeploymentConfig");
        assert_eq!(spec.customized_variables[1].name, "A");
    }

    #[test]
    fn annotation_names_group_namespace_and_name() {
        let references = [
            reference(kind("addon.open-cluster-management.io", "addondeploymentconfigs"), "ocm", "default", "aa"),
            reference(kind("", "configmaps"), "ocm", "x", "bb"),
            reference(kind("addon.open-cluster-management.io", "addonhubconfigs"), "", "default", ""),
            ConfigReference { desired_config: None, ..reference(kind("", "secrets"), "a", "b", "c") },
        ];
        assert_eq!(
            config_spec_hash_annotation(&references).as_deref(),
            Some(concat!(
                r#"{"addondeploymentconfigs.addon.open-cluster-management.io/ocm/default":"aa","#,
                r#""addonhubconfigs.addon.open-cluster-management.io//default":"","configmaps/ocm/x":"bb"}"#
            ))
        );
        assert_eq!(config_spec_hash_annotation(&[]), None);
    }

    #[test]
    fn desired_objects_must_have_the_decided_content() {
        let configmaps = kind("", "configmaps");
        let present = object(json!({"metadata": {"name": "x", "namespace": "ocm"}, "data": {"a": "1"}}));
        let key = ConfigKey {
            kind: configmaps.clone(),
            referent: ConfigReferent { namespace: "ocm".into(), name: "x".into() },
        };
        let mut known =
            KnownConfigs { configs: BTreeMap::from([(key, present.clone())]), kinds: [configmaps.clone()].into() };
        let supported = [configmaps.clone()];
        let find = |references: &[ConfigReference]| desired_configs(references, &supported, &known);

        let good = reference(configmaps.clone(), "ocm", "x", &present.spec_hash);
        assert!(find(std::slice::from_ref(&good)).expect("found").contains_key(&configmaps));
        assert!(
            find(&[reference(kind("", "secrets"), "ocm", "x", "")]).expect("unsupported kinds are left out").is_empty()
        );

        let undecided = find(&[reference(configmaps.clone(), "ocm", "x", "")]).expect_err("no hash");
        assert!(undecided.is_pending());
        let other = find(&[reference(configmaps.clone(), "ocm", "x", "00")]).expect_err("other content");
        assert!(other.is_pending());
        let missing = find(&[reference(configmaps.clone(), "ocm", "y", "00")]).expect_err("no object");
        assert!(!missing.is_pending());
        assert_eq!(missing.to_string(), "configmaps/ocm/y doesn't exist");

        known.kinds.clear();
        let reference = reference(configmaps.clone(), "ocm", "y", "00");
        assert!(desired_configs(&[reference], &supported, &known).expect_err("not listed yet").is_pending());
    }
}
