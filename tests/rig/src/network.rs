//! The network of an instance: one bridge on the machine, and per cluster a network namespace with a veth into it.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::instance::{InstanceId, Lock};
use crate::paths;
use crate::process::{run, run_with_input};

/// One cluster's place in the network.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The instance.
    pub id: &'a InstanceId,
    /// 0 for the hub, then the members.
    pub index: u8,
    /// Name of the cluster.
    pub cluster: &'a str,
}

impl Place<'_> {
    /// Name of the network namespace.
    pub fn namespace(&self) -> String {
        format!("{}{}", namespace_prefix(self.id), self.cluster)
    }

    /// The namespace as a file.
    pub fn namespace_file(&self) -> PathBuf {
        PathBuf::from(NAMESPACES).join(self.namespace())
    }

    /// Name of the veth's end on the machine; the other end is `eth0` in the namespace.
    pub fn veth(&self) -> String {
        format!("{}-{}", self.id.bridge(), self.index)
    }
}

const NAMESPACES: &str = "/run/netns";

fn namespace_prefix(id: &InstanceId) -> String {
    format!("tenant-records-{id}-")
}

/// Chooses a free network 10.210.N.0/24 and creates the bridge with address .1 in it. Returns N.
pub fn create_bridge(id: &InstanceId) -> Result<u8> {
    // Two rigs must not choose at the same time.
    let _lock = Lock::take_file(&paths::cache()?.join("network.lock"))?;
    let routes = ip(&["-4", "route", "show", "table", "all"])?;
    let Some(subnet) = free_subnet(&routes) else {
        bail!("all networks 10.210.0.0/24 to 10.210.255.0/24 are in use; stop some instances (`cargo rig status`)");
    };
    let bridge = id.bridge();
    batch(&[
        format!("link add {bridge} type bridge"),
        format!("addr add 10.210.{subnet}.1/24 dev {bridge}"),
        format!("link set {bridge} up"),
    ])?;
    Ok(subnet)
}

/// The first N whose 10.210.N.0/24 no route touches.
fn free_subnet(routes: &str) -> Option<u8> {
    let used: BTreeSet<u8> = routes
        .split(|char: char| !(char.is_ascii_digit() || char == '.'))
        .filter_map(|word| word.parse::<Ipv4Addr>().ok())
        .filter_map(|address| match address.octets() {
            [10, 210, subnet, _] => Some(subnet),
            _ => None,
        })
        .collect();
    (0..=255).find(|subnet| !used.contains(subnet))
}

/// Connects a cluster at `address`. `service` is the API server's address for pods; it sits on the loopback
/// interface, so that they reach it without kube-proxy.
pub fn connect(place: Place<'_>, address: Ipv4Addr, service: Ipv4Addr) -> Result<()> {
    let (namespace, veth, bridge) = (place.namespace(), place.veth(), place.id.bridge());
    let [a, b, c, _] = address.octets();
    batch(&[
        format!("netns add {namespace}"),
        format!("link add {veth} type veth peer name eth0 netns {namespace}"),
        format!("link set {veth} master {bridge} up"),
    ])?;
    let inside = [
        format!("addr add {address}/24 dev eth0"),
        "link set eth0 up".to_owned(),
        "link set lo up".to_owned(),
        format!("addr add {service}/32 dev lo"),
        format!("route add default via {a}.{b}.{c}.1"),
    ];
    run_with_input(Command::new("ip").args(["-n", &namespace, "-batch", "-"]), &inside.join("\n"))?;
    Ok(())
}

/// Removes all interfaces and network namespaces of the instance.
pub fn remove(id: &InstanceId) -> Result<()> {
    for namespace in namespaces(id)? {
        ip(&["netns", "del", &namespace])?;
    }
    for interface in interfaces(id)? {
        // One end of a veth goes with the other, and with its namespace.
        let _ = ip(&["link", "del", &interface]);
    }
    match interfaces(id)?.as_slice() {
        [] => Ok(()),
        rest => bail!("interfaces {rest:?} can't be removed"),
    }
}

/// Names of the instance's network namespaces.
pub fn namespaces(id: &InstanceId) -> Result<Vec<String>> {
    Ok(names_in(NAMESPACES)?.into_iter().filter(|name| name.starts_with(&namespace_prefix(id))).collect())
}

/// Names of the instance's interfaces on the machine.
pub fn interfaces(id: &InstanceId) -> Result<Vec<String>> {
    let bridge = id.bridge();
    let veths = format!("{bridge}-");
    let names = names_in("/sys/class/net")?.into_iter();
    Ok(names.filter(|name| *name == bridge || name.starts_with(&veths)).collect())
}

fn names_in(dir: &str) -> Result<Vec<String>> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("reading {dir}")),
    }
}

/// Runs `ip` with `arguments`.
pub fn ip(arguments: &[&str]) -> Result<String> {
    run(Command::new("ip").args(arguments))
}

fn batch(lines: &[String]) -> Result<()> {
    run_with_input(Command::new("ip").args(["-batch", "-"]), &lines.join("\n"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_networks_in_use() {
        assert_eq!(free_subnet("default via 10.0.0.1 dev eth0"), Some(0));
        let routes = "10.210.0.0/24 dev tr-demo proto kernel scope link src 10.210.0.1\n10.210.1.0/24 dev x";
        assert_eq!(free_subnet(routes), Some(2));
        let all: String = (0..=255).map(|subnet| format!("10.210.{subnet}.0/24 dev x\n")).collect();
        assert_eq!(free_subnet(&all), None);
    }

    #[test]
    fn names_carry_the_instance() {
        let id: InstanceId = "demo".parse().unwrap();
        let place = Place { id: &id, index: 2, cluster: "cluster2" };
        assert_eq!(place.namespace(), "tenant-records-demo-cluster2");
        assert_eq!(place.veth(), "tr-demo-2");
    }
}
