//! The manager dies at a bad moment.

use std::time::Duration;

use anyhow::{Result, ensure};
use rig::product::{self, HUB_NAMESPACE, MANAGER};
use rig::{Signal, wait_until};
use serde_json::json;

use crate::fixture::{NAMESPACE, RECORD, rig};
use crate::watcher::Watcher;

#[test]
fn killed_and_restarted_it_never_publishes_anything_wrong() -> Result<()> {
    let rig = rig()?;
    let hub = rig.hub();
    let records = Watcher::start(hub, &["tenantdeploymentrecord", RECORD, "-n", NAMESPACE])?;
    let pages = Watcher::start(hub, &["tenantdeploymentrecordpages", "-n", NAMESPACE])?;

    for tier in ["silver", "gold"] {
        hub.signal_container(HUB_NAMESPACE, MANAGER, Signal::SIGKILL)?;
        let patch = json!({"spec": {"tier": tier}}).to_string();
        hub.kubectl(&["patch", "tenantconfig", "sample", "-n", NAMESPACE, "--type=merge", "-p", &patch])?;
        wait_until(format!("the record to say {tier} after the restart"), Duration::from_secs(90), || {
            let pages = product::pages(rig, NAMESPACE, RECORD)?;
            Ok(pages.iter().any(|page| page["config"][0]["content"]["spec"]["tier"] == tier).then_some(()))
        })?;
    }

    for record in records.stop()? {
        let clusters = &record["status"]["clusterNames"];
        ensure!(*clusters == json!(["cluster1", "cluster2"]), "a record over {clusters} was published");
        ensure!(
            product::condition(&record, "SourcesResolved").as_deref() == Some("True"),
            "wrong: {}",
            record["status"]
        );
    }
    for page in pages.stop()? {
        ensure!(page["contents"] == "Workload" || page["count"] == json!(2), "a page lost rows: {page}");
    }
    Ok(())
}
