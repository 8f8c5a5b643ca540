//! Where the rig keeps things: builds and images in the cache, running instances in the state directory.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context as _, Result};

/// The cache directory: `$TENANT_RECORDS_CACHE`, or `tenant-records` in the user's cache directory.
pub fn cache() -> Result<PathBuf> {
    match env::var_os("TENANT_RECORDS_CACHE") {
        Some(dir) if !dir.is_empty() => Ok(PathBuf::from(dir)),
        _ => user_dir("XDG_CACHE_HOME", ".cache"),
    }
}

/// The state directory, which holds one directory per instance.
pub fn state() -> Result<PathBuf> {
    user_dir("XDG_STATE_HOME", ".local/state")
}

fn user_dir(variable: &str, below_home: &str) -> Result<PathBuf> {
    let base = match env::var_os(variable) {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(below_home),
    };
    Ok(base.join("tenant-records"))
}

/// The root of the project's sources.
pub fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("tests/rig is two levels below the workspace")
}

/// Writes a file so that it is either absent, old or complete, whenever the writer is killed.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let parent = path.parent().context("a file needs a directory")?;
    fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
    let temporary = temporary_name(path);
    let written = fs::write(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    written.with_context(|| format!("writing {}", path.display()))
}

/// A name beside `path` under which this process prepares it.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(format!("{TEMPORARY_PREFIX}{}-", process::id()));
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// Removes from `dir` what processes that were killed have left unfinished. The caller holds the directory's lock.
pub fn remove_unfinished(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

const TEMPORARY_PREFIX: &str = ".unfinished-";
