//! The demo: the main job as a user would do it, told in a few steps. Whatever isn't as expected ends it.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::instance::InstanceId;
use crate::product::{self, CONFIG_KINDS, HUB_NAMESPACE, INSTALL_EVERYWHERE, NAME};
use crate::progress::Progress;
use crate::rig::{Options, Rig};
use crate::story::Story;

const NAMESPACE: &str = "tenant-a";
const RECORD: &str = "sample-tenant";
/// The label that puts a cluster into an exclusive set.
const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
/// How long a change may take to arrive in the record; it normally takes a fraction of a second.
const ARRIVES: Duration = Duration::from_secs(30);

/// Runs the demo. With `once`, everything is removed at the end.
///
/// # Errors
/// When something isn't as expected.
pub fn run(id: InstanceId, once: bool, progress: &Progress) -> Result<()> {
    let rig = Rig::up(&Options { id: id.clone(), members: 2, owned: once }, progress)?;
    product::load_images(&rig, progress)?;
    let told = tell(&rig, progress);
    if once {
        progress.step("removing the clusters", || rig.down())?;
    } else if told.is_ok() {
        farewell(&rig, &id, progress)?;
    }
    told
}

/// Tells the story on a running instance that has our images.
///
/// # Errors
/// When something isn't as expected.
pub fn tell(rig: &Rig, progress: &Progress) -> Result<()> {
    if product::is_installed(rig)? {
        progress.step("removing what an earlier demo left", || product::remove(rig, NAMESPACE))?;
    }
    let mut story = Story::new(progress, 7);
    install(rig, &mut story)?;
    enable(rig, &mut story)?;
    enable_everywhere(rig, &mut story)?;
    fill(rig, &mut story)?;
    change(rig, &mut story)?;
    leave(rig, &mut story)?;
    refuse(rig, &mut story)
}

fn install(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("A hub admin installs the hub manager");
    let kinds = CONFIG_KINDS.join(",");
    let line = format!("helm install {NAME} charts/{NAME} -n {HUB_NAMESPACE} \\\n         --set '{kinds}'");
    story.command(&line, || product::install(rig, CONFIG_KINDS))?;
    let condition = ["get", "clustermanagementaddon", NAME];
    story.command(&format!("kubectl {}", condition.join(" ")), || rig.hub().kubectl(&condition))?;
    Ok(())
}

fn enable(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("... enables the add-on on cluster1 by hand");
    let arguments = ["addon", "enable", "--names", NAME, "--clusters", "cluster1"];
    story.command(&format!("clusteradm {}", arguments.join(" ")), || rig.clusteradm(&arguments))?;
    story.see("cluster1: registered, deployed and available", product::PATIENCE, || available(rig, "cluster1"))?;
    ensure!(available(rig, "cluster2")?.is_none(), "nobody asked for the add-on on cluster2");
    show_addons(rig, story)
}

fn enable_everywhere(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("... and then everywhere, by an install strategy whose Placement chooses every cluster");
    let values = [INSTALL_EVERYWHERE, CONFIG_KINDS].concat();
    let line = format!(
        "helm upgrade {NAME} charts/{NAME} -n {HUB_NAMESPACE} --reuse-values \\\n         --set {}",
        INSTALL_EVERYWHERE.join(",")
    );
    story.command(&line, || product::install(rig, &values).map(|_| String::new()))?;
    for cluster in ["cluster2", "cluster1"] {
        story.see(format!("{cluster}: available"), product::PATIENCE, || available(rig, cluster))?;
    }
    show_addons(rig, story)
}

