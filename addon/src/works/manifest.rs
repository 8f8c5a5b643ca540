//! One object to have on a cluster.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use tenant_records_api::ocm::ANNOTATION_DELETION_ORPHAN;

use super::WorksError;
use super::spec::OrphaningRule;
use crate::config::go_json;

/// Names an object. Its version isn't part of it: another version of an object is the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestKey {
    /// API group; empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Empty for an object without a namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ManifestKey {
    /// The key of an object, if it has kind and name.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let api_version = text(&object["apiVersion"])?;
        Some(Self {
            group: api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
            kind: text(&object["kind"])?,
            namespace: text(&object["metadata"]["namespace"]).unwrap_or_default(),
            name: text(&object["metadata"]["name"])?,
        })
    }
}

impl fmt::Display for ManifestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// An object to have on a cluster, in the form in which an API server keeps it in a work.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Which object.
    pub key: ManifestKey,
    /// The whole object.
    pub object: Value,
    /// Its size, as OCM counts it, in bytes.
    pub size: usize,
}

impl Manifest {
    /// Takes the objects that an add-on wants to have.
    ///
    /// # Errors
    /// [`WorksError::NotAnObject`] and [`WorksError::Duplicate`], which OCM's webhook would refuse.
    pub fn all(objects: Vec<Value>) -> Result<Vec<Self>, WorksError> {
        let mut keys = BTreeSet::new();
        objects
            .into_iter()
            .enumerate()
            .map(|(index, mut object)| {
                normalize(&mut object);
                let key = ManifestKey::of(&object)
                    .filter(|_| object["metadata"]["generateName"].is_null())
                    .ok_or(WorksError::NotAnObject(index))?;
                if !keys.insert(key.clone()) {
                    return Err(WorksError::Duplicate(key));
                }
                // OCM adds the framing of a protocol buffer: two tags and two lengths.
                let size = go_json(&object).len() + 16;
                Ok(Self { key, object, size })
            })
            .collect()
    }

    /// The rule that keeps the object when the add-on goes, if it asks for that.
    pub(super) fn orphaning_rule(&self) -> Option<OrphaningRule> {
        self.object["metadata"]["annotations"].get(ANNOTATION_DELETION_ORPHAN)?;
        Some(OrphaningRule {
            group: self.key.group.clone(),
            resource: plural_of(&self.key.kind),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
        })
    }

    /// Whether removing the object, even for a moment, would remove others with it.
    pub(super) fn holds_others(&self) -> bool {
        matches!(self.key.kind.as_str(), "CustomResourceDefinition" | "Namespace")
    }
}

/// Leaves out what an API server leaves out: members that are null, and empty maps and lists of the metadata.
pub(super) fn normalize(object: &mut Value) {
    remove_nulls(object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| match value {
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        });
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// The plural of a kind as Kubernetes guesses it (`UnsafeGuessKindToResource`), as OCM does for orphaning rules.
fn plural_of(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular.ends_with("endpoints") {
        return singular;
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plurals() {
        for (kind, plural) in [
            ("Namespace", "namespaces"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
        ] {
            assert_eq!(plural_of(kind), plural);
        }
    }

    #[test]
    fn what_an_api_server_leaves_out() {
        let [manifest] = &Manifest::all(vec![json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "x", "namespace": "y", "labels": {}, "creationTimestamp": null, "annotations": {"a": ""}},
            "spec": {"template": {"metadata": {"labels": {}, "creationTimestamp": null}}, "list": [{"a": null}]},
        })])
        .expect("a manifest")[..] else {
            panic!("one manifest")
        };
        assert_eq!(
            manifest.object,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "x", "namespace": "y", "annotations": {"a": ""}},
                "spec": {"template": {"metadata": {"labels": {}}}, "list": [{}]},
            })
        );
        assert_eq!(manifest.key.to_string(), "Deployment y/x");
        assert_eq!(manifest.key.group, "apps");
    }

    #[test]
    fn what_ocm_would_refuse() {
        let object =
            |name: &str, version: &str| json!({"apiVersion": version, "kind": "X", "metadata": {"name": name}});
        let twice = Manifest::all(vec![object("a", "g/v1"), object("a", "g/v1beta1")]);
        assert!(matches!(twice, Err(WorksError::Duplicate(_))));
        assert!(Manifest::all(vec![object("a", "g/v1"), object("a", "h/v1")]).is_ok());
        assert!(matches!(Manifest::all(vec![object("", "v1")]), Err(WorksError::NotAnObject(0))));
        assert!(matches!(Manifest::all(vec![object("a", "v1"), json!("x")]), Err(WorksError::NotAnObject(1))));
        let mut generated = object("a", "v1");
        generated["metadata"]["generateName"] = "a-".into();
        assert!(matches!(Manifest::all(vec![generated]), Err(WorksError::NotAnObject(0))));
    }
}
