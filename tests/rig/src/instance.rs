//! An instance of the rig: its identity, who owns it, its record on disk and its lock.

use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::paths;

/// Identifies an instance; its bridge, namespaces, cgroups and state directory carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(String);

impl InstanceId {
    /// The directory with all files of the instance.
    pub fn dir(&self) -> Result<PathBuf> {
        Ok(paths::state()?.join(&self.0))
    }

    /// The cgroup, relative to a hierarchy's root, in which all processes of the instance are.
    pub fn cgroup(&self) -> PathBuf {
        PathBuf::from(format!("tenant-records-{self}"))
    }

    /// The name of the instance's bridge on the machine.
    pub fn bridge(&self) -> String {
        format!("tr-{self}")
    }

    fn lock_file(&self) -> Result<PathBuf> {
        Ok(paths::state()?.join(format!("{self}.lock")))
    }
}

impl FromStr for InstanceId {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        // Eight characters: an interface name has at most 15, and `tr-<id>-<nn>` must fit.
        let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(1..=8).contains(&text.len()) || !text.bytes().all(valid) {
            bail!("\"{text}\" is no instance id: use 1 to 8 of a-z and 0-9");
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for InstanceId {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> Self {
        id.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A process, told apart from a later one with the same number by the time it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: i32,
    /// In clock ticks since boot.
    started: u64,
}

impl Process {
    /// This process.
    pub fn current() -> Result<Self> {
        Self::of(std::process::id().try_into().context("process number out of range")?)
    }

    /// The process that has number `pid` now.
    pub fn of(pid: i32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("no process {pid}"))?;
        let started = start_time(&stat).with_context(|| format!("/proc/{pid}/stat is not understood"))?;
        Ok(Self { pid, started })
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return false;
        };
        start_time(&stat) == Some(self.started) && !is_zombie(&stat)
    }
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.pid)
    }
}

/// Fields of `/proc/PID/stat` after the program's name, which may itself have blanks and parentheses.
fn fields(stat: &str) -> Option<std::str::SplitWhitespace<'_>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn start_time(stat: &str) -> Option<u64> {
    fields(stat)?.nth(19)?.parse().ok()
}

fn is_zombie(stat: &str) -> bool {
    fields(stat).and_then(|mut fields| fields.next()) == Some("Z")
}

/// What is known of an instance, whoever asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its identity.
    pub id: InstanceId,
    /// Third octet of its network, 10.210.N.0/24.
    pub subnet: u8,
    /// Number of managed clusters.
    pub members: u8,
    /// The process that it ends with; none if it lives until `down`.
    pub owner: Option<Process>,
    /// Whether `up` came to its end.
    pub complete: bool,
}

impl Record {
    const FILE: &str = "instance.json";

    /// Reads the record of an instance; none if there is no such instance.
    pub fn load(id: &InstanceId) -> Result<Option<Self>> {
        let path = id.dir()?.join(Self::FILE);
        match fs::read(&path) {
            Ok(text) => {
                let record = serde_json::from_slice(&text);
                Ok(Some(record.with_context(|| format!("{} is not understood", path.display()))?))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the record.
    pub fn save(&self) -> Result<()> {
        paths::write_atomically(&self.id.dir()?.join(Self::FILE), &serde_json::to_vec_pretty(self)?)
    }

    /// Whether it has outlived its owner.
    pub fn is_orphan(&self) -> bool {
        self.owner.is_some_and(|owner| !owner.is_alive())
    }

    /// The address with last octet `host` in the instance's network.
    pub fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 210, self.subnet, host)
    }
}

/// The ids of all instances that have a state directory.
pub fn all() -> Result<Vec<InstanceId>> {
    let state = paths::state()?;
    let entries = match fs::read_dir(&state) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", state.display())),
    };
    let directories = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut ids: Vec<_> = directories.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort();
    Ok(ids)
}

/// Exclusive right to change an instance. The kernel gives it back when its holder ends, however that ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock, unless another process holds it.
    pub fn try_take(id: &InstanceId) -> Result<Option<Self>> {
        Self::try_take_file(&id.lock_file()?)
    }

    /// Takes the lock, waiting for who holds it.
    pub fn take(id: &InstanceId) -> Result<Self> {
        Self::take_file(&id.lock_file()?)
    }

    /// Takes the lock that is file `path`, waiting for who holds it.
    pub fn take_file(path: &Path) -> Result<Self> {
        loop {
            let file = open(path)?;
            file.lock().with_context(|| format!("locking {}", path.display()))?;
            if let Some(lock) = Self::confirm(file, path) {
                return Ok(lock);
            }
        }
    }

    fn try_take_file(path: &Path) -> Result<Option<Self>> {
        loop {
            let file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("locking {}", path.display()));
                }
            }
            if let Some(lock) = Self::confirm(file, path) {
                return Ok(Some(lock));
            }
        }
    }

    /// Who held it before may have removed the file: then this lock is on a file that nobody else sees.
    fn confirm(file: File, path: &Path) -> Option<Self> {
        let same = fs::metadata(path).ok()?.ino() == file.metadata().ok()?.ino();
        same.then(|| Self { _file: file, path: path.to_owned() })
    }

    /// Gives the lock back and removes its file.
    pub fn remove(self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("removing {}", self.path.display()))
    }
}

fn open(path: &Path) -> Result<File> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    }
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.with_context(|| format!("opening {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_interface_names() {
        for good in ["demo", "a", "12345678"] {
            let id: InstanceId = good.parse().unwrap();
            assert!(format!("{}-99", id.bridge()).len() <= 15);
        }
        for bad in ["", "123456789", "Demo", "a-b", "ä", "a/b"] {
            assert!(bad.parse::<InstanceId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_process_is_more_than_its_number() {
        let mut process = Process::current().unwrap();
        assert!(process.is_alive());
        process.started += 1;
        assert!(!process.is_alive());
    }

    #[test]
    fn start_time_survives_odd_names() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9";
        assert_eq!(start_time(stat), Some(4242));
        assert!(!is_zombie(stat));
    }
}