fn fill(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("A tenant deploys with OCM, and asks for a record");
    for name in ["tenantconfig-crd.yaml", "tenant.yaml", "tenantconfig.yaml", "record.yaml"] {
        let manifests = product::example(name)?;
        let apply = || rig.hub().apply(&manifests);
        story.command(&format!("kubectl apply -f docs/examples/{name}"), apply)?;
    }
    see_record(rig, story, "the record names both clusters", |record| {
        record["status"]["clusterNames"] == json!(["cluster1", "cluster2"])
    })?;
    see_record(rig, story, "it has the works that OCM made, applied on both", |record| {
        record["status"]["sources"]["manifestWorks"] == json!({"total": 2, "applied": 2, "failed": 0})
    })?;
    see_record(rig, story, "and the tenant's own configuration object", |record| {
        record["status"]["sources"]["configs"][0]["found"] == json!(true)
    })?;
    let arguments = ["get", "tdr", "-n", NAMESPACE];
    story.command(&format!("kubectl {}", arguments.join(" ")), || rig.hub().kubectl(&arguments))?;
    Ok(())
}

fn change(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("Whatever changes in OCM arrives in the record");
    patch(rig, story, "tenantconfig", "sample", json!({"spec": {"tier": "platinum"}}))?;
    see_page(rig, story, "configuration: tier is platinum", |page| {
        page["config"][0]["content"]["spec"]["tier"] == "platinum"
    })?;

    let set = rig.hub().get_json(&["manifestworkreplicaset", "frontend", "-n", NAMESPACE])?;
    let mut spec = set["spec"].clone();
    spec["manifestWorkTemplate"]["workload"]["manifests"][1]["data"]["LOG_LEVEL"] = json!("debug");
    patch(rig, story, "manifestworkreplicaset", "frontend", json!({"spec": spec}))?;
    see_page(rig, story, "ManifestWorkReplicaSet: the recorded ConfigMap says debug", |page| {
        let objects = page["objects"].as_array().into_iter().flatten();
        objects.map(|object| &object["manifest"]["data"]["LOG_LEVEL"]).any(|level| level == "debug")
    })?;
    see_record(rig, story, "ManifestWork: applied again on both clusters", |record| {
        record["status"]["sources"]["manifestWorks"]["applied"] == json!(2)
    })?;

    let apply = || rig.hub().apply(&product::example("second-set.yaml")?);
    story.command("kubectl apply -f docs/examples/second-set.yaml", apply)?;
    see_record(rig, story, "ManagedClusterSetBinding: a second set is bound", |record| {
        record["status"]["sources"]["clusterSetBindings"].as_array().is_some_and(|bindings| bindings.len() == 2)
    })?;
    label(rig, story, &format!("{SET_LABEL}=blue"))?;
    see_page(rig, story, "ManagedCluster: cluster2 is in that set", |page| {
        page["clusters"][1]["cluster"]["clusterSets"] == json!(["blue", "global"])
    })?;
    label(rig, story, &format!("{SET_LABEL}=default"))?;
    see_page(rig, story, "and isn't any more", |page| {
        page["clusters"][1]["cluster"]["clusterSets"] == json!(["global"])
    })?;

    patch(rig, story, "tdr", RECORD, json!({"spec": {"environment": "staging"}}))?;
    see_record(rig, story, "the record itself: generation observed", |record| {
        record["spec"]["environment"] == "staging"
    })
}

fn leave(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("A cluster leaves the Placement, and comes back");
    let only_first = json!({"spec": {"predicates": [{"requiredClusterSelector": {
        "labelSelector": {"matchExpressions": [{"key": "demo", "operator": "DoesNotExist"}]},
    }}]}});
    label(rig, story, "demo=1")?;
    patch(rig, story, "placement", "edge", only_first)?;
    see_record(rig, story, "cluster2 is out", |record| record["status"]["clusterNames"] == json!(["cluster1"]))?;
    patch(rig, story, "placement", "edge", json!({"spec": {"predicates": null}}))?;
    see_record(rig, story, "cluster2 is in again", |record| record["status"]["clusters"]["total"] == json!(2))?;
    see_record(rig, story, "with its work", |record| {
        record["status"]["sources"]["manifestWorks"]["applied"] == json!(2)
    })
}

