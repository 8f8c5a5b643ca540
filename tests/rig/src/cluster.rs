//! A handle on one cluster: commands against it, its containers, and faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cgroups;
use crate::components::Spec;
use crate::host;
use crate::instance::InstanceId;
use crate::network::{Place, ip};
use crate::process::{run, run_with_input};

/// One cluster of an instance.
#[derive(Clone, Debug)]
pub struct Cluster {
    id: InstanceId,
    spec: Spec,
}

impl Cluster {
    pub(crate) fn new(id: InstanceId, spec: Spec) -> Self {
        Self { id, spec }
    }

    /// Its name: `hub`, `cluster1`, ...; also its context, its node, and its name as a managed cluster.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The address of its API server, as other clusters of the instance reach it.
    pub fn server(&self) -> String {
        format!("https://{}:443", self.spec.address)
    }

    /// A kubeconfig of its admin, with one context.
    pub fn kubeconfig(&self) -> PathBuf {
        self.spec.admin_kubeconfig()
    }

    /// Directory of its components' logs, `NAME.log`.
    pub fn logs(&self) -> PathBuf {
        self.spec.dir.join("logs")
    }

    /// Whether its host runs; says nothing about the components.
    pub fn is_running(&self) -> bool {
        host::process(&self.spec.dir).is_some_and(|process| process.is_alive())
    }

    /// Directory of its host.
    pub(crate) fn dir(&self) -> &Path {
        &self.spec.dir
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// `kubectl` as this cluster's admin; returns its standard output.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        run(self.kubectl_command().args(arguments))
    }

    /// `kubectl` with `input` on its standard input.
    pub fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        run_with_input(self.kubectl_command().args(arguments), input)
    }

    /// The command behind [`Cluster::kubectl`], to run in other ways.
    pub fn kubectl_command(&self) -> Command {
        let mut command = self.tool("kubectl");
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    /// A program that the rig built, set up to leave its caches with the instance.
    pub(crate) fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.spec.bin.join(name));
        let cache = self.spec.dir.join("client-cache");
        command
            .env("KUBECACHEDIR", cache.join("kube"))
            .env("HELM_CACHE_HOME", cache.join("helm"))
            .env("HELM_CONFIG_HOME", cache.join("helm"))
            .env("HELM_DATA_HOME", cache.join("helm"));
        command
    }

    /// Applies manifests given as YAML or JSON, server-side.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        let arguments = ["apply", "--server-side", "--force-conflicts", "--field-manager=rig", "-f", "-"];
        self.kubectl_with_input(&arguments, manifests)
    }

    /// `kubectl get ARGUMENTS -o json`; none if there is no such object.
    pub fn find_json(&self, arguments: &[&str]) -> Result<Option<Value>> {
        let all = [&["get", "--ignore-not-found", "-o", "json"], arguments].concat();
        let text = self.kubectl(&all)?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&text).context("kubectl printed something else than JSON")?))
    }

    /// `kubectl get ARGUMENTS -o json`; fails if there is no such object.
    pub fn get_json(&self, arguments: &[&str]) -> Result<Value> {
        let found = self.find_json(arguments)?;
        found.with_context(|| format!("not found on {}: {}", self.name(), arguments.join(" ")))
    }

    /// Loads an image archive. A tag that was loaded before moves to the new image; running pods keep the old one.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        let host = self.process_one()?.to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &host, "--mount", "--pid", "--net"]);
        run(command.args(["ctr", "--namespace", "k8s.io", "images", "import"]).arg(archive))?;
        Ok(())
    }
}

/// Faults of the network. Each lasts until it is taken back.
impl Cluster {
    /// Unplugs the cluster from the network: its own end sees the carrier go.
    pub fn link_down(&self) -> Result<()> {
        ip(&["link", "set", &self.place().veth(), "down"])?;
        Ok(())
    }

    /// Takes [`Cluster::link_down`] back.
    pub fn link_up(&self) -> Result<()> {
        ip(&["link", "set", &self.place().veth(), "up"])?;
        Ok(())
    }

    /// Loses every packet to and from the cluster silently: the carrier stays.
    pub fn link_silent(&self) -> Result<()> {
        ip(&["link", "set", &self.place().veth(), "nomaster"])?;
        Ok(())
    }

    /// Takes [`Cluster::link_silent`] back.
    pub fn link_audible(&self) -> Result<()> {
        ip(&["link", "set", &self.place().veth(), "master", &self.id.bridge()])?;
        Ok(())
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { id: &self.id, index: self.spec.index, cluster: &self.spec.name }
    }
}

