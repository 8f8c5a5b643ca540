//! One undecodable object must not stop the others of its list.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// An object as a list or watch delivers it: decoded, or known by its metadata and the decoder's complaint.
///
/// `kube` fails a whole list when one item doesn't decode; a watch of `Guarded<K>` goes on.
/// It decodes from JSON text only, as every API client does.
#[derive(Clone, Debug)]
pub enum Guarded<K> {
    /// The object as a `K`.
    Valid(K),
    /// What is known of an object that isn't a `K`.
    Undecodable(Box<Undecodable>),
}

/// The metadata of an object that couldn't be decoded, and why.
#[derive(Clone, Debug)]
pub struct Undecodable {
    /// Enough to say which object it is.
    pub metadata: ObjectMeta,
    /// The decoder's message: field, place and cause.
    pub error: String,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.metadata.name.as_deref().unwrap_or("?");
        match &self.metadata.namespace {
            Some(namespace) => write!(f, "{namespace}/{name}: {}", self.error),
            None => write!(f, "{name}: {}", self.error),
        }
    }
}

impl<'de, K: serde::de::DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct OnlyMetadata {
            metadata: ObjectMeta,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match serde_json::from_str::<K>(raw.get()) {
            Ok(object) => Ok(Self::Valid(object)),
            Err(error) => {
                let OnlyMetadata { metadata } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
                Ok(Self::Undecodable(Box::new(Undecodable { metadata, error: error.to_string() })))
            }
        }
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
        K::kind(dt)
    }
    fn group(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
        K::group(dt)
    }
    fn version(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
        K::version(dt)
    }
    fn plural(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
        K::plural(dt)
    }
    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Valid(object) => object.meta(),
            Self::Undecodable(undecodable) => &undecodable.metadata,
        }
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Valid(object) => object.meta_mut(),
            Self::Undecodable(undecodable) => &mut undecodable.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    const GOOD: &str = r#"{"metadata":{"name":"good","namespace":"n"},"data":{"k":"v"}}"#;
    const BAD: &str = r#"{"metadata":{"name":"bad","namespace":"n"},"data":"not a map"}"#;

    #[test]
    fn one_undecodable_object_does_not_stop_the_others_of_a_list() {
        let list = format!(r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{}},"items":[{BAD},{GOOD}]}}"#);
        let list: ObjectList<Guarded<ConfigMap>> = serde_json::from_str(&list).unwrap();
        let [Guarded::Undecodable(bad), Guarded::Valid(good)] = list.items.as_slice() else { panic!("{list:?}") };
        assert!(bad.to_string().starts_with("n/bad: invalid type"), "{bad}");
        assert_eq!(good.metadata.name.as_deref(), Some("good"));
    }

    #[test]
    fn nor_the_events_of_a_watch() {
        let event = format!(r#"{{"type":"ADDED","object":{BAD}}}"#);
        let event: WatchEvent<Guarded<ConfigMap>> = serde_json::from_str(&event).unwrap();
        let WatchEvent::Added(object) = event else { panic!("{event:?}") };
        assert_eq!(object.meta().name.as_deref(), Some("bad"));
    }
}
