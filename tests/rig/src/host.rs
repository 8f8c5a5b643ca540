//! One cluster is one host: a process tree of its own in network, PID, mount and cgroup namespaces.
//!
//! [`spawn`] starts this program again as `enter`, which makes the namespaces and starts it once more as `host`:
//! process 1 in there, which starts the components and restarts those that end. When `enter` or `host` ends,
//! however that happens, the kernel ends everything else in the tree and takes the mounts away.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, sethostname, setsid};

use crate::cgroups;
use crate::components::{self, CONTAINERD_SOCKET, Component, Spec};
use crate::instance::Process;
use crate::paths;
use crate::process::{run, wait_until};

/// Directories that every host has for itself, empty at first: programs have fixed paths in them.
pub const PRIVATE_DIRS: [&str; 3] = ["/run", "/var/log", "/var/lib"];

/// How long a component may take until it answers.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often components may end while the host waits for one thing.
const MOST_STARTS: u32 = 5;

/// A host's state as files in its directory, for whoever waits for it.
#[derive(Clone, Copy, Debug)]
pub enum Milestone {
    /// The API server answers.
    Api,
    /// The node is ready and all images are loaded.
    Ready,
}

impl Milestone {
    fn file(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Self::Api => "api-ready",
            Self::Ready => "ready",
        })
    }

    /// Whether the host in `dir` has come that far.
    pub fn is_reached(self, dir: &Path) -> bool {
        self.file(dir).exists()
    }
}

/// Starts a host in the background. `program` is the rig's program.
pub fn spawn(program: &Path, spec: &Spec) -> Result<()> {
    spec.save()?;
    fs::create_dir_all(spec.dir.join("logs"))?;
    let log = File::create(spec.log("host"))?;
    let child = Command::new(program)
        .arg("enter")
        .arg(&spec.dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting host {}", spec.name))?;
    let process = Process::of(child.id().try_into()?)?;
    paths::write_atomically(&process_file(&spec.dir), &serde_json::to_vec(&process)?)
}

/// The process at the top of the host in `dir`, if it was ever started.
pub fn process(dir: &Path) -> Option<Process> {
    serde_json::from_slice(&fs::read(process_file(dir)).ok()?).ok()
}

fn process_file(dir: &Path) -> PathBuf {
    dir.join("host-process.json")
}

/// Fails if the host in `dir` doesn't run, with what it said.
pub fn check_alive(dir: &Path) -> Result<()> {
    if process(dir).is_some_and(|process| process.is_alive()) {
        return Ok(());
    }
    let name = dir.file_name().unwrap_or_default().display();
    let log = fs::read_to_string(dir.join("logs/host.log")).unwrap_or_default();
    bail!("host {name} ended: {}", log.trim_end())
}

/// Waits until the host in `dir` has reached a milestone; fails at once if it ends instead.
pub fn wait_for(dir: &Path, milestone: Milestone) -> Result<()> {
    let name = dir.file_name().unwrap_or_default().display();
    wait_until(format!("host {name} to be {milestone:?}"), PATIENCE, || {
        if milestone.is_reached(dir) {
            return Ok(Some(Ok(())));
        }
        Ok(check_alive(dir).err().map(Err))
    })?
}

/// The hidden subcommand `enter`: makes the namespaces of the host in `dir`, starts `host` in them and waits for it.
pub fn enter(dir: &Path) -> Result<()> {
    let spec = Spec::load(dir)?;
    setsid().context("leaving the session")?;
    cgroups::join(&spec.cgroup)?;
    let network = File::open(&spec.network).with_context(|| format!("opening {}", spec.network.display()))?;
    setns(network, CloneFlags::CLONE_NEWNET).context("entering the network namespace")?;
    unshare(
        CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWCGROUP
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC,
    )
    .context("making namespaces")?;
    cgroups::join_leaf(&spec.cgroup)?;
    // Not current_exe(): the file may have been replaced by a newer build meanwhile.
    let mut host = Command::new("/proc/self/exe");
    let status = host.arg0("rig").arg("host").arg(dir).status().context("starting the host")?;
    bail!("host {} ended: {status}", spec.name)
}

/// The hidden subcommand `host`: process 1 of the host. Returns only with an error.
pub fn host(dir: &Path) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("binding to the parent's life")?;
    let spec = Spec::load(dir)?;
    sethostname(&spec.name).context("naming the host")?;
    mount_private()?;
    Host { spec, running: Vec::new() }.run()
}

