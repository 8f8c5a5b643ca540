//! The few programs that come from the distribution.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::run;
use crate::progress::Progress;

/// A Debian package and a file by which one sees that it is there, also on other distributions.
struct Package {
    name: &'static str,
    proof: &'static str,
}

const PACKAGES: [Package; 5] = [
    Package { name: "containerd", proof: "containerd" },
    Package { name: "runc", proof: "runc" },
    Package { name: "containernetworking-plugins", proof: "/usr/lib/cni/ptp" },
    Package { name: "iptables", proof: "iptables" },
    Package { name: "iproute2", proof: "ip" },
];

/// Installs the packages that are missing.
pub fn install_missing(progress: &Progress) -> Result<()> {
    let list = missing().join(" ");
    if list.is_empty() {
        return Ok(());
    }
    if !is_there("apt-get") {
        bail!("{list} not found, and this is no Debian: install them with your package manager");
    }
    progress.step(&format!("installing {list}"), || {
        let install = ["install", "--yes", "--no-install-recommends"];
        apt(&["update"])
            .and_then(|()| apt(&[install.as_slice(), missing().as_slice()].concat()))
            .with_context(|| format!("can't install {list}; see that `apt-get install {list}` works"))
    })?;
    match missing().as_slice() {
        [] => Ok(()),
        rest => {
            let rest = rest.join(" ");
            bail!("{rest} installed but not complete: try `apt-get install --reinstall {rest}`")
        }
    }
}

/// Names of the packages that aren't there.
fn missing() -> Vec<&'static str> {
    PACKAGES.iter().filter(|package| !is_there(package.proof)).map(|package| package.name).collect()
}

fn apt(arguments: &[&str]) -> Result<()> {
    run(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(())
}

/// Whether a path exists, or a program is on the search path.
fn is_there(proof: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // join() with an absolute path gives that path.
    env::split_paths(&path).any(|dir| dir.join(proof).exists()) || Path::new("/usr/sbin").join(proof).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_programs_and_paths() {
        assert!(is_there("sh"));
        assert!(is_there("/bin/sh"));
        assert!(!is_there("no-such-program"));
        assert!(!is_there("/no/such/file"));
    }
}
