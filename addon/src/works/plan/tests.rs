use super::*;

const HASH: &str = r#"{"configmaps/ocm/x":"aa"}"#;

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"size": "x"}})
}

fn request(objects: &[Value]) -> DeployRequest<'static> {
    DeployRequest {
        owner: Owner { addon: "demo", namespace: "edge-01", uid: "uid", manager: "demo-manager" },
        config_spec_hash: Some(HASH.into()),
        manifests: Manifest::all(objects.to_vec()).expect("manifests"),
        manifest_configs: Vec::new(),
    }
}

/// What an API server makes of a work that was created.
fn served(mut work: Value, field_manager: &str, with: impl FnOnce(&mut Value)) -> Arc<DeployedWork> {
    work["metadata"]["uid"] = "work-uid".into();
    work["metadata"]["resourceVersion"] = "7".into();
    work["metadata"]["managedFields"] = json!([{"manager": field_manager, "operation": "Update"}]);
    with(&mut work);
    Arc::new(serde_json::from_str(&work.to_string()).expect("a work"))
}

fn created(request: &DeployRequest<'_>) -> Value {
    match &plan(request, &[]).expect("a plan").changes[..] {
        [Change::Create { object, .. }] => object.clone(),
        changes => panic!("{changes:?}"),
    }
}

fn ours(request: &DeployRequest<'_>, with: impl FnOnce(&mut Value)) -> Arc<DeployedWork> {
    served(created(request), "demo-manager", with)
}

#[test]
fn a_new_work() {
    let request = request(&[object("ConfigMap", "a")]);
    let planned = plan(&request, &[]).expect("a plan");
    assert_eq!(planned.applied, [Applied::Unknown]);
    assert_eq!(
        planned.changes,
        [Change::Create {
            name: "addon-demo-deploy-0".into(),
            object: json!({
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "ManifestWork",
                "metadata": {
                    "name": "addon-demo-deploy-0",
                    "namespace": "edge-01",
                    "labels": {"open-cluster-management.io/addon-name": "demo"},
                    "annotations": {
                        "open-cluster-management.io/config-spec-hash": HASH,
                        "addon.open-cluster-management.io/manager": "demo-manager",
                    },
                    "ownerReferences": [{
                        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
                        "name": "demo", "uid": "uid", "controller": true, "blockOwnerDeletion": true,
                    }],
                },
                "spec": {"workload": {"manifests": [object("ConfigMap", "a")]}, "manifestConfigs": []},
            }),
        }]
    );
}

#[test]
fn nothing_to_do_at_rest() {
    let request = request(&[object("ConfigMap", "a")]);
    let at_rest = ours(&request, |work| {
        work["status"] = json!({"conditions": [{"type": "Applied", "status": "True"}]});
        work["metadata"]["labels"]["others"] = "stay".into();
    });
    assert_eq!(plan(&request, &[at_rest]).expect("a plan"), Plan { changes: Vec::new(), applied: vec![Applied::Yes] });
}

#[test]
fn only_what_differs_is_patched() {
    let old = request(&[object("ConfigMap", "a")]);
    let new = DeployRequest { config_spec_hash: None, ..old.clone() };
    let Change::Update { patch, .. } = &plan(&new, &[ours(&old, |_| {})]).expect("a plan").changes[0] else { panic!() };
    assert_eq!(
        *patch,
        json!({"metadata": {
            "uid": "work-uid",
            "resourceVersion": "7",
            "labels": {"open-cluster-management.io/addon-name": "demo"},
            "annotations": {
                "open-cluster-management.io/config-spec-hash": null,
                "addon.open-cluster-management.io/manager": "demo-manager",
            },
        }})
    );
    let tampered = ours(&old, |work| work["spec"]["workload"]["manifests"][0]["data"]["size"] = "y".into());
    let Change::Update { patch, .. } = &plan(&old, &[tampered]).expect("a plan").changes[0] else { panic!() };
    assert_eq!(
        patch["spec"],
        json!({
            "workload": {"manifests": [object("ConfigMap", "a")]},
            "deleteOption": null, "manifestConfigs": [], "executor": null,
        })
    );
}

