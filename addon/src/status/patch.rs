//! JSON merge patches.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

/// The JSON merge patch (RFC 7396) that makes `new` of `old`; None when they are the same. Lists are replaced as a whole.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for (key, value) in new {
        if let Some(change) = merge_patch(old.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

/// The patch for the subresource `status` that makes `new` of the object that was read as `old`, and holds for no other
/// state of it; None when there is nothing to change.
pub fn status_patch(metadata: &ObjectMeta, old: &Value, new: &Value) -> Option<Value> {
    let status = merge_patch(&old["status"], &new["status"])?;
    Some(json!({
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "status": status,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_holds_what_differs() {
        for (old, new, expected) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (
                json!({"a": 1, "b": {"c": 1, "d": [1, 2]}}),
                json!({"a": 1, "b": {"c": 2, "d": [2]}}),
                Some(json!({"b": {"c": 2, "d": [2]}})),
            ),
            (json!({"a": 1}), json!({}), Some(json!({"a": null}))),
            (json!({}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}}))),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
        ] {
            assert_eq!(merge_patch(&old, &new), expected);
        }
    }

    #[test]
    fn a_status_patch_is_bound_to_what_was_read() {
        let metadata =
            ObjectMeta { uid: Some("u".into()), resource_version: Some("7".into()), ..ObjectMeta::default() };
        let old = json!({"spec": {"x": 1}, "status": {"a": 1}});
        assert_eq!(status_patch(&metadata, &old, &json!({"status": {"a": 1}})), None);
        assert_eq!(
            status_patch(&metadata, &old, &json!({"status": {"a": 2}})),
            Some(json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"a": 2}}))
        );
    }
}
