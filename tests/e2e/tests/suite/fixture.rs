//! The clusters that all scenarios share.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Result, anyhow};
use rig::{Options, Progress, Rig, product, wait_until};
use serde_json::Value;

pub(crate) const NAMESPACE: &str = "tenant-a";
pub(crate) const RECORD: &str = "sample-tenant";

/// The instance, after the demo was told on it. If that fails, so does every scenario.
pub(crate) fn rig() -> Result<&'static Rig> {
    static RIG: LazyLock<Result<Rig, String>> = LazyLock::new(|| start().map_err(|error| format!("{error:#}")));
    RIG.as_ref().map_err(|error| anyhow!("the demo failed: {error}"))
}

fn start() -> Result<Rig> {
    let progress = Progress::new();
    let id = rig::check::TEST_INSTANCE.parse()?;
    let rig = Rig::up(&Options { id, members: 2, owned: true }, &progress)?;
    product::load_images(&rig, &progress)?;
    rig::demo::tell(&rig, &progress)?;
    Ok(rig)
}

/// Waits until the demo's record is as `is` says.
pub(crate) fn wait_record(what: &str, timeout: Duration, is: impl Fn(&Value) -> bool) -> Result<Value> {
    let rig = rig()?;
    wait_until(format!("the record: {what}"), timeout, || Ok(product::record(rig, NAMESPACE, RECORD)?.filter(&is)))
}

/// Waits until the row of a cluster in the demo's record is as `is` says.
pub(crate) fn wait_row(cluster: &str, what: &str, timeout: Duration, is: impl Fn(&Value) -> bool) -> Result<Value> {
    let rig = rig()?;
    wait_until(format!("the row of {cluster}: {what}"), timeout, || {
        Ok(product::rows(rig, NAMESPACE, RECORD)?.remove(cluster).filter(&is))
    })
}

/// The count of a finding in a record; 0 when there is none.
pub(crate) fn finding(record: &Value, type_: &str) -> u64 {
    let findings = record["status"]["findings"].as_array().into_iter().flatten();
    findings.filter(|finding| finding["type"] == type_).filter_map(|finding| finding["count"].as_u64()).sum()
}
