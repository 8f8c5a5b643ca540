//! Control groups: each cluster has one in every hierarchy, which its processes can't leave and which shows, from
//! outside, every process of the cluster, containers included.
//!
//! Machines with cgroup v1 (also the hybrid layout, where v2 has no controllers) are tested. On machines with v2
//! alone, controllers must be enabled level by level and processes must be in leaves; that is written here but
//! untested.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A mounted cgroup hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// `cgroup` or `cgroup2`.
    pub kind: String,
    /// Controllers or name, as `mount -o` takes them; empty for v2.
    pub options: String,
}

/// The hierarchies of this machine. Fails if there are none.
pub fn hierarchies() -> Result<Vec<Hierarchy>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading /proc/self/mountinfo")?;
    let found = parse_mountinfo(&mounts);
    if found.is_empty() {
        bail!("no cgroup hierarchy is mounted; mount /sys/fs/cgroup as Debian does");
    }
    Ok(found)
}

fn parse_mountinfo(mounts: &str) -> Vec<Hierarchy> {
    mounts.lines().filter_map(parse_mount).collect()
}

/// `36 25 0:32 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu`
fn parse_mount(line: &str) -> Option<Hierarchy> {
    let (place, filesystem) = line.split_once(" - ")?;
    let mut filesystem = filesystem.split(' ');
    let kind = filesystem.next().filter(|kind| matches!(*kind, "cgroup" | "cgroup2"))?;
    let super_options = filesystem.nth(1)?;
    let options: Vec<_> = super_options.split(',').filter(|option| kind == "cgroup" && selects(option)).collect();
    Some(Hierarchy {
        mount: PathBuf::from(place.split(' ').nth(4)?),
        kind: kind.to_owned(),
        options: options.join(","),
    })
}

/// Whether a mount option says which v1 hierarchy it is, rather than how it behaves.
fn selects(option: &str) -> bool {
    option.starts_with("name=")
        || !(option.contains('=') || matches!(option, "rw" | "ro" | "xattr" | "noprefix" | "clone_children"))
}

/// Creates cgroup `path` (relative) in every hierarchy.
pub fn create(path: &Path) -> Result<()> {
    let hierarchies = hierarchies()?;
    for hierarchy in &hierarchies {
        let mut dir = hierarchy.mount.clone();
        for part in path {
            let parent = dir.clone();
            dir.push(part);
            fs::create_dir_all(&dir).with_context(|| format!("creating cgroup {}", dir.display()))?;
            if is_v2(&hierarchies) {
                enable_controllers(&parent)?;
            } else if hierarchy.options.split(',').any(|controller| controller == "cpuset") {
                inherit_cpuset(&parent, &dir)?;
            }
        }
    }
    Ok(())
}

/// Whether there is v2 and nothing else.
fn is_v2(hierarchies: &[Hierarchy]) -> bool {
    matches!(hierarchies, [only] if only.kind == "cgroup2")
}

/// A new v1 cpuset allows nothing, and nothing can join it until it does.
fn inherit_cpuset(parent: &Path, dir: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let allowed = fs::read(parent.join(file)).with_context(|| format!("reading {file}"))?;
        fs::write(dir.join(file), allowed).with_context(|| format!("writing {file} of {}", dir.display()))?;
    }
    Ok(())
}

fn enable_controllers(dir: &Path) -> Result<()> {
    let controllers = fs::read_to_string(dir.join("cgroup.controllers")).context("reading cgroup.controllers")?;
    for controller in controllers.split_whitespace() {
        fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"))
            .with_context(|| format!("enabling {controller} in {}", dir.display()))?;
    }
    Ok(())
}

/// Moves this process into cgroup `path` in every hierarchy.
pub fn join(path: &Path) -> Result<()> {
    for hierarchy in hierarchies()? {
        let procs = hierarchy.mount.join(path).join("cgroup.procs");
        fs::write(&procs, std::process::id().to_string()).with_context(|| format!("joining {}", procs.display()))?;
    }
    Ok(())
}

/// With v2 alone, moves this process from cgroup `path` to a leaf below it.
pub fn join_leaf(path: &Path) -> Result<()> {
    if is_v2(&hierarchies()?) {
        let leaf = path.join("host");
        create(&leaf)?;
        join(&leaf)?;
    }
    Ok(())
}

/// Mounts each hierarchy anew, so that this process, in a cgroup and mount namespace of its own, sees
/// its own cgroup as the root.
pub fn mount_private() -> Result<()> {
    let hierarchies = hierarchies()?;
    for Hierarchy { mount: target, kind, options } in &hierarchies {
        // The kernel refuses to mount a filesystem right on top of itself.
        umount2(target, MntFlags::MNT_DETACH).with_context(|| format!("unmounting {}", target.display()))?;
        mount(Some(kind.as_str()), target, Some(kind.as_str()), MsFlags::empty(), Some(options.as_str()))
            .with_context(|| format!("mounting {}", target.display()))?;
        if is_v2(&hierarchies) {
            enable_controllers(target)?;
        }
    }
    Ok(())
}

/// The processes in `path` and below it.
pub fn processes(path: &Path) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for hierarchy in hierarchies()? {
        for dir in subtree(&hierarchy.mount.join(path)) {
            found.extend(processes_of(&dir));
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The processes of one cgroup directory, without those below it.
pub fn processes_of(dir: &Path) -> Vec<Pid> {
    let procs = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    procs.lines().filter_map(|line| line.parse().ok()).map(Pid::from_raw).collect()
}

/// Directories of cgroup `path` in all hierarchies.
pub fn directories(path: &Path) -> Result<Vec<PathBuf>> {
    let roots = hierarchies()?.into_iter().map(|hierarchy| hierarchy.mount.join(path));
    Ok(roots.flat_map(|root| subtree(&root)).collect())
}

/// `dir` and all below it, children first; empty if it isn't there.
fn subtree(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let children = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<_> = children.flat_map(|child| subtree(&child.path())).collect();
    found.push(dir.to_owned());
    found
}

/// Kills all processes in `path` and waits until they are gone, then removes it everywhere.
pub fn remove(path: &Path) -> Result<()> {
    const PATIENCE: u32 = 300;
    let pause = Duration::from_millis(50);
    for _ in 0..PATIENCE {
        let alive = processes(path)?;
        if alive.is_empty() {
            break;
        }
        for pid in alive {
            // It may have ended since.
            let _ = kill(pid, Signal::SIGKILL);
        }
        thread::sleep(pause);
    }
    for _ in 0..PATIENCE {
        // The kernel answers EBUSY for a moment after the last process has gone.
        if directories(path)?.iter().all(|dir| fs::remove_dir(dir).is_ok()) {
            return Ok(());
        }
        thread::sleep(pause);
    }
    bail!("cgroup {} can't be removed; processes {:?} are in it", path.display(), processes(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_v1_and_v2() {
        let mounts = "\
30 25 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd
33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";
        let found: Vec<_> = parse_mountinfo(mounts)
            .into_iter()
            .map(|hierarchy| (hierarchy.mount.display().to_string(), hierarchy.kind, hierarchy.options))
            .collect();
        let expected = [
            ("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct"),
            ("/sys/fs/cgroup/systemd", "cgroup", "name=systemd"),
            ("/sys/fs/cgroup/unified", "cgroup2", ""),
        ];
        assert_eq!(found, expected.map(|(mount, kind, options)| (mount.into(), kind.into(), options.into())));
    }
}
