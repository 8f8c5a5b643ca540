//! Whatever an API server can hold under OCM's CRDs must decode: fields absent or null, unknown fields, odd strings.

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::*;

/// Takes fields away, nulls them, replaces their strings and adds unknown ones, as `choices` say.
fn odd(value: &Value, choices: &mut impl Iterator<Item = u8>, text: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let mut odd_fields = Map::new();
            for (name, field) in fields {
                match choices.next().unwrap_or_default() % 5 {
                    0 => {}
                    1 => {
                        odd_fields.insert(name.clone(), Value::Null);
                    }
                    _ => {
                        odd_fields.insert(name.clone(), odd(field, choices, text));
                    }
                }
            }
            odd_fields.insert(format!("unknown{text}"), json!({"a": [1, null, {"b": 1.5}]}));
            Value::Object(odd_fields)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| odd(item, choices, text)).collect()),
        Value::String(_) if choices.next().unwrap_or_default().is_multiple_of(2) => Value::String(text.to_owned()),
        other => other.clone(),
    }
}

fn decodes<K: DeserializeOwned>(kind: &str, sample: &Value, choices: &[u8], text: &str) -> Result<(), TestCaseError> {
    let mut choices = choices.iter().copied();
    let mut object = odd(sample, &mut choices, text);
    // The API server gives every object a name, and checks the types of its metadata.
    object["metadata"] = sample["metadata"].clone();
    object["metadata"]["managedFields"] = json!([{"manager": text, "fieldsV1": {"f:spec": {}}}]);
    let json = object.to_string();
    prop_assert!(serde_json::from_str::<K>(&json).is_ok(), "{} doesn't decode: {}", kind, json);
    Ok(())
}

fn condition() -> Value {
    json!({
        "type": "Applied", "status": "True", "reason": "R", "message": "m", "observedGeneration": 3,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn metadata() -> Value {
    json!({
        "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}, "annotations": {"c": "d"},
        "finalizers": ["f"], "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}],
    })
}

/// Text of several lengths and scripts; a date where a date must be one is left alone by [`odd`]'s caller.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "\\PC{0,40}", Just("x".repeat(5000)), Just("\u{1b}[31m\u{0}\u{202e}".to_owned())]
}

proptest! {
    #[test]
    fn odd_objects_decode(choices in prop::collection::vec(any::<u8>(), 0..120), text in text()) {
        let mut dateless = condition();
        dateless.as_object_mut().unwrap().remove("lastTransitionTime");
        let conditions = json!([dateless]);
        decodes::<ManagedCluster>("ManagedCluster", &json!({
            "metadata": metadata(),
            "spec": {"hubAcceptsClient": true, "taints": [{"key": "k", "value": "v", "effect": "NoSelect"}]},
            "status": {
                "conditions": conditions, "version": {"kubernetes": "v1"}, "clusterClaims": [{"name": "n", "value": "v"}],
            },
        }), &choices, &text)?;
        decodes::<ManagedClusterSet>("ManagedClusterSet", &json!({
            "metadata": metadata(),
            "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}}},
        }), &choices, &text)?;
        decodes::<ManagedClusterSetBinding>("ManagedClusterSetBinding", &json!({
            "metadata": metadata(), "status": {"conditions": conditions},
        }), &choices, &text)?;
        decodes::<Placement>("Placement", &json!({
            "metadata": metadata(), "status": {"conditions": conditions, "numberOfSelectedClusters": 3},
        }), &choices, &text)?;
        decodes::<PlacementDecision>("PlacementDecision", &json!({
            "metadata": metadata(), "status": {"decisions": [{"clusterName": "c", "reason": ""}]},
        }), &choices, &text)?;
        decodes::<ManifestWork>("ManifestWork", &json!({
            "metadata": metadata(),
            "spec": {"workload": {"manifests": [{"kind": "K"}]}},
            "status": {"conditions": conditions, "resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 1, "group": "g", "version": "v", "kind": "k", "resource": "r", "namespace": "n", "name": "n"},
                "conditions": conditions,
            }]}},
        }), &choices, &text)?;
        decodes::<ManifestWorkReplicaSet>("ManifestWorkReplicaSet", &json!({
            "metadata": metadata(),
            "spec": {"manifestWorkTemplate": {"workload": {"manifests": [{"kind": "K"}]}}, "placementRefs": [{"name": "p"}]},
            "status": {"conditions": conditions, "summary": {"total": 1, "applied": 1, "available": 1}},
        }), &choices, &text)?;
    }
}

#[test]
fn managed_fields_are_not_kept() {
    let mut sample = json!({"metadata": metadata()});
    sample["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": {"f:spec": {}}}]);
    let cluster: ManagedCluster = serde_json::from_value(sample).unwrap();
    assert_eq!(cluster.metadata.managed_fields, None);
    assert_eq!(cluster.metadata.name.as_deref(), Some("n"));
}
