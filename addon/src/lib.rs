//! OCM's add-on contract for a manager on the hub, in Rust.
//!
//! Open Cluster Management (OCM) installs add-ons: an agent on each cluster, and a manager on the hub that says how. This
//! library is that manager, but for what is special to an add-on, which its [`AddOn`] says: its name, its rights on the
//! hub, its manifests. [`Manager::run`] does the rest.
//!
//! ```text
//!            watched on the hub                        reconcile                    written to the hub
//! ClusterManagementAddOn ────────────┐   ┌─▶ offer ──────────────────▶ its fields, hashes of configurations
//! ManagedClusterAddOn, ManagedCluster├─▶ ├─▶ on_cluster
//! AddOnDeploymentConfig, other kinds │   │     ├─▶ registration, rbac ─▶ Role, RoleBinding
//! ManifestWork, Role, RoleBinding ───┤   │     ├─▶ values ▶ AddOn ▶ works ─▶ deploy works
//! CertificateSigningRequest ─────────┘   │     └─▶ status ────────────▶ ManagedClusterAddOn's status
//!                                        └─▶ certificate ▶ csr ──────▶ approval or denial
//! ```
//! Decisions are pure functions in modules of their own ([`config`], [`values`], [`render`], [`registration`], [`rbac`],
//! [`csr`], [`works`], [`status`]); only the manager's inside does I/O.
//!
//! A manager for an add-on whose agent is one ConfigMap and reads Secrets of its cluster's namespace on the hub:
//! ```no_run
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::rbac::v1::PolicyRule;
//! use ocm_addon::render::{RenderError, Templates};
//! use ocm_addon::values::{Values, values};
//! use ocm_addon::{AddOn, Manager, ManifestsError, Metrics, Target};
//! use serde_json::Value;
//! use tenant_records_runtime::{Leadership, Shutdown};
//!
//! const TEMPLATE: &str = r#"
//! apiVersion: v1
//! kind: ConfigMap
//! metadata: {name: hello, namespace: {{json AddonInstallNamespace}} }
//! data: {cluster: {{json ClusterName}} }
//! "#;
//!
//! struct Hello(Templates);
//!
//! impl AddOn for Hello {
//!     fn name(&self) -> &str { "hello" }
//!     fn display_name(&self) -> &str { "Hello" }
//!     fn description(&self) -> &str { "Says hello." }
//!     fn manager_name(&self) -> &str { "hello-manager" }
//!
//!     fn hub_permissions(&self, _cluster: &str) -> Vec<PolicyRule> {
//!         vec![PolicyRule {
//!             api_groups: Some(vec!["".into()]),
//!             resources: Some(vec!["secrets".into()]),
//!             verbs: vec!["get".into()],
//!             ..PolicyRule::default()
//!         }]
//!     }
//!
//!     fn manifests(&self, target: &Target<'_>) -> Result<Vec<Value>, ManifestsError> {
//!         Ok(self.0.render(&values(Values::new(), target)?)?)
//!     }
//! }
//!
//! async fn run(client: kube::Client, metrics: Metrics, shutdown: &Shutdown) -> Result<(), RenderError> {
//!     let hello = Hello(Templates::new([("configmap.yaml", TEMPLATE)])?);
//!     Manager::new(client, Arc::new(hello), Leadership::always(), metrics).run(shutdown).await;
//!     Ok(())
//! }
//! ```
//!
//! What is left to OCM's own addon-manager: making and deleting ManagedClusterAddOns, rollout, and the conditions
//! `Configured` and `Progressing`. An add-on that an AddOnTemplate defines on a cluster is that one's altogether.

#![deny(missing_docs)]

pub mod addon;
pub mod change;
pub mod cluster;
pub mod config;
pub mod csr;
mod hub;
mod manager;
mod metrics;
mod projection;
pub mod rbac;
mod reconcile;
pub mod registration;
pub mod render;
mod sources;
pub mod status;
pub mod values;
mod view;
pub mod works;

pub use addon::{AddOn, ManifestsError, Target};
pub use cluster::Cluster;
pub use manager::Manager;
pub use metrics::Metrics;
