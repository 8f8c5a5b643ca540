//! Schema fragments that schemars can't derive.

use schemars::{Schema, SchemaGenerator, json_schema};

/// Content that is kept as it is.
pub(crate) fn opaque_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A list of conditions with one entry per type.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let condition = generator.subschema_for::<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>();
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
