//! Plumbing that every Kubernetes controller needs: watches that heal, work queues, leader election, clients whose
//! credentials may rotate, health and metrics endpoints. Knows neither OCM nor tenants.
//!
//! ```text
//! API server ── watch ─▶ Update ─▶ (the caller's index or a Cache) ─▶ Queue ─▶ the caller's work ── while Leader ─▶ API server
//! ```

#![deny(missing_docs)]

mod back_off;
mod cache;
mod checks;
pub mod client;
mod failure;
mod guarded;
pub mod leadership;
mod live;
pub mod logging;
mod queue;
pub mod serve;
mod shutdown;
#[cfg(test)]
mod test_tls;
mod tls;
mod watch;

pub use back_off::BackOff;
pub use cache::Cache;
pub use checks::{Check, Checks};
pub use failure::Failure;
pub use guarded::{Guarded, Undecodable};
pub use leadership::Leadership;
pub use live::{Signal, live_watch};
pub use queue::{Queue, QueueConfig};
pub use shutdown::Shutdown;
pub use tls::{CertificateError, install_crypto_provider};
pub use watch::{ObjectKey, Update, watch};
