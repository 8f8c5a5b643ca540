//! The rig itself, on real clusters. Needs root and minutes: `cargo rig test` runs it, plain `cargo test` doesn't.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rig::{Cluster, InstanceId, Options, Progress, Rig, Signal, leftovers, wait_until};

const MINUTE: Duration = Duration::from_secs(60);
const WORK_AGENT: (&str, &str) = ("open-cluster-management-agent", "app=klusterlet-manifestwork-agent");

#[test]
#[ignore = "needs root and minutes"]
fn clusters_work_and_fail_as_told() -> Result<()> {
    let id: InstanceId = "rigtest".parse()?;
    let rig = Rig::up(&Options { id: id.clone(), members: 1, owned: true }, &Progress::new())?;
    let member = rig.member("cluster1");

    logs_and_exec(member)?;
    memory_is_measured(member)?;
    containers_can_be_killed_and_stopped(member)?;
    components_come_back(member)?;
    links_break_and_heal(member)?;

    let again = Rig::open(&id)?;
    ensure!(again.down().is_err(), "an instance in use was taken down");
    rig.down()?;
    ensure!(leftovers(&id)?.is_empty(), "{:?}", leftovers(&id)?);
    Ok(())
}

fn logs_and_exec(member: &Cluster) -> Result<()> {
    let deployment = "deployment/klusterlet-work-agent";
    ensure!(!member.kubectl(&["logs", "-n", WORK_AGENT.0, deployment])?.is_empty());
    let help = member.kubectl(&["exec", "-n", WORK_AGENT.0, deployment, "--", "/work", "--help"])?;
    ensure!(help.contains("agent"), "{help}");
    Ok(())
}

fn memory_is_measured(member: &Cluster) -> Result<()> {
    let memory = member.container_memory(WORK_AGENT.0, WORK_AGENT.1)?;
    ensure!(memory.anonymous > 1 << 20 && memory.resident > memory.anonymous, "{memory:?}");
    Ok(())
}

fn containers_can_be_killed_and_stopped(member: &Cluster) -> Result<()> {
    let restarts = || -> Result<u64> {
        let pods = member.get_json(&["pods", "-n", WORK_AGENT.0, "-l", WORK_AGENT.1])?;
        pods["items"][0]["status"]["containerStatuses"][0]["restartCount"].as_u64().context("no restart count")
    };
    let before = restarts()?;
    member.signal_container(WORK_AGENT.0, WORK_AGENT.1, Signal::SIGSTOP)?;
    member.signal_container(WORK_AGENT.0, WORK_AGENT.1, Signal::SIGCONT)?;
    ensure!(restarts()? == before);
    member.signal_container(WORK_AGENT.0, WORK_AGENT.1, Signal::SIGKILL)?;
    wait_until("the container to be started again", MINUTE, || Ok((restarts()? == before + 1).then_some(())))
}

fn components_come_back(member: &Cluster) -> Result<()> {
    for component in ["kube-controller-manager", "etcd", "kube-apiserver"] {
        member.signal_component(component, Signal::SIGKILL)?;
        ensure!(member.signal_component(component, Signal::SIGCONT).is_err(), "{component} survived SIGKILL");
        wait_until(format!("{component} to be started again"), MINUTE, || {
            member.signal_component(component, Signal::SIGCONT).map(Some)
        })?;
    }
    wait_until("the API server to be ready again", MINUTE, || member.kubectl(&["get", "--raw", "/readyz"]).map(Some))?;
    Ok(())
}

fn links_break_and_heal(member: &Cluster) -> Result<()> {
    let answers = || member.kubectl(&["get", "--raw", "/version", "--request-timeout=2s"]).is_ok();
    ensure!(answers());
    member.link_down()?;
    ensure!(!answers(), "the link is down");
    member.link_up()?;
    wait_until("the link to be up again", MINUTE, || Ok(answers().then_some(())))?;
    member.link_silent()?;
    ensure!(!answers(), "the link is silent");
    member.link_audible()?;
    wait_until("the link to carry packets again", MINUTE, || Ok(answers().then_some(())))
}

#[test]
#[ignore = "needs root and minutes"]
fn nothing_outlives_a_killed_owner() -> Result<()> {
    let id: InstanceId = "orphan".parse()?;
    let up = || {
        Command::new(env!("CARGO_BIN_EXE_rig"))
            .args(["--instance", "orphan", "up", "--members", "1"])
            .stderr(Stdio::null())
            .spawn()
            .context("starting the rig")
    };
    let dir = id.dir()?;
    for progress in ["instance.json", "hub/host-process.json", "hub/api-ready", "cluster1/ready"] {
        let mut owner = up()?;
        wait_until(progress, 2 * MINUTE, || Ok(dir.join(progress).exists().then_some(())))?;
        owner.kill()?;
        owner.wait()?;
    }
    wait_until("everything to be gone", MINUTE, || Ok(leftovers(&id)?.is_empty().then_some(())))?;
    // The guard removes its lock last.
    thread::sleep(Duration::from_secs(1));
    let state = dir.parent().context("instances have a common directory")?;
    let names = fs::read_dir(state)?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let rest: Vec<_> = names.filter(|name| name.starts_with("orphan")).collect();
    ensure!(rest.is_empty(), "{rest:?}");
    Ok(())
}