#[test]
fn what_is_not_wanted_any_more_is_deleted() {
    let old = request(&[object("ConfigMap", "a")]);
    let second =
        ours(&request(&[object("ConfigMap", "b")]), |work| work["metadata"]["name"] = "addon-demo-deploy-1".into());
    let deletion =
        |name: &str| Change::Delete { name: name.into(), uid: "work-uid".into(), resource_version: "7".into() };
    let planned = plan(&old, &[ours(&old, |_| {}), second.clone()]).expect("a plan");
    assert_eq!(planned.changes, [deletion("addon-demo-deploy-1")]);
    let planned = plan(&request(&[]), &[ours(&old, |_| {}), second]).expect("a plan");
    assert_eq!(planned.changes, [deletion("addon-demo-deploy-0"), deletion("addon-demo-deploy-1")]);
    assert!(planned.applied.is_empty());
}

#[test]
fn a_work_of_ocms_addon_manager_is_taken_over_in_place() {
    let crd = object("CustomResourceDefinition", "crd");
    let template = request(std::slice::from_ref(&crd));
    let inherited = served(created(&template), "addon", |work| {
        work["metadata"]["name"] = "addon-demo-deploy-3".into();
        work["metadata"]["annotations"] = json!({"open-cluster-management.io/config-spec-hash": "{}"});
    });
    let mine = request(&[object("ConfigMap", "a"), crd.clone()]);
    let [Change::Update { name, patch }] = &plan(&mine, &[inherited]).expect("a plan").changes[..] else { panic!() };
    assert_eq!(name, "addon-demo-deploy-3");
    assert_eq!(patch["spec"]["workload"]["manifests"], json!([object("ConfigMap", "a"), crd]));
    assert_eq!(patch["metadata"]["annotations"][ANNOTATION_MANAGER], "demo-manager");
}

#[test]
fn works_of_others_are_left_alone() {
    let mine = request(&[object("ConfigMap", "a")]);
    let foreign = |name: &str| {
        served(created(&mine), "kubectl", |work| {
            work["metadata"]["name"] = name.into();
            work["metadata"]["ownerReferences"] = json!([]);
        })
    };
    let error = plan(&mine, &[foreign("addon-demo-deploy-0")]).expect_err("the name is taken");
    assert!(matches!(&error, WorksError::NameTaken(name) if name == "edge-01/addon-demo-deploy-0"), "{error}");
    for elsewhere in ["addon-demo-deploy-1", "my-own-work"] {
        assert_eq!(plan(&mine, &[foreign(elsewhere)]).expect("a plan").changes.len(), 1);
    }
    // Neither adopted nor deleted when nothing is wanted.
    assert!(plan(&request(&[]), &[foreign("addon-demo-deploy-0")]).expect("a plan").changes.is_empty());
}

#[test]
fn works_that_are_going_are_waited_for() {
    let mine = request(&[object("ConfigMap", "a")]);
    let deleting = |work: &mut Value| work["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z".into();
    let former = |work: &mut Value| work["metadata"]["ownerReferences"][0]["uid"] = "old".into();
    assert!(matches!(plan(&mine, &[ours(&mine, deleting)]), Err(WorksError::BeingDeleted(_))));
    assert!(matches!(plan(&mine, &[ours(&mine, former)]), Err(WorksError::Former(_))));

    let unwanted = request(&[object("ConfigMap", "b")]);
    let changes = plan(&mine, &[ours(&unwanted, deleting)]).expect("a plan").changes;
    let [Change::Create { name, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(name, "addon-demo-deploy-1");
}

#[test]
fn a_manifest_enters_its_new_work_before_it_leaves_the_old_one() {
    let large = |name: &str, size: usize| {
        let mut object = object("ConfigMap", name);
        object["data"]["size"] = "x".repeat(size).into();
        object
    };
    let small = [large("a", 10), large("b", 10)];
    let grown = [large("a", 300_000), large("b", 250_000)];
    let changes = plan(&request(&grown), &[ours(&request(&small), |_| {})]).expect("a plan").changes;
    let [Change::Create { name, .. }, Change::Update { patch, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(name, "addon-demo-deploy-1");
    assert_eq!(patch["spec"]["workload"]["manifests"].as_array().map(Vec::len), Some(1));
}
