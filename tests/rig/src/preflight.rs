//! Refuses early, and says what to do, where the rig can't work.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use nix::sys::statvfs::statvfs;
use nix::unistd::Uid;

use crate::host::PRIVATE_DIRS;
use crate::paths;
use crate::progress::Progress;

const INOTIFY_LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";
const INOTIFY_NEEDED: u32 = 1024;
const GIB: u64 = 1 << 30;
const MEMORY_NEEDED: u64 = 8 * GIB;
const DISK_NEEDED: u64 = 20_000_000_000;

/// What any command that touches clusters needs.
pub fn check_rights() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("the rig runs real Linux hosts: use a Linux machine, best Debian 12");
    }
    if !Uid::effective().is_root() {
        bail!("the rig makes network interfaces, namespaces and mounts: run it as root");
    }
    Ok(())
}

/// What starting an instance needs.
pub fn check_resources() -> Result<()> {
    let meminfo = fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let memory = available_memory(&meminfo).context("/proc/meminfo is not understood")?;
    if memory < MEMORY_NEEDED {
        bail!(
            "only {:.1} GiB of memory are free, the clusters need {} GiB: stop other programs or add memory",
            memory as f64 / GIB as f64,
            MEMORY_NEEDED / GIB
        );
    }
    for (dir, variable) in [(paths::cache()?, "TENANT_RECORDS_CACHE"), (paths::state()?, "XDG_STATE_HOME")] {
        check_place(&dir, variable)?;
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let disk = statvfs(&dir).with_context(|| format!("looking at {}", dir.display()))?;
        let free = disk.blocks_available() as u64 * disk.fragment_size() as u64;
        if free < DISK_NEEDED {
            bail!(
                "only {:.1} GB are free in {}, the rig needs {} GB: free some, or set {variable} to another disk",
                free as f64 / 1e9,
                dir.display(),
                DISK_NEEDED / 1_000_000_000
            );
        }
    }
    Ok(())
}

/// Raises the kernel's limit on inotify instances per user, if it is lower than several instances of the rig need:
/// Debian's 128 are used up by two, and kubelets fail without.
pub fn raise_limits(progress: &Progress) -> Result<()> {
    let limit = fs::read_to_string(INOTIFY_LIMIT).with_context(|| format!("reading {INOTIFY_LIMIT}"))?;
    if limit.trim().parse::<u32>().is_ok_and(|limit| limit >= INOTIFY_NEEDED) {
        return Ok(());
    }
    fs::write(INOTIFY_LIMIT, INOTIFY_NEEDED.to_string())
        .with_context(|| format!("can't raise fs.inotify.max_user_instances to {INOTIFY_NEEDED}: do it on the host"))?;
    progress.say(&format!("fs.inotify.max_user_instances raised from {} to {INOTIFY_NEEDED}", limit.trim()));
    Ok(())
}

/// Hosts hide some directories behind their own.
fn check_place(dir: &Path, variable: &str) -> Result<()> {
    match PRIVATE_DIRS.iter().find(|hidden| dir.starts_with(hidden)) {
        Some(hidden) => bail!("{} lies in {hidden}, which clusters can't see: set {variable} elsewhere", dir.display()),
        None => Ok(()),
    }
}

/// In bytes.
fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_available_memory() {
        assert_eq!(available_memory("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), Some(2 * 1024 * 1024));
        assert_eq!(available_memory("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn refuses_hidden_places() {
        assert!(check_place(Path::new("/var/lib/state"), "XDG_STATE_HOME").is_err());
        assert!(check_place(Path::new("/root/.local/state"), "XDG_STATE_HOME").is_ok());
    }
}
