use std::collections::BTreeMap;
use std::sync::Arc;

use tenant_records_api::ocm::{ConfigReferent, Subject};

use super::*;
use crate::config::ConfigObject;
use crate::registration::KUBE_CLIENT_SIGNER;

const BEFORE: &str = "2026-11-30T10:00:00Z";
const NOW: &str = "2026-11-30T11:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, time: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": time})
}

fn kind() -> ConfigGroupResource {
    ConfigGroupResource { group: "addon.open-cluster-management.io".into(), resource: "addondeploymentconfigs".into() }
}

fn known() -> KnownConfigs {
    let object: ConfigObject = serde_json::from_value(json!({
        "metadata": {"name": "default", "namespace": "ocm", "generation": 4}, "spec": {"a": 1},
    }))
    .expect("a config object");
    let referent = ConfigReferent { namespace: "ocm".into(), name: "default".into() };
    KnownConfigs {
        configs: BTreeMap::from([(ConfigKey { kind: kind(), referent }, Arc::new(object))]),
        kinds: [kind()].into(),
    }
}

fn hash() -> String {
    known().configs.into_values().next().expect("one object").spec_hash.clone()
}

fn report(applied: RegistrationApplied) -> AddOnReport {
    let subject = Subject { user: "agent".into(), groups: vec!["g".into()], organization_units: Vec::new() };
    AddOnReport {
        supported_configs: vec![kind()],
        known: known(),
        registration: Some(RegistrationReport {
            wanted: RegistrationConfig { signer_name: KUBE_CLIENT_SIGNER.into(), subject },
            namespace: "agents".into(),
            applied,
        }),
        manifest_applied: None,
    }
}

#[test]
fn a_first_report() {
    let mut addon = json!({"metadata": {"name": "demo"}, "spec": {}});
    let report = report(RegistrationApplied::Yes);
    report.write_to(&mut addon, now());
    assert_eq!(
        addon["status"],
        json!({
            "supportedConfigs": [{"group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs"}],
            "registrations": [{"signerName": KUBE_CLIENT_SIGNER, "subject": {"user": "agent", "groups": ["g"]}}],
            "namespace": "agents",
            "healthCheck": {"mode": "Lease"},
            "conditions": [condition(
                "RegistrationApplied", "True", "SetPermissionApplied", "Registration of the addon agent is configured", NOW,
            )],
        })
    );
    let first = addon.clone();
    report.write_to(&mut addon, "2027-01-01T00:00:00Z".parse().expect("a time"));
    assert_eq!(addon, first, "the same again");
}

#[test]
fn what_others_wrote_stays() {
    let others = [
        condition("Available", "True", "ManagedClusterAddOnLeaseUpdated", "demo add-on is available.", BEFORE),
        condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured", BEFORE),
    ];
    let mut addon = json!({
        "spec": {"configs": [{"group": kind().group, "resource": kind().resource, "namespace": "ocm", "name": "default"}]},
        "status": {
            "conditions": [others[0], condition("RegistrationApplied", "False", "x", "y", BEFORE), others[1]],
            "kubeClientDriver": "token",
            "registrations": [{"signerName": KUBE_CLIENT_SIGNER, "subject": {"user": "system:serviceaccount:c:demo-agent"}}],
            "configReferences": [
                {"group": "", "resource": "others", "name": "x", "desiredConfig": {"name": "x", "specHash": "?"}},
                {"group": kind().group, "resource": kind().resource, "namespace": "ocm", "name": "default",
                    "lastObservedGeneration": 3, "unknown": true,
                    "desiredConfig": {"namespace": "ocm", "name": "default", "specHash": ""},
                    "lastAppliedConfig": {"namespace": "ocm", "name": "default", "specHash": "old"}},
            ],
            "unknown": {"field": 1},
        },
    });
    let before = addon.clone();
    report(RegistrationApplied::Yes).write_to(&mut addon, now());
    let status = &addon["status"];
    let message = "Registration of the addon agent is configured";
    let own = condition("RegistrationApplied", "True", "SetPermissionApplied", message, NOW);
    assert_eq!(status["conditions"], json!([others[0], own, others[1]]));
    for same in ["kubeClientDriver", "registrations", "unknown"] {
        assert_eq!(status[same], before["status"][same], "{same}");
    }
    assert_eq!(status["configReferences"][0], before["status"]["configReferences"][0]);
    let mut expected = before["status"]["configReferences"][1].clone();
    expected["lastObservedGeneration"] = 4.into();
    expected["desiredConfig"]["specHash"] = hash().into();
    assert_eq!(status["configReferences"][1], expected);

    // The hash of a configuration that the ManagedClusterAddOn doesn't ask for itself is OCM's to write.
    let mut addon = before;
    addon["spec"]["configs"] = json!([]);
    report(RegistrationApplied::Yes).write_to(&mut addon, now());
    assert_eq!(addon["status"]["configReferences"][1]["desiredConfig"]["specHash"], "");
    assert_eq!(addon["status"]["configReferences"][1]["lastObservedGeneration"], 4);
}

