//! A cluster can't be reached for a while, and its Placement drops it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::fixture::{NAMESPACE, RECORD, finding, rig, wait_record, wait_row};
use crate::watcher::Watcher;

const OUTAGE: Duration = Duration::from_secs(180);
/// OCM calls a cluster unreachable after five leases of 10 s, and needs a moment to see that it is back.
const OCM_NOTICES: Duration = Duration::from_secs(90);

#[test]
fn an_outage_never_makes_the_record_smaller() -> Result<()> {
    let rig = rig()?;
    wait_row("cluster2", "before the outage", OCM_NOTICES, |row| row["reason"] == "NeverReported")?;
    let records = Watcher::start(rig.hub(), &["tenantdeploymentrecord", RECORD, "-n", NAMESPACE])?;
    let start = Instant::now();
    rig.member("cluster2").link_down()?;
    let seen = see_outage();
    sleep(OUTAGE.saturating_sub(start.elapsed()));
    rig.member("cluster2").link_up()?;
    seen?;

    wait_row("cluster2", "as before", OCM_NOTICES, |row| {
        row["reason"] == "NeverReported" && row["held"].is_null() && row["placements"] != Value::Null
    })?;
    let states = records.stop()?;
    for record in &states {
        let clusters = &record["status"]["clusters"];
        ensure!(clusters["total"] == json!(2) && clusters["unknown"] == json!(2), "the totals moved: {clusters}");
        ensure!(finding(record, "WorkWithoutDecision") == 0, "the outage was called a fault: {}", record["status"]);
    }
    ensure!(states.iter().any(|record| finding(record, "ClusterUnavailable") == 1), "the outage was never told");
    Ok(())
}

fn see_outage() -> Result<()> {
    wait_row("cluster2", "unavailable, and kept although nothing chooses it", OCM_NOTICES, |row| {
        row["phase"] == "Unknown" && row["reason"] == "ClusterUnavailable" && row["held"]["since"].is_string()
    })?;
    wait_record("its Placement chooses one cluster", OCM_NOTICES, |record| {
        record["status"]["sources"]["placements"][0]["selected"] == json!(1)
    })?;
    Ok(())
}
