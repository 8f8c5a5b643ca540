//! The hub manager: registers the add-on, and keeps tenants' records.
//!
//! ```text
//! watches ─▶ index ─▶ fold ─▶ writer        records: engine.rs decides, fold/ computes, the rest moves data
//! addon   ─▶ agents on managed clusters     the add-on contract: crate ocm-addon
//! ```

mod addon;
mod args;
mod config_watches;
mod engine;
mod fold;
mod index;
mod metrics;
mod records;
mod watches;
mod writer;

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use ocm_addon::Manager;
use prometheus_client::registry::Registry;
use tenant_records_runtime::client::{self, Protocol};
use tenant_records_runtime::leadership::{ElectionConfig, elect, service_account_owner};
use tenant_records_runtime::serve::{Endpoints, Security, serve};
use tenant_records_runtime::{Checks, Shutdown, install_crypto_provider, logging};

use crate::addon::TenantRecords;
use crate::args::Args;
use crate::fold::Settings;
use crate::metrics::Metrics;

/// The name of the Lease by which replicas elect their leader.
const LEASE: &str = "tenant-records-hub";
/// The name of the ServiceAccount as which this process runs in a cluster.
const SERVICE_ACCOUNT: &str = "tenant-records-hub";

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = logging::init(&args.log_level, args.log_format) {
        eprintln!("error: --log-level {}: {error}", args.log_level);
        return ExitCode::FAILURE;
    }
    install_crypto_provider();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
    match run(args).await {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every part until shutdown is requested; the end of one part is the end of all.
async fn run(args: Args) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals()?;
    let client = client::infer(Protocol::Http1).await?;
    // Outside a cluster there is no ServiceAccount with which the Lease could go.
    let owner = service_account_owner(client.clone(), &args.namespace, SERVICE_ACCOUNT).await.ok();
    let election = ElectionConfig { owner, ..ElectionConfig::new(args.namespace, LEASE, args.identity) };
    let (leadership, election) = elect(client.clone(), election);
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let addon_metrics = ocm_addon::Metrics::register(&mut registry);
    let ready = Checks::new();
    let (records_synced, addon_synced) = (ready.add("records"), ready.add("addon"));

    let listener = TcpListener::bind(args.listen).with_context(|| format!("--listen {}", args.listen))?;
    let security = Security::SelfSigned(vec!["tenant-records-hub".to_owned()]);
    let endpoints = Endpoints { ready, metrics: Arc::new(registry) };
    let addon = Arc::new(TenantRecords::new(args.agent_image)?);
    let addon = Manager::new(client.clone(), addon, leadership.clone(), addon_metrics).with_check(addon_synced);
    let settings = Settings { return_grace: args.return_grace };
    let records = records::run(client, leadership, settings, metrics, records_synced, &shutdown);

    // The Lease is given back after the last write.
    let done = Shutdown::new();
    let working = async {
        let addon = async {
            addon.run(&shutdown).await;
            Ok(())
        };
        tokio::try_join!(records, addon)?;
        done.request();
        Ok(())
    };
    let serving = async { serve(listener, security, endpoints, &shutdown).await.map_err(anyhow::Error::from) };
    let electing = async { election.run(&done).await.map_err(anyhow::Error::from) };
    tokio::try_join!(serving, working, electing)?;
    Ok(())
}
