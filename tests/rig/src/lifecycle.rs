//! The end of instances: taking one down, and making sure that none outlives its owner.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::unistd::setsid;

use crate::instance::{self, InstanceId, Lock, Record};
use crate::process::{cargo, run};
use crate::progress::Progress;
use crate::{cgroups, network, paths, preflight};

/// Ends an instance, whatever state it is in, and removes everything of it.
pub fn down(id: &InstanceId) -> Result<()> {
    preflight::check_rights()?;
    let Some(lock) = Lock::try_take(id)? else {
        let owner = Record::load(id)?.and_then(|record| record.owner);
        let owner = owner.map_or_else(String::new, |owner| format!(" ({owner})"));
        bail!("instance {id} is in use by another process{owner}: end that first");
    };
    remove(id, lock)
}

/// Removes instances whose owner has gone without doing so.
pub fn reap_orphans(progress: &Progress) -> Result<()> {
    preflight::check_rights()?;
    for id in instance::all()? {
        // One that is locked has an owner, or is being removed.
        let Some(lock) = Lock::try_take(&id)? else {
            continue;
        };
        // A record that this version doesn't understand is left to `down`.
        if Record::load(&id).is_ok_and(|record| record.is_none_or(|record| record.is_orphan())) {
            progress.step(&format!("removing instance {id}, whose owner is gone"), || remove(&id, lock))?;
        }
    }
    Ok(())
}

/// Removes whatever there is of an instance, and makes its directory.
pub(crate) fn clear(id: &InstanceId, progress: &Progress) -> Result<()> {
    let rest = leftovers(id)?;
    if !rest.is_empty() {
        progress.step(&format!("removing what is left of instance {id}"), || remove_all(id))?;
    }
    // Keys are in it.
    let dir = id.dir()?;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.with_context(|| format!("creating {}", dir.display()))
}

/// As [`down`], for who holds the lock.
pub(crate) fn remove(id: &InstanceId, lock: Lock) -> Result<()> {
    remove_all(id)?;
    let rest = leftovers(id)?;
    if !rest.is_empty() {
        bail!("instance {id} left behind:\n{}", rest.join("\n"));
    }
    lock.remove()
}

fn remove_all(id: &InstanceId) -> Result<()> {
    cgroups::remove(&id.cgroup())?;
    network::remove(id)?;
    let dir = id.dir()?;
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Copies the logs of an instance's components and pods to where they outlive it, in place of earlier ones. Returns
/// the directory; none if there are no logs.
pub fn keep_logs(id: &InstanceId) -> Result<Option<PathBuf>> {
    let hosts: Vec<_> = fs::read_dir(id.dir()?)
        .map(|entries| entries.flatten().map(|entry| entry.path()).filter(|host| host.join("logs").exists()).collect())
        .unwrap_or_default();
    if hosts.is_empty() {
        return Ok(None);
    }
    let kept = paths::cache()?.join("logs").join(id.to_string());
    if kept.exists() {
        fs::remove_dir_all(&kept).with_context(|| format!("removing {}", kept.display()))?;
    }
    for host in hosts {
        let target = kept.join(host.file_name().unwrap_or_default());
        fs::create_dir_all(&target).with_context(|| format!("creating {}", target.display()))?;
        let logs = ["logs", "pod-logs"].map(|name| host.join(name)).into_iter().filter(|dir| dir.exists());
        run(Command::new("cp").args(["--recursive", "--"]).args(logs).arg(&target))?;
    }
    Ok(Some(kept))
}

/// What there is of an instance on this machine, one line each: processes, cgroups, interfaces, network namespaces,
/// mounts and files. Empty after `down`.
pub fn leftovers(id: &InstanceId) -> Result<Vec<String>> {
    let dir = id.dir()?;
    let mut found: Vec<String> =
        cgroups::processes(&id.cgroup())?.into_iter().map(|pid| format!("process {pid}")).collect();
    found.extend(cgroups::directories(&id.cgroup())?.into_iter().map(|dir| format!("cgroup {}", dir.display())));
    found.extend(network::interfaces(id)?.into_iter().map(|name| format!("interface {name}")));
    found.extend(network::namespaces(id)?.into_iter().map(|name| format!("network namespace {name}")));
    let mounts = fs::read_to_string("/proc/self/mounts").context("reading /proc/self/mounts")?;
    let ours = mounts.lines().filter(|line| line.contains(&format!("{}/", dir.display())));
    found.extend(ours.map(|line| format!("mount {line}")));
    if dir.exists() {
        found.push(format!("directory {}", dir.display()));
    }
    Ok(found)
}

/// Starts the guard of an instance in the background: [`guard`].
pub(crate) fn start_guard(program: &Path, id: &InstanceId) -> Result<()> {
    Command::new(program)
        .args(["--instance", &id.to_string(), "guard"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting the instance's guard")?;
    Ok(())
}

/// The hidden subcommand `guard`: removes an instance as soon as its owner has gone, however that ended. Returns
/// when the instance has no owner any more.
pub fn guard(id: &InstanceId) -> Result<()> {
    // Ctrl-C is for the owner.
    setsid().context("leaving the session")?;
    while let Some(Record { owner: Some(owner), .. }) = Record::load(id)? {
        if !owner.is_alive() {
            // Good to have; removing the instance matters more.
            let _ = keep_logs(id);
            return reap_orphans(&Progress::quiet());
        }
        thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// The rig's program, which hosts and guards run: this one, or, in a test, the one that cargo builds beside it.
pub(crate) fn program() -> Result<PathBuf> {
    let current = std::env::current_exe().context("finding this program")?;
    if current.file_stem().is_some_and(|name| name == "rig") {
        return Ok(current);
    }
    run(cargo().args(["build", "--quiet", "--package", "rig"]))?;
    let profile = current.ancestors().nth(2).context("a test lies in target/PROFILE/deps")?;
    Ok(profile.join("rig"))
}
