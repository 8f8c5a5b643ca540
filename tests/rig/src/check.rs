//! What `cargo rig test`, and so CI, checks.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::generate;
use crate::instance::InstanceId;
use crate::lifecycle::leftovers;
use crate::process::{self, command_line, wait_until};
use crate::progress::elapsed;

/// The instance that the end-to-end suites use.
pub const TEST_INSTANCE: &str = "test";

/// Runs everything in order and stops at the first failure.
pub fn run() -> Result<()> {
    let start = Instant::now();
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    stage("generated files", generate::check)?;
    cargo(&["test", "--workspace", "--exclude", "e2e"])?;
    cargo(&["test", "--package", "rig", "--test", "clusters", "--", "--ignored", "--test-threads=1"])?;
    let suites = cargo(&["test", "--package", "e2e", "--", "--test-threads=1"]);
    // Also after a failure.
    let cleaned = stage("nothing is left of the test clusters", nothing_left);
    suites.context("the logs of its clusters are in the cache directory, logs/test")?;
    cleaned?;
    println!("all checks passed ({})", elapsed(start.elapsed()));
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let mut command = process::cargo();
    command.args(arguments);
    let line = command_line(&command);
    stage(&line, || {
        let status = command.status().context("starting cargo")?;
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(())
    })
}

/// The output of a stage goes where ours goes: it is long, and of interest when something fails.
fn stage(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("── {name}");
    let start = Instant::now();
    let result = work();
    let mark = if result.is_ok() { '✓' } else { '✗' };
    println!("{mark} {name} ({})", elapsed(start.elapsed()));
    result
}

/// The suites' process has ended; its guard removes the clusters.
fn nothing_left() -> Result<()> {
    let id: InstanceId = TEST_INSTANCE.parse()?;
    let gone = wait_until("the clusters to be gone", Duration::from_secs(60), || match leftovers(&id)?.as_slice() {
        [] => Ok(Some(())),
        found => bail!("left behind:\n{}", found.join("\n")),
    });
    gone.with_context(|| format!("`cargo rig --instance {id} down` removes them"))
}