fn mount_private() -> Result<()> {
    const NONE: Option<&str> = None;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).context("making mounts private")?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), NONE).context("mounting /proc")?;
    cgroups::mount_private()?;
    for dir in PRIVATE_DIRS {
        mount(Some("tmpfs"), dir, Some("tmpfs"), MsFlags::empty(), Some("mode=755"))
            .with_context(|| format!("mounting {dir}"))?;
    }
    Ok(())
}

struct Host {
    spec: Spec,
    running: Vec<(Component, Child)>,
}

impl Host {
    fn run(mut self) -> Result<()> {
        components::write_configs(&self.spec)?;
        self.start(components::etcd(&self.spec))?;
        self.start(components::apiserver(&self.spec))?;
        self.start(components::containerd(&self.spec))?;

        let spec = self.spec.clone();
        let images = thread::spawn(move || load_images(&spec));

        self.wait("the API server to listen", |spec| {
            let address = SocketAddr::from((spec.address, 443));
            Ok(TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok())
        })?;
        self.wait("the API server to be ready", |spec| Ok(kubectl(spec, &["get", "--raw", "/readyz"]).is_ok()))?;
        self.reached(Milestone::Api)?;

        self.start(components::controller_manager(&self.spec))?;
        self.start(components::scheduler(&self.spec))?;
        self.start(components::kubelet(&self.spec))?;
        self.start(components::proxy(&self.spec))?;
        let path = r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}"#;
        self.wait("the node to be ready", |spec| {
            Ok(kubectl(spec, &["get", "node", &spec.name, "-o", path])? == "True")
        })?;
        images.join().expect("loading images doesn't panic")?;
        self.reached(Milestone::Ready)?;
        self.keep_running()
    }

    fn start(&mut self, component: Component) -> Result<()> {
        let child = launch(&self.spec, &component)?;
        self.running.push((component, child));
        Ok(())
    }

    /// Waits for `ready`, and meanwhile keeps the components running. Gives up on one that ends again and again.
    fn wait(&mut self, what: &str, ready: impl Fn(&Spec) -> Result<bool>) -> Result<()> {
        let mut starts = 0;
        wait_until(what, PATIENCE, || {
            for (component, child) in &mut self.running {
                if let Some(status) = child.try_wait()? {
                    starts += 1;
                    if starts > MOST_STARTS {
                        return Ok(Some(Err(anyhow!("{} ended ({status})", component.name))));
                    }
                    restart(&self.spec, component, child)?;
                }
            }
            Ok(ready(&self.spec)?.then_some(Ok(())))
        })?
        .with_context(|| format!("waiting for {what}"))
    }

    fn reached(&self, milestone: Milestone) -> Result<()> {
        fs::write(milestone.file(&self.spec.dir), "").with_context(|| format!("noting {milestone:?}"))
    }

    /// The duties of process 1: restarts components, as systemd would, and reaps orphans.
    fn keep_running(mut self) -> Result<()> {
        loop {
            let ended = match wait().context("waiting for any process")? {
                WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _) => pid,
                _ => continue,
            };
            let ended = |(_, child): &&mut (Component, Child)| Pid::from_raw(child.id() as i32) == ended;
            if let Some((component, child)) = self.running.iter_mut().find(ended) {
                restart(&self.spec, component, child)?;
            }
        }
    }
}

fn restart(spec: &Spec, component: &Component, child: &mut Child) -> Result<()> {
    eprintln!("{} ended; starting it again", component.name);
    thread::sleep(Duration::from_secs(1));
    *child = launch(spec, component)?;
    Ok(())
}

fn launch(spec: &Spec, component: &Component) -> Result<Child> {
    let log = File::options().create(true).append(true).open(spec.log(component.name))?;
    Command::new(&component.program)
        .args(&component.arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", component.name))
}

fn kubectl(spec: &Spec, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(spec.bin.join("kubectl"));
    command.env("KUBECACHEDIR", "/run/kubectl").arg("--kubeconfig").arg(spec.admin_kubeconfig());
    run(command.args(arguments))
}

fn load_images(spec: &Spec) -> Result<()> {
    wait_until("containerd to listen", PATIENCE, || Ok(UnixStream::connect(CONTAINERD_SOCKET).ok()))?;
    for image in &spec.images {
        run(Command::new("ctr").args(["--namespace", "k8s.io", "images", "import"]).arg(image))?;
    }
    Ok(())
}
