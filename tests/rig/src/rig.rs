//! An instance as a whole: starting, using and removing it.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::builds::{self, Programs};
use crate::cluster::Cluster;
use crate::components::Spec;
use crate::host::{self, Milestone};
use crate::images::{self, BaseImages, OurImages};
use crate::instance::{InstanceId, Lock, Process, Record};
use crate::network::{self, Place};
use crate::pki::Pki;
use crate::process::run;
use crate::progress::Progress;
use crate::{cgroups, kubeconfig, lifecycle, ocm, packages, paths, preflight};

/// What instance is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its identity.
    pub id: InstanceId,
    /// How many managed clusters, 1 to 20.
    pub members: u8,
    /// Whether it is to end with this process; then it must not be up already. Otherwise it lives until it is taken
    /// down.
    pub owned: bool,
}

/// A running instance: a hub and its members, with OCM.
#[derive(Debug)]
pub struct Rig {
    record: Record,
    hub: Cluster,
    members: Vec<Cluster>,
    /// Held as long as an owned instance is in use.
    lock: Option<Lock>,
}

impl Rig {
    /// Starts an instance, or uses the one that is there. Installs and builds what is missing.
    ///
    /// Until it is complete, an instance belongs to this process: if that is killed, all goes.
    pub fn up(options: &Options, progress: &Progress) -> Result<Self> {
        if !(1..=20).contains(&options.members) {
            bail!("{} members: 1 to 20 are possible", options.members);
        }
        lifecycle::reap_orphans(progress)?;
        let lock = match Lock::try_take(&options.id)? {
            Some(lock) => lock,
            None => {
                progress.step(&format!("waiting for who uses instance {}", options.id), || Lock::take(&options.id))?
            }
        };
        let found = Self::running(options, progress)?.map_or_else(|| Self::start(options, progress), Ok);
        match found.and_then(|rig| rig.finish(options, progress)) {
            Ok(rig) => Ok(Self { lock: options.owned.then_some(lock), ..rig }),
            Err(error) => {
                let logs = lifecycle::keep_logs(&options.id);
                if !Record::load(&options.id)?.is_some_and(|record| record.complete) {
                    lifecycle::remove(&options.id, lock)?;
                }
                Err(match logs {
                    Ok(Some(logs)) => error.context(format!("the clusters didn't come up; see {}", logs.display())),
                    _ => error,
                })
            }
        }
    }

    /// A handle on an instance that is up.
    pub fn open(id: &InstanceId) -> Result<Self> {
        preflight::check_rights()?;
        let Some(record) = Record::load(id)?.filter(|record| record.complete) else {
            bail!("instance {id} is not up; `cargo rig --instance {id} up` starts it");
        };
        let specs = (0..=record.members).map(|index| Spec::load(&id.dir()?.join(cluster_name(index))));
        let specs = specs.collect::<Result<_>>()?;
        Self::assemble(record, specs)
    }

    /// The hub.
    pub fn hub(&self) -> &Cluster {
        &self.hub
    }

    /// The managed cluster of that name: `cluster1`, `cluster2`, ...
    ///
    /// # Panics
    /// If there is none.
    pub fn member(&self, name: &str) -> &Cluster {
        let found = self.members.iter().find(|member| member.name() == name);
        found.unwrap_or_else(|| panic!("no member is called {name}"))
    }

    /// The cluster of that name, the hub included.
    pub fn find(&self, name: &str) -> Result<&Cluster> {
        let names = || self.clusters().map(Cluster::name).collect::<Vec<_>>().join(", ");
        self.clusters()
            .find(|cluster| cluster.name() == name)
            .with_context(|| format!("no cluster is called {name}: there are {}", names()))
    }

    /// All managed clusters.
    pub fn members(&self) -> &[Cluster] {
        &self.members
    }

    /// All clusters, the hub first.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// A kubeconfig with a context per cluster; the hub is the current one.
    pub fn kubeconfig(&self) -> Result<PathBuf> {
        Ok(self.record.id.dir()?.join("kubeconfig"))
    }

    /// Directory of the programs kubectl, clusteradm and helm.
    pub fn tools(&self) -> &Path {
        &self.hub.spec().bin
    }

    /// `clusteradm` against the hub; returns its standard output.
    pub fn clusteradm(&self, arguments: &[&str]) -> Result<String> {
        ocm::clusteradm(&self.hub, arguments)
    }

    /// `helm` against the hub; returns its standard output.
    pub fn helm(&self, arguments: &[&str]) -> Result<String> {
        run(self.hub.tool("helm").arg("--kubeconfig").arg(self.hub.kubeconfig()).args(arguments))
    }

    /// Loads the images of the hub manager and of the agent on every cluster.
    pub fn load_images(&self, images: &OurImages) -> Result<()> {
        self.hub.load_image(&images.hub)?;
        in_parallel(self.clusters(), |cluster| cluster.load_image(&images.agent))
    }

    /// Ends the instance and removes everything of it.
    pub fn down(self) -> Result<()> {
        match self.lock {
            Some(lock) => lifecycle::remove(&self.record.id, lock),
            None => lifecycle::down(&self.record.id),
        }
    }

    fn assemble(record: Record, specs: Vec<Spec>) -> Result<Self> {
        let mut clusters = specs.into_iter().map(|spec| Cluster::new(record.id.clone(), spec));
        let hub = clusters.next().context("an instance has a hub")?;
        let members = clusters.collect();
        Ok(Self { record, hub, members, lock: None })
    }

