//! Builds Kubernetes, OCM and the tools from source with Go, once per set of versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::instance::Lock;
use crate::paths;
use crate::process::run;
use crate::progress::Progress;

/// A Go module under `go/` and what is built from it.
struct Module {
    name: &'static str,
    /// Passed to the linker.
    linker_flags: &'static str,
    packages: &'static [&'static str],
    /// Shown while it is built.
    about: &'static str,
}

const KUBERNETES: Module = Module {
    name: "kubernetes",
    // Without its version the server calls itself v0.0.0, and others refuse it.
    linker_flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.35.4 \
        -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35",
    // etcd and pause, and the tools that go.mod lists.
    packages: &["./...", "tool"],
    about: "building Kubernetes, etcd, clusteradm and helm (minutes the first time)",
};

const OCM: Module = Module {
    name: "ocm",
    linker_flags: "-s -w",
    packages: &["tool"],
    about: "building Open Cluster Management (minutes the first time)",
};

/// Directories with programs, complete and never changed again.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The cluster components, kubectl, clusteradm and helm.
    pub kubernetes: PathBuf,
    /// OCM's programs.
    pub ocm: PathBuf,
}

/// Builds what is missing, one module after the other: each build uses all cores.
pub fn programs(progress: &Progress) -> Result<Programs> {
    Ok(Programs { kubernetes: KUBERNETES.build(progress)?, ocm: OCM.build(progress)? })
}

impl Module {
    fn build(&self, progress: &Progress) -> Result<PathBuf> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(self.name);
        let arguments = self.arguments();
        let key = fingerprint(&source, &arguments)?;
        let target = paths::cache()?.join("bin").join(format!("{}-{key}", self.name));
        if target.exists() {
            return Ok(target);
        }
        let _lock = Lock::take_file(&target.with_file_name("build.lock"))?;
        if !target.exists() {
            progress.step(self.about, || self.build_into(&source, &arguments, &target))?;
        }
        Ok(target)
    }

    fn arguments(&self) -> Vec<&'static str> {
        [&["build", "-trimpath", "-ldflags", self.linker_flags], self.packages].concat()
    }

    fn build_into(&self, source: &Path, arguments: &[&str], target: &Path) -> Result<()> {
        paths::remove_unfinished(target.parent().context("a build is in a directory")?)?;
        let unfinished = paths::temporary_name(target);
        fs::create_dir_all(&unfinished).with_context(|| format!("creating {}", unfinished.display()))?;
        let (build, packages) = arguments.split_at(arguments.len() - self.packages.len());
        run(Command::new(go()?)
            .args(build)
            .arg("-o")
            .arg(&unfinished)
            .args(packages)
            .current_dir(source)
            // With cgo in some programs and not in others, everything would be compiled twice.
            .env("CGO_ENABLED", "0"))?;
        fs::rename(&unfinished, target).with_context(|| format!("moving the build to {}", target.display()))
    }
}

/// Go's program; distributions and Go's own archive put it in different places.
fn go() -> Result<PathBuf> {
    let candidates = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"];
    let works = |program: &&&str| Command::new(program).arg("version").output().is_ok();
    match candidates.iter().find(works) {
        Some(program) => Ok(PathBuf::from(program)),
        None => bail!("Go is not installed: install Go 1.25 or newer (https://go.dev/doc/install) and put it on PATH"),
    }
}

/// A digest of all that decides what a build contains.
fn fingerprint(source: &Path, arguments: &[&str]) -> Result<String> {
    let mut digest = Sha256::new();
    for argument in arguments {
        digest.update(argument);
        digest.update([0]);
    }
    for file in files(source)? {
        digest.update(file.strip_prefix(source)?.as_os_str().as_encoded_bytes());
        digest.update([0]);
        digest.update(fs::read(&file).with_context(|| format!("reading {}", file.display()))?);
    }
    Ok(hex(&digest.finalize())[..12].to_owned())
}

/// All files below `dir`, sorted.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_follows_sources_and_flags() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("go/kubernetes");
        let key = fingerprint(&source, &["build"]).unwrap();
        assert_eq!(key, fingerprint(&source, &["build"]).unwrap());
        assert_ne!(key, fingerprint(&source, &["build", "-race"]).unwrap());
        assert_ne!(key, fingerprint(&source.with_file_name("ocm"), &["build"]).unwrap());
    }

    #[test]
    fn versions_are_those_of_the_modules() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
        let go_mod = |module: &str| fs::read_to_string(dir.join(module).join("go.mod")).unwrap();
        assert!(go_mod("kubernetes").contains("k8s.io/kubernetes v1.35.4 "));
        assert!(KUBERNETES.linker_flags.contains("gitVersion=v1.35.4 "));
        let ocm = format!("open-cluster-management.io/ocm {} ", crate::images::OCM_VERSION);
        assert!(go_mod("ocm").contains(&ocm));
    }
}
