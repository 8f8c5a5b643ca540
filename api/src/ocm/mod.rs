//! Lean types of the OCM kinds that this project reads.
//!
//! They hold only the fields that are used, skip `metadata.managedFields` while decoding (it is most of an object's
//! memory), and decode every object that an API server can hold under OCM's CRDs: each field may be absent or null,
//! and values of enumerations that we don't know stay plain strings.

mod addon;
mod cluster;
mod lean;
#[cfg(test)]
mod tests;
mod work;

pub use addon::*;
pub use cluster::*;
pub use lean::{Condition, ConditionsExt, lean_metadata, or_default};
pub use work::*;

/// The value that OCM and Kubernetes use for a true condition.
pub const TRUE: &str = "True";
/// The value that OCM and Kubernetes use for a false condition.
pub const FALSE: &str = "False";
/// The value that OCM and Kubernetes use for a condition that nobody can tell.
pub const UNKNOWN: &str = "Unknown";

/// Implements [`kube::Resource`] for a lean kind with a `metadata` field.
#[macro_export]
macro_rules! lean_resource {
    ($kind:ident, $group:literal, $version:literal, $plural:literal, $scope:ident) => {
        impl kube::Resource for $kind {
            type DynamicType = ();
            type Scope = k8s_openapi::$scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($kind).into()
            }
            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
