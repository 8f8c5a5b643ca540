//! What the manager and the agent may do, asked of the real authorizer, and how their pods run.

use anyhow::{Result, ensure};
use rig::product::{self, HUB_NAMESPACE};
use serde_json::{Value, json};

use crate::fixture::rig;

const MANAGER_USER: &str = "system:serviceaccount:open-cluster-management:tenant-records-hub";
const AGENT_GROUP: &str = "system:open-cluster-management:cluster:cluster1:addon:tenant-records";

fn allowed(user: &str, groups: &[&str], verb: &str, resource: &str, namespace: &str) -> Result<bool> {
    let mut arguments = vec!["auth", "can-i", verb, resource, "-n", namespace, "--as", user];
    for group in groups {
        arguments.extend(["--as-group", group]);
    }
    // can-i exits with 1 for "no".
    let answer = rig()?.hub().kubectl(&arguments);
    let text = answer.unwrap_or_else(|error| format!("{error:#}"));
    ensure!(text.contains("yes") || text.contains("no"), "no answer: {text}");
    Ok(text.trim().ends_with("yes"))
}

#[test]
fn the_manager_reads_no_secrets_and_deploys_nothing() -> Result<()> {
    for (verb, resource) in [
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "deployments"),
        ("create", "clusterroles"),
        ("impersonate", "users"),
    ] {
        ensure!(!allowed(MANAGER_USER, &[], verb, resource, HUB_NAMESPACE)?, "the manager may {verb} {resource}");
    }
    ensure!(
        allowed(MANAGER_USER, &[], "list", "tenantconfigs.acme.example.io", "tenant-a")?,
        "the manager may not read configKinds"
    );
    Ok(())
}

#[test]
fn an_agent_touches_only_reports_and_only_its_own() -> Result<()> {
    let may = |verb: &str, resource: &str, namespace: &str| allowed("agent", &[AGENT_GROUP], verb, resource, namespace);
    let reports = "tenantrecordreports.tenancy.open-cluster-management.io";
    ensure!(may("update", reports, "cluster1")?, "the agent may not write its report");
    for (verb, resource, namespace) in [
        ("update", reports, "cluster2"),
        ("get", reports, "cluster2"),
        ("delete", reports, "cluster1"),
        ("get", "tenantdeploymentrecords.tenancy.open-cluster-management.io", "tenant-a"),
        ("get", "manifestworks.work.open-cluster-management.io", "cluster1"),
        ("get", "secrets", "cluster1"),
    ] {
        ensure!(!may(verb, resource, namespace)?, "the agent may {verb} {resource} in {namespace}");
    }
    Ok(())
}

#[test]
fn tenants_write_records_and_only_read_pages() -> Result<()> {
    let roles = rig()?.hub().get_json(&["clusterroles", "edit", "view"])?;
    for role in roles["items"].as_array().into_iter().flatten() {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let verbs = |resource: &str| -> Vec<Value> {
            let rules = role["rules"].as_array().into_iter().flatten();
            let about =
                rules.filter(|rule| rule["resources"].as_array().is_some_and(|list| list.contains(&json!(resource))));
            about.flat_map(|rule| rule["verbs"].as_array().cloned().unwrap_or_default()).collect()
        };
        let writes = verbs("tenantdeploymentrecords").contains(&json!("update"));
        ensure!(writes == (name == "edit"), "{name} may{} write records", if writes { "" } else { " not" });
        let pages = verbs("tenantdeploymentrecordpages");
        ensure!(pages.contains(&json!("get")), "{name} may not read pages");
        ensure!(!pages.contains(&json!("update")) && !pages.contains(&json!("create")), "{name} may write pages");
        ensure!(verbs("tenantdeploymentrecords/status").is_empty(), "{name} may write a record's status");
    }
    Ok(())
}

#[test]
fn pods_run_with_the_least_privilege() -> Result<()> {
    let rig = rig()?;
    let manager = rig.hub().get_json(&["pods", "-n", HUB_NAMESPACE, "-l", product::MANAGER])?;
    let agent =
        rig.member("cluster1").get_json(&["pods", "-A", "-l", "app.kubernetes.io/name=tenant-records-agent"])?;
    for list in [manager, agent] {
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        ensure!(!pods.is_empty(), "no pod");
        for pod in pods {
            let spec = &pod["spec"];
            let container = &spec["containers"][0];
            let context = &container["securityContext"];
            let seccomp = [&spec["securityContext"]["seccompProfile"]["type"], &context["seccompProfile"]["type"]];
            ensure!(context["readOnlyRootFilesystem"] == true, "{context}");
            ensure!(context["allowPrivilegeEscalation"] == false, "{context}");
            ensure!(context["capabilities"]["drop"] == json!(["ALL"]), "{context}");
            ensure!(seccomp.contains(&&json!("RuntimeDefault")), "{spec}");
            ensure!(spec["securityContext"]["runAsNonRoot"] == true || context["runAsNonRoot"] == true, "{spec}");
            ensure!(container["resources"]["limits"]["memory"].is_string(), "no memory limit: {container}");
            ensure!(container["resources"]["requests"]["cpu"].is_string(), "no CPU request: {container}");
        }
    }
    Ok(())
}
