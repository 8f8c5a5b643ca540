//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use tenant_records_runtime::logging::LogFormat;

/// Reports to an Open Cluster Management hub how tenants' workloads fare on this managed cluster.
///
/// Runs on the managed cluster, where it only reads; on the hub it writes this cluster's TenantRecordReports. While it
/// hears the hub, it renews the Lease by which OCM tells the add-on's health.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// The namespace on the managed cluster that the agent is installed in; its Lease is there.
    #[arg(long, env = "INSTALL_NAMESPACE", default_value = "open-cluster-management-agent-addon")]
    pub(crate) install_namespace: String,
    /// The managed cluster's name, which is also its namespace on the hub.
    #[arg(long, env = "CLUSTER_NAME")]
    pub(crate) cluster_name: String,
    /// The directory where the Secret tenant-records-hub-kubeconfig is mounted; may be empty at first.
    #[arg(long, env = "HUB_KUBECONFIG_DIR", default_value = "/var/run/tenant-records/hub")]
    pub(crate) hub_kubeconfig_dir: PathBuf,
    /// A file with certificates of authorities that may vouch for an https proxy on the way to the hub. Which proxy, the
    /// kubeconfig says; if it names none, HTTPS_PROXY does, unless NO_PROXY names the hub.
    #[arg(long, env = "CA_BUNDLE_FILE_PATH", value_name = "FILE")]
    pub(crate) proxy_ca_bundle: Option<PathBuf>,
    /// Where /healthz, /readyz and /metrics are served, by plain HTTP.
    #[arg(long, env = "HEALTH_LISTEN", default_value = "0.0.0.0:8081")]
    pub(crate) health_listen: SocketAddr,
    /// What is logged: error, warn, info, debug, trace, or directives as in `info,tenant_records_agent=debug`.
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// How it is logged: text or json.
    #[arg(long, env = "LOG_FORMAT", default_value_t)]
    pub(crate) log_format: LogFormat,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn is_consistent_and_explains_each_option() {
        let command = Args::command();
        command.clone().debug_assert();
        assert!(command.get_arguments().all(|argument| argument.get_help().is_some()));
    }

    #[test]
    fn only_the_cluster_must_be_given() {
        let args = Args::try_parse_from(["agent", "--cluster-name", "cluster1"]).unwrap();
        assert_eq!(args.health_listen.to_string(), "0.0.0.0:8081");
        assert_eq!(args.log_format, LogFormat::Text);
        assert!(Args::try_parse_from(["agent"]).is_err() || std::env::var_os("CLUSTER_NAME").is_some());
    }
}
