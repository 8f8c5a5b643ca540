//! Open Cluster Management on an instance's clusters, by `clusteradm` as a user would.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::host;
use crate::images::OCM_VERSION;
use crate::process::{run, wait_until};

/// How soon the hub finds out that a cluster is gone, in seconds, divided by 5. OCM's default is 60.
const LEASE_SECONDS: u32 = 10;

/// Not sooner, and not twice: a look takes some 10 s, and comes to nothing if the Klusterlet changes meanwhile.
const NUDGE_AFTER: Duration = Duration::from_secs(12);

const PATIENCE: Duration = Duration::from_secs(240);

/// As [`wait_until`], but fails at once if the cluster's host ends.
fn wait_on<T>(cluster: &Cluster, what: &str, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    wait_until(what, PATIENCE, || {
        if let Err(error) = host::check_alive(cluster.dir()) {
            return Ok(Some(Err(error)));
        }
        Ok(probe()?.map(Ok))
    })?
}

/// Runs `clusteradm` against a cluster, with no input.
pub fn clusteradm(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    run(cluster.tool("clusteradm").arg("--kubeconfig").arg(cluster.kubeconfig()).args(arguments))
}

/// Makes a cluster the hub. Returns as soon as members may join: its controllers start meanwhile.
pub fn init(hub: &Cluster) -> Result<()> {
    clusteradm(
        hub,
        &[
            "init",
            &format!("--bundle-version={OCM_VERSION}"),
            "--registration-drivers=csr",
            "--feature-gates=ManifestWorkReplicaSet=true,ManagedClusterAutoApproval=true",
            "--auto-approved-csr-identities=\
             system:serviceaccount:open-cluster-management:agent-registration-bootstrap",
        ],
    )?;
    Ok(())
}

/// A token with which members may join.
pub fn token(hub: &Cluster) -> Result<String> {
    wait_on(hub, "the hub to give a token", || {
        let answer = clusteradm(hub, &["get", "token", "--output=json"])?;
        let answer: Value = serde_json::from_str(&answer).context("clusteradm printed no JSON")?;
        Ok(answer["hub-token"].as_str().map(str::to_owned))
    })
}

/// Makes a member ask the hub to manage it.
pub fn join(hub: &Cluster, member: &Cluster, token: &str) -> Result<()> {
    clusteradm(
        member,
        &[
            "join",
            "--hub-token",
            token,
            "--hub-apiserver",
            &hub.server(),
            "--cluster-name",
            member.name(),
            "--bundle-version",
            OCM_VERSION,
        ],
    )?;
    Ok(())
}

/// Accepts a cluster before it asks, with a short lease.
pub fn accept(hub: &Cluster, member: &str) -> Result<()> {
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        // As OCM's webhook would label it, which may not run yet. Without the label OCM can't taint the cluster later.
        "metadata": {"name": member, "labels": {"cluster.open-cluster-management.io/clusterset": "default"}},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": LEASE_SECONDS},
    });
    let manifest = cluster.to_string();
    wait_on(hub, &format!("the hub to accept {member}"), || hub.apply(&manifest).map(Some))?;
    Ok(())
}

/// Waits until the hub's controllers work.
pub fn wait_hub(hub: &Cluster) -> Result<()> {
    wait_on(hub, "OCM to be complete on the hub", || {
        let manager = hub.get_json(&["clustermanager", "cluster-manager"])?;
        let settled = is(&manager, "Applied", "True") && is(&manager, "Progressing", "False");
        Ok((settled && all_available(hub, "open-cluster-management-hub")?).then_some(()))
    })
}

/// Waits until a member's agents run and the hub sees it as available.
pub fn wait_member(hub: &Cluster, member: &Cluster) -> Result<()> {
    wait_on(member, &format!("{} to be available", member.name()), || {
        Ok(is_available(hub, member.name())?.then_some(()))
    })?;
    let start = Instant::now();
    let mut nudged = false;
    wait_on(member, &format!("the agents of {} to run", member.name()), || {
        let running = agents_run(member)?;
        if !running && !nudged && start.elapsed() > NUDGE_AFTER {
            nudge(member)?;
            nudged = true;
        }
        Ok(running.then_some(()))
    })
}

/// Whether the registration agent and the work agent run. They need not be ready: their first probe often comes too
/// early, and the next 10 s later.
fn agents_run(member: &Cluster) -> Result<bool> {
    let list = member.get_json(&["pods", "-n", "open-cluster-management-agent"])?;
    let pods = list["items"].as_array().context("kubectl printed no list")?;
    Ok(pods.len() >= 2 && pods.iter().all(|pod| pod["status"]["phase"] == "Running"))
}

/// Makes the klusterlet operator look whether the work agent can start. If the hub's answer to the registration came
/// just when it had looked, as it often does, it looks again only 30 s later.
fn nudge(member: &Cluster) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
    let annotation = format!("tenant-records.rig/nudged={now}");
    member.kubectl(&["annotate", "--overwrite", "klusterlet", "klusterlet", &annotation])?;
    Ok(())
}

/// Whether the hub sees a member as available.
pub fn is_available(hub: &Cluster, member: &str) -> Result<bool> {
    Ok(is(&hub.get_json(&["managedcluster", member])?, "ManagedClusterConditionAvailable", "True"))
}

fn is(object: &Value, condition: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|it| it["type"] == condition).any(|it| it["status"] == status)
}

/// Whether there are Deployments, and each has an available Pod.
fn all_available(cluster: &Cluster, namespace: &str) -> Result<bool> {
    let list = cluster.get_json(&["deployments", "-n", namespace])?;
    let deployments = list["items"].as_array().context("kubectl printed no list")?;
    let available = |it: &Value| it["status"]["availableReplicas"].as_u64().is_some_and(|count| count > 0);
    Ok(!deployments.is_empty() && deployments.iter().all(available))
}
