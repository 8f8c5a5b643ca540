//! Bad input is refused by the API server with the field and the remedy.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rig::{product, wait_until};
use serde_json::{Value, json};

use crate::fixture::{NAMESPACE, RECORD, rig};

#[test]
fn a_bad_record_is_refused_with_field_and_remedy() -> Result<()> {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}});
    let list = json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {"name": "x"}});
    let one_source = "give exactly one of manifestWorkReplicaSetRef, manifestWorkSelector, manifest, manifests";
    let cases = [
        (json!({"workload": [{"name": "a"}]}), "spec.workload[0]", one_source),
        (
            json!({"workload": [{"name": "a", "manifest": config_map, "manifests": [config_map]}]}),
            "spec.workload[0]",
            one_source,
        ),
        (
            json!({"workload": [{"name": "a", "manifest": config_map}, {"name": "a", "manifest": config_map}]}),
            "spec.workload[1]",
            "Duplicate value",
        ),
        (
            json!({"workload": [{"name": "a", "manifest": secret}]}),
            "spec.workload[0].manifest",
            "Secrets can't be recorded",
        ),
        (
            json!({"workload": [{"name": "a", "manifests": [config_map, list]}]}),
            "spec.workload[0].manifests[1]",
            "a list hides",
        ),
        (
            json!({"workload": [{"name": "a", "manifest": {"apiVersion": "v1", "kind": "ConfigMap"}}]}),
            "spec.workload[0].manifest",
            "metadata.name is missing",
        ),
        (
            json!({"workload": [{"name": "a", "clusterName": "c", "manifestWorkSelector": {}}]}),
            "spec.workload[0]",
            "clusterName narrows an entry with manifest or manifests only",
        ),
        (
            json!({"configRefs": [{"resource": "secrets", "name": "x"}]}),
            "spec.configRefs[0]",
            "Secrets can't be recorded",
        ),
        (
            json!({"configRefs": [{"resource": "configmaps"}]}),
            "spec.configRefs[0]",
            "give exactly one of name, selector",
        ),
        (json!({"placementRefs": [{"name": "a"}, {"name": "a"}]}), "spec.placementRefs", "name each Placement once"),
        (json!({"placementRefs": [{"name": "a", "selector": {}}]}), "spec.placementRefs[0]", "give exactly one of"),
        (json!({"environment": "a b"}), "spec.environment", "should match"),
        (json!({"clusterNames": ["a", "a"]}), "spec.clusterNames[1]", "Duplicate value"),
    ];
    for (spec, field, remedy) in cases {
        let record = json!({
            "apiVersion": "tenancy.open-cluster-management.io/v1alpha1", "kind": "TenantDeploymentRecord",
            "metadata": {"name": "bad", "namespace": NAMESPACE}, "spec": spec,
        });
        let create = ["create", "--dry-run=server", "-f", "-"];
        let Err(error) = rig()?.hub().kubectl_with_input(&create, &record.to_string()) else {
            bail!("accepted: {record}")
        };
        let error = format!("{error:#}");
        ensure!(error.contains(field) && error.contains(remedy), "{record} was refused with: {error}");
    }
    Ok(())
}

/// Twenty changes of a configuration object, each until it stands in the record's page. The times are printed, for
/// people; a slow machine is no fault.
#[test]
fn changes_arrive() -> Result<()> {
    let rig = rig()?;
    let mut times = Vec::new();
    for number in 0..20 {
        let region = format!("region-{number}");
        let patch = json!({"spec": {"region": region}}).to_string();
        rig.hub().kubectl(&["patch", "tenantconfig", "sample", "-n", NAMESPACE, "--type=merge", "-p", &patch])?;
        let start = Instant::now();
        wait_until(format!("{region} in the record"), Duration::from_secs(30), || {
            let pages: Vec<Value> = product::pages(rig, NAMESPACE, RECORD)?;
            Ok(pages.iter().any(|page| page["config"][0]["content"]["spec"]["region"] == region.as_str()).then_some(()))
        })?;
        times.push(start.elapsed());
    }
    times.sort();
    println!("change to record, kubectl included: p50 {:?}, max {:?}", times[10], times[19]);
    Ok(())
}
