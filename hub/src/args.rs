//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use tenant_records_runtime::logging::LogFormat;

/// Keeps one record per tenant on an Open Cluster Management hub.
///
/// Registers the add-on tenant-records, joins what OCM spreads over many kinds into TenantDeploymentRecords, and keeps
/// them right as anything changes.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub struct Args {
    /// The namespace of this process's Lease, by default the pod's.
    #[arg(long, env = "POD_NAMESPACE", default_value = "open-cluster-management")]
    pub namespace: String,
    /// This process's name in the election of a leader, by default the pod's.
    #[arg(long, env = "POD_NAME", default_value = "tenant-records-hub")]
    pub identity: String,
    /// The agent's image.
    #[arg(long, env = "AGENT_IMAGE", default_value = concat!("tenant-records/agent:", env!("CARGO_PKG_VERSION")))]
    pub agent_image: String,
    /// Where health, readiness and metrics are served, by TLS with a certificate of its own.
    #[arg(long, env = "LISTEN", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,
    /// How many seconds a cluster that was unreachable must be back, and still not chosen, before it leaves a record.
    #[arg(long, env = "RETURN_GRACE_SECONDS", default_value = "60", value_parser = seconds)]
    pub return_grace: Duration,
    /// What is logged: error, warn, info, debug, trace, or directives as in `info,tenant_records_hub=debug`.
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// How it is logged: text or json.
    #[arg(long, env = "LOG_FORMAT", default_value_t)]
    pub log_format: LogFormat,
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_secs).map_err(|_| "give a whole number of seconds".to_owned())
}
