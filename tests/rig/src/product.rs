//! Our product on an instance: installed and used with the commands that a user types.
//!
//! The demo and the end-to-end suites share what is here, so that both do the same.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::components::SANDBOX_IMAGE;
use crate::images;
use crate::process::wait_until;
use crate::progress::Progress;
use crate::rig::Rig;

/// The add-on, the Helm release, and what both are called in OCM.
pub const NAME: &str = "tenant-records";
/// Where the hub manager runs.
pub const HUB_NAMESPACE: &str = "open-cluster-management";
/// The hub manager's pods.
pub const MANAGER: &str = "app.kubernetes.io/name=tenant-records-hub";
/// How long anything may take that is done by controllers alone.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A file of the repository.
pub fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// An example of `docs/examples`, with an image that the rig has in place of one from a registry.
///
/// # Errors
/// When there is no such example.
pub fn example(name: &str) -> Result<String> {
    let path = file("docs/examples").join(name);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(text.replace("nginx:stable", SANDBOX_IMAGE))
}

/// Builds our images and loads them into the instance.
///
/// # Errors
/// When the build or the load fails.
pub fn load_images(rig: &Rig, progress: &Progress) -> Result<()> {
    let images = images::ours(progress)?;
    progress.step("loading our images", || rig.load_images(&images))
}

/// Installs the chart, or upgrades it to these values (`name=value`).
///
/// # Errors
/// When helm fails, or the manager isn't ready in time.
pub fn install(rig: &Rig, values: &[&str]) -> Result<String> {
    let chart = file("charts/tenant-records");
    let chart = chart.to_str().context("the repository's path is not UTF-8")?;
    let mut arguments = vec!["upgrade", "--install", NAME, chart, "--namespace", HUB_NAMESPACE, "--wait"];
    for value in values {
        arguments.extend(["--set", value]);
    }
    rig.helm(&arguments)
}

/// Whether the chart is installed.
///
/// # Errors
/// When helm fails.
pub fn is_installed(rig: &Rig) -> Result<bool> {
    let releases = rig.helm(&["list", "--namespace", HUB_NAMESPACE, "--short"])?;
    Ok(releases.lines().any(|release| release == NAME))
}

/// Removes the product and the tenant's namespace, and waits until nothing of either is there.
///
/// # Errors
/// When something doesn't go.
pub fn remove(rig: &Rig, tenant: &str) -> Result<()> {
    let hub = rig.hub();
    hub.kubectl(&["delete", "namespace", tenant, "--ignore-not-found"])?;
    hub.kubectl(&["label", "managedcluster", "--all", "demo-"])?;
    rig.helm(&["uninstall", NAME, "--namespace", HUB_NAMESPACE, "--wait"])?;
    wait_until("the add-on and its works to be gone", PATIENCE, || {
        let addons = list(rig, &["managedclusteraddons", "-A", "--field-selector", "metadata.name=tenant-records"])?;
        Ok((addons.is_empty() && works(rig, &["-A"])?.is_empty()).then_some(()))
    })?;
    for kind in ["tenantdeploymentrecords", "tenantdeploymentrecordpages", "tenantrecordreports"] {
        let crd = format!("{kind}.tenancy.open-cluster-management.io");
        hub.kubectl(&["delete", "customresourcedefinition", &crd, "--ignore-not-found"])?;
    }
    Ok(())
}

/// The values by which a Placement of the chart's chooses every cluster.
pub const INSTALL_EVERYWHERE: &[&str] = &["installStrategy.type=Placements", "installPlacement.create=true"];

/// The value that lets tenants reference the demo's own kind of configuration.
pub const CONFIG_KINDS: &[&str] = &["configKinds[0].group=acme.example.io", "configKinds[0].resource=tenantconfigs"];

/// The status of a condition of a ManagedClusterAddOn: `True`, `False`, `Unknown`, or none.
///
/// # Errors
/// When the hub can't be read.
pub fn addon_condition(rig: &Rig, cluster: &str, type_: &str) -> Result<Option<String>> {
    let addon = rig.hub().find_json(&["managedclusteraddon", NAME, "--namespace", cluster])?;
    Ok(addon.and_then(|addon| condition(&addon, type_)))
}

/// Waits until the add-on is what OCM calls complete on that cluster: registered, deployed, configured, available.
///
/// # Errors
/// When it isn't in time.
pub fn wait_addon(rig: &Rig, cluster: &str) -> Result<()> {
    let wanted = [
        ("RegistrationApplied", "True"),
        ("Configured", "True"),
        ("ManifestApplied", "True"),
        ("Progressing", "False"),
        ("Available", "True"),
    ];
    wait_until(format!("the add-on to be available on {cluster}"), PATIENCE, || {
        let Some(addon) = rig.hub().find_json(&["managedclusteraddon", NAME, "--namespace", cluster])? else {
            return Ok(None);
        };
        let is = |(type_, status): &(&str, &str)| condition(&addon, type_).as_deref() == Some(*status);
        Ok(wanted.iter().all(is).then_some(()))
    })
}

/// The record with its status; none before the manager has written one.
///
/// # Errors
/// When the record doesn't exist.
pub fn record(rig: &Rig, namespace: &str, name: &str) -> Result<Option<Value>> {
    let record = rig.hub().get_json(&["tenantdeploymentrecord", name, "--namespace", namespace])?;
    Ok((record["status"]["observedGeneration"] == record["metadata"]["generation"]).then_some(record))
}

/// The rows of a record, from its pages, by cluster.
///
/// # Errors
/// When a cluster stands on two pages, or the hub can't be read.
pub fn rows(rig: &Rig, namespace: &str, record: &str) -> Result<std::collections::BTreeMap<String, Value>> {
    let mut rows = std::collections::BTreeMap::new();
    for page in pages(rig, namespace, record)? {
        for row in page["clusters"].as_array().into_iter().flatten() {
            let cluster = row["clusterName"].as_str().unwrap_or_default().to_owned();
            if let Some(other) = rows.insert(cluster.clone(), row.clone()) {
                bail!("{cluster} stands on two pages of {namespace}/{record}: {other} and {row}");
            }
        }
    }
    Ok(rows)
}

/// The pages of a record.
///
/// # Errors
/// When the hub can't be read.
pub fn pages(rig: &Rig, namespace: &str, record: &str) -> Result<Vec<Value>> {
    let mut pages = list(rig, &["tenantdeploymentrecordpages", "--namespace", namespace])?;
    pages.retain(|page| page["recordName"] == record);
    Ok(pages)
}

/// The works that deploy the agent, in these namespaces (`-A`, or `-n` and one).
///
/// # Errors
/// When the hub can't be read.
pub fn works(rig: &Rig, namespaces: &[&str]) -> Result<Vec<Value>> {
    let label = ["manifestworks", "-l", "open-cluster-management.io/addon-name=tenant-records"];
    list(rig, &[&label, namespaces].concat())
}

fn list(rig: &Rig, arguments: &[&str]) -> Result<Vec<Value>> {
    let list = rig.hub().find_json(arguments)?;
    Ok(list.and_then(|list| list["items"].as_array().cloned()).unwrap_or_default())
}

/// The status of a condition in an object's status.
pub fn condition(object: &Value, type_: &str) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    found["status"].as_str().map(str::to_owned)
}