fn refuse(rig: &Rig, story: &mut Story<'_>) -> Result<()> {
    story.step("Bad input gets a clear answer");
    let record = json!({
        "apiVersion": "tenancy.open-cluster-management.io/v1alpha1", "kind": "TenantDeploymentRecord",
        "metadata": {"name": "bad", "namespace": NAMESPACE}, "spec": {"workload": [{"name": "nothing"}]},
    });
    let complaint = |refused: Result<String>| match refused {
        Ok(_) => anyhow::bail!("a record without a source was accepted"),
        Err(error) => {
            let text = error.to_string();
            Ok(text.find("The TenantDeploymentRecord").map_or(text.clone(), |start| text[start..].to_owned()))
        }
    };
    let line = "kubectl apply -f record-without-a-source.yaml";
    let complaint = story.command(line, || complaint(rig.hub().apply(&record.to_string())))?;
    ensure!(complaint.contains("spec.workload[0]") && complaint.contains("exactly one of"), "unclear: {complaint}");
    let missing = json!({"spec": {"placementRefs": [{"name": "edge"}, {"name": "nowhere"}]}});
    patch(rig, story, "tdr", RECORD, missing)?;
    see_record(rig, story, "a Placement that doesn't exist is a finding, and the rest stays right", |record| {
        let found = record["status"]["findings"].as_array().into_iter().flatten();
        found.map(|finding| &finding["type"]).any(|type_| type_ == "PlacementNotFound")
            && record["status"]["clusters"]["total"] == json!(2)
    })?;
    patch(rig, story, "tdr", RECORD, json!({"spec": {"placementRefs": [{"name": "edge"}]}}))?;
    see_record(rig, story, "and is gone with its cause", |record| {
        product::condition(record, "SourcesResolved").as_deref() == Some("True")
    })
}

fn farewell(rig: &Rig, id: &InstanceId, progress: &Progress) -> Result<()> {
    progress.say("\nEverything is left running. Look around:");
    progress.say(&format!("  export KUBECONFIG={}", rig.kubeconfig()?.display()));
    progress.say(&format!("  export PATH={}:$PATH", rig.tools().display()));
    progress.say(&format!("  kubectl --context hub describe tdr {RECORD} -n {NAMESPACE}"));
    progress.say("Every cluster of the record stays Unknown (NeverReported): the agents don't report objects yet.");
    progress.say(&format!("Stop it:\n  cargo rig --instance {id} down"));
    Ok(())
}

fn available(rig: &Rig, cluster: &str) -> Result<Option<()>> {
    Ok((product::addon_condition(rig, cluster, "Available")?.as_deref() == Some("True")).then_some(()))
}

fn show_addons(rig: &Rig, story: &Story<'_>) -> Result<()> {
    let arguments = ["get", "managedclusteraddon", "-A"];
    story.command(&format!("kubectl {}", arguments.join(" ")), || rig.hub().kubectl(&arguments))?;
    Ok(())
}

fn label(rig: &Rig, story: &Story<'_>, label: &str) -> Result<()> {
    let arguments = ["label", "managedcluster", "cluster2", "--overwrite", label];
    story.command(&format!("kubectl {}", arguments.join(" ")), || {
        rig.hub().kubectl(&arguments).map(|_| String::new())
    })?;
    Ok(())
}

fn patch(rig: &Rig, story: &Story<'_>, kind: &str, name: &str, patch: Value) -> Result<()> {
    let patch = patch.to_string();
    let arguments = ["patch", kind, name, "-n", NAMESPACE, "--type=merge", "-p", &patch];
    let shown = if patch.len() > 60 { "..." } else { &patch };
    let line = format!("kubectl patch {kind} {name} -n {NAMESPACE} --type=merge -p '{shown}'");
    story.command(&line, || rig.hub().kubectl(&arguments).map(|_| String::new()))?;
    Ok(())
}

fn see_record(rig: &Rig, story: &Story<'_>, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    story.see(what, ARRIVES, || Ok(product::record(rig, NAMESPACE, RECORD)?.filter(&is).map(|_| ())))
}

fn see_page(rig: &Rig, story: &Story<'_>, what: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    story.see(what, ARRIVES, || Ok(product::pages(rig, NAMESPACE, RECORD)?.iter().any(&is).then_some(())))
}