#[test]
fn a_conditions_time_changes_only_with_its_status() {
    let mut addon = json!({"spec": {}, "status": {}});
    report(RegistrationApplied::Pending).write_to(&mut addon, BEFORE.parse().expect("a time"));
    report(RegistrationApplied::Failed("no right".into())).write_to(&mut addon, now());
    assert_eq!(
        addon["status"]["conditions"],
        json!([condition(
            "RegistrationApplied",
            "False",
            "SetPermissionFailed",
            "Failed to set permission for hub agent: no right",
            BEFORE,
        )])
    );
}

#[test]
fn manifest_applied() {
    let no = |failure: &str| Applied::No { failures: vec![failure.into()] };
    for (works, expected) in [
        (vec![], ManifestApplied::Nothing),
        (vec![Applied::Yes, Applied::Yes], ManifestApplied::Yes),
        (vec![Applied::Unknown, Applied::Yes], ManifestApplied::Unknown),
        (vec![Applied::Yes, Applied::Unknown], ManifestApplied::Unknown),
        (vec![Applied::Unknown, no("a"), Applied::Yes, no("b")], ManifestApplied::NotApplied("a; b".into())),
    ] {
        assert_eq!(ManifestApplied::of(&works), expected, "{works:?}");
    }
}

#[test]
fn an_outdated_no_is_retracted() {
    let status_after = |present: &str, applied: ManifestApplied| {
        let mut addon = json!({"status": {"conditions": [condition("ManifestApplied", present, "r", "m", BEFORE)]}});
        AddOnReport { manifest_applied: Some(applied), ..AddOnReport::default() }.write_to(&mut addon, now());
        addon["status"]["conditions"].clone()
    };
    assert_eq!(status_after("False", ManifestApplied::Unknown), json!([]));
    assert_eq!(
        status_after("True", ManifestApplied::Unknown),
        json!([condition("ManifestApplied", "True", "r", "m", BEFORE)])
    );
    let message = "failed to apply the manifests of addon: Deployment n/a: no quota";
    assert_eq!(
        status_after("True", ManifestApplied::NotApplied("Deployment n/a: no quota".into())),
        json!([condition("ManifestApplied", "False", "AddonManifestAppliedFailed", message, NOW)])
    );
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let long = "é".repeat(40_000);
    let mut status = json!({});
    set_condition(&mut status, "X", &Answer::no("r", long), now());
    let message = status["conditions"][0]["message"].as_str().expect("a message");
    assert_eq!(message.chars().count(), MESSAGE_LIMIT + " (cut)".len());
    assert!(message.ends_with("é (cut)") && message.len() < 32_768);
}

#[test]
fn hashes_of_a_cluster_management_add_on() {
    let reference = |name: &str, hash: Value| {
        json!({"group": kind().group, "resource": kind().resource,
            "desiredConfig": {"namespace": "ocm", "name": name, "specHash": hash}})
    };
    let other = json!({"resource": "others", "desiredConfig": {"name": "x", "specHash": "?"}});
    let undecided = json!({"group": kind().group, "resource": kind().resource});
    let mut addon = json!({"status": {
        "defaultconfigReferences": [reference("default", json!("old")), reference("gone", json!("old")), other, undecided],
        "installProgressions": [
            {"name": "p", "namespace": "n", "conditions": [], "configReferences": [reference("default", Value::Null)]},
            {"name": "q", "namespace": "n"},
        ],
    }});
    write_spec_hashes(&mut addon, &known());
    assert_eq!(
        addon["status"]["defaultconfigReferences"],
        json!([reference("default", json!(hash())), reference("gone", json!("")), other, undecided])
    );
    assert_eq!(
        addon["status"]["installProgressions"][0]["configReferences"],
        json!([reference("default", json!(hash()))])
    );

    let before = addon.clone();
    write_spec_hashes(&mut addon, &KnownConfigs::default());
    assert_eq!(addon, before, "before a kind has been listed nothing is known to be gone");
}
