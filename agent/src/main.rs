//! The agent on a managed cluster.
//!
//! ```text
//! hub ── watch of the cluster's own reports ─▶ hub.rs ─▶ contact.rs ─▶ lease.rs ─▶ Lease on the managed cluster
//! ```

mod args;
mod contact;
mod hub;
mod lease;
mod metrics;

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use prometheus_client::registry::Registry;
use tenant_records_runtime::client::{self, Credentials, MountedKubeconfig, Protocol};
use tenant_records_runtime::serve::{Endpoints, Security, serve};
use tenant_records_runtime::{Check, Checks, Shutdown, install_crypto_provider, logging};
use tokio::sync::watch;

use crate::args::Args;
use crate::contact::Contact;
use crate::lease::Heartbeat;
use crate::metrics::Metrics;

/// One thread is enough, and takes least memory.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = logging::init(&args.log_level, args.log_format) {
        eprintln!("error: --log-level {}: {error}", args.log_level);
        return ExitCode::FAILURE;
    }
    install_crypto_provider();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), cluster = args.cluster_name, "starting");
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
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let ready = Checks::new();
    let connected = ready.add("hub-kubeconfig");

    let listener =
        TcpListener::bind(args.health_listen).with_context(|| format!("--health-listen {}", args.health_listen))?;
    let endpoints = Endpoints { ready, metrics: Arc::new(registry) };
    let serving = async { serve(listener, Security::Plain, endpoints, &shutdown).await.map_err(anyhow::Error::from) };
    let working = async {
        tokio::select! {
            ended = work(args, metrics, connected) => ended,
            () = shutdown.requested() => Ok(()),
        }
    };
    tokio::try_join!(serving, working)?;
    Ok(())
}

/// The agent's work, which ends only when the process must start afresh.
async fn work(args: Args, metrics: Metrics, connected: Check) -> anyhow::Result<()> {
    let member = client::infer(Protocol::Http2).await.context("connecting to the managed cluster")?;
    let kubeconfig = MountedKubeconfig::new(args.hub_kubeconfig_dir, Protocol::Http1);
    let (hub, rotation) = kubeconfig.with_proxy_authorities(args.proxy_ca_bundle).connect().await;
    connected.pass();

    let contact = Arc::new(Contact::default());
    let fit = Checks::new();
    fit.ask("hub", {
        let contact = contact.clone();
        move || contact.is_current()
    });
    let heartbeat = Heartbeat::new(member, args.install_namespace, fit, metrics.clone());
    let credentials = rotation.credentials();
    tokio::select! {
        end = rotation.run() => Err(end.into()),
        () = show_certificate(credentials, &metrics) => anyhow::bail!("the credentials aren't followed any more"),
        () = hub::listen(hub, &args.cluster_name, &contact, &metrics) => anyhow::bail!("the hub isn't watched any more"),
        () = heartbeat.run() => anyhow::bail!("the Lease isn't renewed any more"),
    }
}

async fn show_certificate(mut credentials: watch::Receiver<Credentials>, metrics: &Metrics) {
    loop {
        metrics.certificate_ends(credentials.borrow_and_update().expires);
        if credentials.changed().await.is_err() {
            return;
        }
    }
}
