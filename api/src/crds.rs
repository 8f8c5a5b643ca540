//! The CustomResourceDefinitions, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;

use crate::{TenantDeploymentRecord, TenantDeploymentRecordPage, TenantRecordReport, TenantRecordSlice};

/// The CustomResourceDefinitions that a hub needs. The slice's comes to managed clusters with the agent.
pub fn hub_crds() -> Vec<CustomResourceDefinition> {
    [TenantDeploymentRecord::crd(), TenantDeploymentRecordPage::crd(), TenantRecordReport::crd()].map(tidy).into()
}

/// The CustomResourceDefinitions that a managed cluster needs.
pub fn member_crds() -> Vec<CustomResourceDefinition> {
    vec![tidy(TenantRecordSlice::crd())]
}

/// Takes out what schemars derives from Rust and Kubernetes has no use for: an absent optional field is absent, never
/// null (a null would count as given in the validation rules), and the API server warns of formats that it doesn't know.
fn tidy(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    fn visit(schema: &mut Value) {
        if let Value::Object(fields) = schema {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
            }
            if fields.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
                fields.remove("format");
            }
            fields.values_mut().for_each(visit);
        } else if let Value::Array(items) = schema {
            items.iter_mut().for_each(visit);
        }
    }
    let mut value = serde_json::to_value(crd).expect("a CustomResourceDefinition is JSON");
    visit(&mut value);
    serde_json::from_value(value).expect("it is still a CustomResourceDefinition")
}