    /// The instance if it is there and whole. What is left of one that isn't gets removed.
    fn running(options: &Options, progress: &Progress) -> Result<Option<Self>> {
        let id = &options.id;
        let rig = match Self::open(id) {
            Ok(rig) if rig.clusters().all(Cluster::is_running) => rig,
            _ => {
                lifecycle::clear(id, progress)?;
                return Ok(None);
            }
        };
        if options.owned {
            bail!("instance {id} is up already; use another one, or `cargo rig --instance {id} down` first");
        }
        let members = rig.record.members;
        if members != options.members {
            bail!("instance {id} is up with {members} members; use those, or `cargo rig --instance {id} down` first");
        }
        Ok(Some(rig))
    }

    /// Starts a new instance, up to members that have asked to join.
    fn start(options: &Options, progress: &Progress) -> Result<Self> {
        preflight::check_resources()?;
        preflight::raise_limits(progress)?;
        packages::install_missing(progress)?;
        let programs = builds::programs(progress)?;
        let images = images::base(&programs, progress)?;
        let text = format!("starting a hub and {} member(s)", options.members);
        let rig = progress.step(&text, || Self::start_hosts(options, &programs, &images))?;
        let hub = &rig.hub;
        progress.step("hub: Kubernetes", || host::wait_for(hub.dir(), Milestone::Api))?;
        let token = progress.step("hub: clusteradm init", || {
            ocm::init(hub)?;
            ocm::token(hub)
        })?;
        in_parallel(&rig.members, |member| {
            progress
                .step(&format!("{}: Kubernetes", member.name()), || host::wait_for(member.dir(), Milestone::Api))?;
            progress.step(&format!("{}: clusteradm join", member.name()), || {
                ocm::join(hub, member, &token)?;
                ocm::accept(hub, member.name())
            })
        })?;
        Ok(rig)
    }

    fn start_hosts(options: &Options, programs: &Programs, images: &BaseImages) -> Result<Self> {
        let mut record = Record {
            id: options.id.clone(),
            subnet: 0,
            members: options.members,
            owner: Some(Process::current()?),
            complete: false,
        };
        let program = lifecycle::program()?;
        // Before anything else, so that whatever is created will be found and removed.
        record.save()?;
        lifecycle::start_guard(&program, &record.id)?;
        record.subnet = network::create_bridge(&record.id)?;
        record.save()?;

        let specs = (0..=record.members).map(|index| spec(&record, programs, images, index));
        let specs = specs.collect::<Result<_>>()?;
        let rig = Self::assemble(record, specs)?;
        rig.write_keys()?;
        for cluster in rig.clusters() {
            let spec = cluster.spec();
            network::connect(cluster.place(), spec.address, spec.service_address())?;
            cgroups::create(&spec.cgroup)?;
            host::spawn(&program, spec)?;
        }
        Ok(rig)
    }

    /// Writes each cluster's keys and kubeconfigs, and the instance's kubeconfig.
    fn write_keys(&self) -> Result<()> {
        let mut keys = Vec::new();
        for cluster in self.clusters() {
            let spec = cluster.spec();
            let pki = Pki::generate(&spec.name, &[Ipv4Addr::LOCALHOST, spec.address, spec.service_address()])?;
            pki.write(&spec.pki())?;
            for (path, user) in [(spec.admin_kubeconfig(), &pki.admin), (spec.kubelet_kubeconfig(), &pki.kubelet)] {
                paths::write_atomically(&path, kubeconfig::render(&[entry(spec, &pki, user)])?.as_bytes())?;
            }
            keys.push((spec, pki));
        }
        let entries: Vec<_> = keys.iter().map(|(spec, pki)| entry(spec, pki, &pki.admin)).collect();
        paths::write_atomically(&self.kubeconfig()?, kubeconfig::render(&entries)?.as_bytes())
    }

    /// Waits until all works, then hands the instance over to who will own it.
    fn finish(mut self, options: &Options, progress: &Progress) -> Result<Self> {
        let hub = &self.hub;
        in_parallel(self.clusters(), |cluster| {
            progress.step(&format!("{}: ready", cluster.name()), || {
                host::wait_for(cluster.dir(), Milestone::Ready)?;
                if cluster.name() == hub.name() { ocm::wait_hub(hub) } else { ocm::wait_member(hub, cluster) }
            })
        })?;
        self.record.owner = options.owned.then(Process::current).transpose()?;
        self.record.complete = true;
        self.record.save()?;
        Ok(self)
    }
}

/// The hub's host in the instance's network; members follow.
const HUB_ADDRESS: u8 = 10;

fn spec(record: &Record, programs: &Programs, images: &BaseImages, index: u8) -> Result<Spec> {
    let name = cluster_name(index);
    let place = Place { id: &record.id, index, cluster: &name };
    Ok(Spec {
        index,
        address: record.address(HUB_ADDRESS + index),
        dir: record.id.dir()?.join(&name),
        bin: programs.kubernetes.clone(),
        network: place.namespace_file(),
        cgroup: record.id.cgroup().join(&name),
        images: if index == 0 { images.of_hub() } else { images.of_member() },
        name,
    })
}

fn cluster_name(index: u8) -> String {
    match index {
        0 => "hub".to_owned(),
        _ => format!("cluster{index}"),
    }
}

fn entry<'a>(spec: &'a Spec, pki: &'a Pki, user: &'a crate::pki::Pair) -> kubeconfig::Entry<'a> {
    kubeconfig::Entry { name: &spec.name, server: spec.address, ca: &pki.ca.certificate, user }
}

/// Does `work` for all clusters at the same time; the first failure counts.
fn in_parallel<'a>(
    clusters: impl IntoIterator<Item = &'a Cluster>,
    work: impl Fn(&Cluster) -> Result<()> + Sync,
) -> Result<()> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = clusters.into_iter().map(|cluster| scope.spawn(move || work(cluster))).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("it panicked"))));
        results.collect::<Vec<_>>().into_iter().collect()
    })
}