/// A container's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Anonymous memory of the container, by its cgroup.
    pub anonymous: u64,
    /// VmRSS of its first process.
    pub resident: u64,
}

/// Processes of the cluster, seen from the machine.
impl Cluster {
    /// Sends a signal to a component: `etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`,
    /// `kubelet`, `kube-proxy` or `containerd`. One that ends is started again after a second.
    pub fn signal_component(&self, name: &str, signal: Signal) -> Result<()> {
        let is_it = |pid: &Pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
            Path::new(&*String::from_utf8_lossy(program)).file_name().is_some_and(|file| file == name)
        };
        let Some(pid) = cgroups::processes(&self.spec.cgroup)?.into_iter().find(is_it) else {
            bail!("{name} doesn't run on {}", self.name());
        };
        kill(pid, signal).with_context(|| format!("sending {signal} to {name} of {}", self.name()))
    }

    /// Sends a signal to every process of the first container of the pods that `selector` (labels) chooses.
    pub fn signal_container(&self, namespace: &str, selector: &str, signal: Signal) -> Result<()> {
        for container in self.containers(namespace, selector)? {
            let dirs = self.container_cgroups(&container)?;
            for pid in dirs.first().map(|dir| cgroups::processes_of(dir)).unwrap_or_default() {
                kill(pid, signal).with_context(|| format!("sending {signal} to container {container}"))?;
            }
        }
        Ok(())
    }

    /// Memory of the container of the one pod that `selector` (labels) chooses.
    pub fn container_memory(&self, namespace: &str, selector: &str) -> Result<Memory> {
        let containers = self.containers(namespace, selector)?;
        let [container] = containers.as_slice() else {
            bail!("{} containers match {selector} in {namespace} on {}, not one", containers.len(), self.name());
        };
        let dirs = self.container_cgroups(container)?;
        let stat = dirs.iter().find_map(|dir| fs::read_to_string(dir.join("memory.stat")).ok());
        let anonymous = stat.as_deref().and_then(anonymous_memory).context("no memory.stat of the container")?;
        let first = dirs.iter().flat_map(|dir| cgroups::processes_of(dir)).min().context("it has no process")?;
        let status = fs::read_to_string(format!("/proc/{first}/status")).context("its process has ended")?;
        Ok(Memory { anonymous, resident: resident_memory(&status).context("no VmRSS")? })
    }

    /// Ids of the first running container of each pod.
    fn containers(&self, namespace: &str, selector: &str) -> Result<Vec<String>> {
        let pods = self.get_json(&["pods", "-n", namespace, "-l", selector])?;
        let statuses = pods["items"].as_array().into_iter().flatten();
        let ids: Vec<_> = statuses
            .filter_map(|pod| pod["status"]["containerStatuses"][0]["containerID"].as_str())
            .filter_map(|id| Some(id.strip_prefix("containerd://")?.to_owned()))
            .collect();
        if ids.is_empty() {
            bail!("no container matches {selector} in {namespace} on {}", self.name());
        }
        Ok(ids)
    }

    /// The container's cgroup in every hierarchy.
    fn container_cgroups(&self, container: &str) -> Result<Vec<PathBuf>> {
        let mut dirs = cgroups::directories(&self.spec.cgroup)?;
        dirs.retain(|dir| dir.file_name().is_some_and(|name| name == container));
        Ok(dirs)
    }

    /// Process 1 of the host: the child of the one that made the namespaces.
    fn process_one(&self) -> Result<Pid> {
        let is_first = |pid: &Pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            inner.is_some_and(|pids| pids.split_whitespace().skip(1).eq(["1"]))
        };
        let found = cgroups::processes(&self.spec.cgroup)?.into_iter().find(is_first);
        found.with_context(|| format!("host {} doesn't run; is the instance up?", self.name()))
    }
}

/// From `memory.stat`: cgroup v1 calls it `rss`, v2 `anon`. In bytes.
fn anonymous_memory(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("rss ").or(line.strip_prefix("anon ")))?;
    line.parse().ok()
}

/// From `/proc/PID/status`, in bytes.
fn resident_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_memory_of_both_cgroup_versions() {
        assert_eq!(anonymous_memory("cache 1\nrss 4096\nrss_huge 0\n"), Some(4096));
        assert_eq!(anonymous_memory("anon 8192\nfile 1\n"), Some(8192));
        assert_eq!(resident_memory("Name: x\nVmRSS:\t  12 kB\n"), Some(12288));
    }
}
