//! The kinds of `tenancy.open-cluster-management.io`, and lean types of the OCM kinds that this project reads.
//! No I/O.
//!
//! | kind | where | says |
//! |---|---|---|
//! | [`TenantDeploymentRecord`] | hub, the tenant's workspace namespace | what a tenant deploys where, and how it fares |
//! | [`TenantDeploymentRecordPage`] | hub, beside its record | the record's rows, one per cluster, and the resolved workload |
//! | [`TenantRecordSlice`] | managed cluster, the tenant's namespace | the part of a record that concerns this cluster |
//! | [`TenantRecordReport`] | hub, the cluster's namespace | what the cluster's agent sees, for all its slices |

#![deny(missing_docs)]
// kube repeats `printcolumn` in one attribute, once per column.
#![allow(clippy::duplicated_attributes)]

mod crds;
pub mod digest;
pub mod ocm;
mod page;
pub mod rbac;
mod record;
mod report;
mod schema;
mod slice;
mod state;

pub use crds::{hub_crds, member_crds};
pub use page::*;
pub use record::*;
pub use report::*;
pub use slice::*;
pub use state::*;

/// The API group of this project's kinds.
pub const GROUP: &str = "tenancy.open-cluster-management.io";
/// The API version of this project's kinds.
pub const VERSION: &str = "v1alpha1";
/// The name of the add-on in OCM.
pub const ADDON_NAME: &str = "tenant-records";
/// The annotation that carries the UID of the hub's Namespace `kube-system`, which identifies the hub.
pub const ANNOTATION_HUB: &str = "tenancy.open-cluster-management.io/hub";
/// The label that makes a ManifestWork part of a tenant's workload; its value is the tenant's namespace.
pub const LABEL_TENANT_NAMESPACE: &str = "tenancy.open-cluster-management.io/tenant-namespace";
