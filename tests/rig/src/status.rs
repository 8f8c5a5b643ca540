//! What `cargo rig status` shows.

use std::fmt::Write as _;
use std::fs;

use anyhow::Result;

use crate::cgroups;
use crate::cluster::Cluster;
use crate::instance::{self, Record};
use crate::ocm;
use crate::rig::Rig;

/// A table of all instances and their clusters.
pub fn render() -> Result<String> {
    let mut text = String::new();
    for id in instance::all()? {
        let Some(record) = Record::load(&id)? else {
            continue;
        };
        writeln!(text, "{}", headline(&record))?;
        if record.complete {
            let rig = Rig::open(&id)?;
            writeln!(text, "  {:10} {:26} {:9} {:10} MEMORY", "CLUSTER", "API SERVER", "HOST", "AVAILABLE")?;
            for cluster in rig.clusters() {
                writeln!(text, "  {}", line(rig.hub(), cluster)?)?;
            }
            writeln!(text, "  export KUBECONFIG={}", rig.kubeconfig()?.display())?;
        }
    }
    if text.is_empty() {
        text.push_str("No instance is up; `cargo rig up` starts one.\n");
    }
    Ok(text)
}

fn headline(record: &Record) -> String {
    let state = if record.complete { "up" } else { "starting" };
    let owner = record.owner.map_or_else(String::new, |owner| format!(", ends with process {owner}"));
    format!("instance {}: {state}, network {}/24{owner}", record.id, record.address(0))
}

fn line(hub: &Cluster, cluster: &Cluster) -> Result<String> {
    let host = if cluster.is_running() { "running" } else { "dead" };
    let available = if cluster.name() == hub.name() {
        "-"
    } else {
        match ocm::is_available(hub, cluster.name()) {
            Ok(true) => "True",
            Ok(false) => "False",
            Err(_) => "Unknown",
        }
    };
    let memory = format!("{:.1} GB", memory(cluster)? as f64 / 1e9);
    Ok(format!("{:10} {:26} {host:9} {available:10} {memory}", cluster.name(), cluster.server()))
}

/// Anonymous memory of all processes of a cluster, in bytes.
fn memory(cluster: &Cluster) -> Result<u64> {
    let anonymous = |pid: nix::unistd::Pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let processes = cgroups::processes(&cluster.spec().cgroup)?;
    Ok(processes.into_iter().filter_map(anonymous).sum::<u64>() * 1024)
}
