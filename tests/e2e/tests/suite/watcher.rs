//! Sees every state of some objects while a scenario runs.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use rig::Cluster;
use serde_json::Value;

/// A `kubectl get --watch` in the background.
pub(crate) struct Watcher {
    process: Child,
    output: PathBuf,
}

impl Watcher {
    /// Watches what `kubectl get <arguments>` gets.
    pub(crate) fn start(cluster: &Cluster, arguments: &[&str]) -> Result<Self> {
        let name = format!("rig-watch-{}-{}.json", std::process::id(), arguments[0]);
        let output = std::env::temp_dir().join(name);
        let mut command = cluster.kubectl_command();
        command.arg("get").args(arguments).args(["--watch", "--output=json"]);
        command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(Stdio::null());
        Ok(Self { process: command.spawn().context("starting kubectl")?, output })
    }

    /// Every state since the start, oldest first. At least one, or it saw nothing and proves nothing.
    pub(crate) fn stop(mut self) -> Result<Vec<Value>> {
        self.process.kill()?;
        self.process.wait()?;
        let text = fs::read_to_string(&self.output)?;
        let states: Vec<Value> = serde_json::Deserializer::from_str(&text).into_iter().map_while(Result::ok).collect();
        anyhow::ensure!(!states.is_empty(), "the watch saw nothing");
        Ok(states)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Both are done already when `stop` was called.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.output);
    }
}
