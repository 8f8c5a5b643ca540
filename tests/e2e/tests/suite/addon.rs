//! The add-on comes, goes, and is configured.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rig::product::{self, CONFIG_KINDS, HUB_NAMESPACE, INSTALL_EVERYWHERE, NAME, PATIENCE};
use rig::wait_until;
use serde_json::{Value, json};

use crate::fixture::{finding, rig, wait_record};

/// The namespace that the agent is installed in by default.
const AGENT_NAMESPACE: &str = "open-cluster-management-agent-addon";
const AGENT: &str = "tenant-records-agent";

#[test]
fn disabled_nothing_of_it_is_left_and_enabled_again_it_works() -> Result<()> {
    let rig = rig()?;
    let member = rig.member("cluster1");
    // Under a strategy with Placements OCM would bring it back at once.
    product::install(rig, CONFIG_KINDS)?;
    rig.clusteradm(&["addon", "disable", "--names", NAME, "--clusters", "cluster1"])?;
    wait_until("the add-on to be gone from hub and member", PATIENCE, || {
        let addon = rig.hub().find_json(&["managedclusteraddon", NAME, "-n", "cluster1"])?;
        let works = product::works(rig, &["-n", "cluster1"])?;
        let roles = rig.hub().find_json(&["role", AGENT, "-n", "cluster1"])?;
        let agent = member.find_json(&["deployment", AGENT, "-n", AGENT_NAMESPACE])?;
        let gone = addon.is_none() && roles.is_none() && agent.is_none();
        Ok((gone && works.is_empty()).then_some(()))
    })?;
    wait_record("says that the add-on isn't enabled", Duration::from_secs(30), |record| {
        finding(record, "AddOnNotEnabled") == 1
    })?;

    rig.clusteradm(&["addon", "enable", "--names", NAME, "--clusters", "cluster1"])?;
    product::wait_addon(rig, "cluster1")?;
    wait_record("says that it is enabled", Duration::from_secs(30), |record| finding(record, "AddOnNotEnabled") == 0)?;
    product::install(rig, &[INSTALL_EVERYWHERE, CONFIG_KINDS].concat())?;
    product::wait_addon(rig, "cluster1")
}

#[test]
fn a_configuration_reaches_the_agent_and_ocm_sees_it_complete() -> Result<()> {
    let rig = rig()?;
    let config = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig",
        "metadata": {"name": "cluster1-agents", "namespace": HUB_NAMESPACE},
        "spec": {
            "nodePlacement": {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            "resourceRequirements": [{
                "containerID": format!("deployments:{AGENT}:*"),
                "resources": {"requests": {"memory": "24Mi"}, "limits": {"memory": "96Mi"}},
            }],
        },
    });
    rig.hub().apply(&config.to_string())?;
    set_configs(json!([{
        "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
        "namespace": HUB_NAMESPACE, "name": "cluster1-agents",
    }]))?;
    wait_agent("with the configuration's settings", |pod| {
        let tolerated = pod["tolerations"].as_array().into_iter().flatten().any(|t| t["key"] == "dedicated");
        tolerated && pod["containers"][0]["resources"]["limits"]["memory"] == "96Mi"
    })?;
    wait_applied()?;

    set_configs(json!([]))?;
    wait_agent("with the defaults again", |pod| pod["containers"][0]["resources"]["limits"]["memory"] != "96Mi")?;
    product::wait_addon(rig, "cluster1")?;
    rig.hub().kubectl(&["delete", "addondeploymentconfig", "cluster1-agents", "-n", HUB_NAMESPACE])?;
    Ok(())
}

fn set_configs(configs: Value) -> Result<()> {
    let patch = json!({"spec": {"configs": configs}}).to_string();
    rig()?.hub().kubectl(&["patch", "managedclusteraddon", NAME, "-n", "cluster1", "--type=merge", "-p", &patch])?;
    Ok(())
}

fn wait_agent(what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    let member = rig()?.member("cluster1");
    wait_until(format!("the agent {what}"), PATIENCE, || {
        let deployment = member.find_json(&["deployment", AGENT, "-n", AGENT_NAMESPACE])?;
        Ok(deployment.filter(|deployment| is(&deployment["spec"]["template"]["spec"])).map(|_| ()))
    })
}

/// OCM has compared the hash that we computed with its own bookkeeping.
fn wait_applied() -> Result<()> {
    let rig = rig()?;
    wait_until("OCM to see the configuration applied", PATIENCE, || {
        let addon = rig.hub().get_json(&["managedclusteraddon", NAME, "-n", "cluster1"])?;
        let Some(reference) = addon["status"]["configReferences"].as_array().and_then(|list| list.first()) else {
            return Ok(None);
        };
        let hash = reference["desiredConfig"]["specHash"].as_str().unwrap_or_default();
        ensure!(hash.is_empty() || hash.len() == 64, "an odd hash: {hash}");
        let applied = !hash.is_empty() && reference["lastAppliedConfig"]["specHash"] == hash;
        let complete = product::condition(&addon, "Progressing").context("no condition Progressing")? == "False";
        Ok((applied && complete).then_some(()))
    })
}
