use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_str(&value.to_string()).expect("an object")
}

fn addon(cluster: &str, version: &str, config: &str) -> Update<ManagedClusterAddOn> {
    Update::Applied(object(json!({
        "metadata": {"name": "demo", "namespace": cluster, "uid": cluster, "resourceVersion": version},
        "status": {"configReferences": [{"resource": "configmaps", "desiredConfig": {"namespace": "ocm", "name": config}}]},
    })))
}

fn cluster(name: &str, version: &str, label: &str) -> Update<Cluster> {
    Update::Applied(object(json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version, "labels": {"x": label}},
    })))
}

fn request(name: &str, decided: bool) -> Update<CertificateSigningRequest> {
    let conditions = if decided { json!([{"type": "Approved"}]) } else { json!([]) };
    Update::Applied(object(json!({
        "metadata": {
            "name": name, "uid": name, "resourceVersion": if decided { "2" } else { "1" },
            "labels": {"open-cluster-management.io/cluster-name": "edge-01"},
        },
        "status": {"conditions": conditions},
    })))
}

fn work(cluster: &str, name: &str) -> Update<DeployedWork> {
    Update::Applied(object(json!({"metadata": {"name": name, "namespace": cluster, "resourceVersion": "1"}})))
}

fn config(name: &str, version: &str) -> Update<ConfigObject> {
    Update::Applied(object(json!({
        "metadata": {"name": name, "namespace": "ocm", "resourceVersion": version}, "data": {"a": version},
    })))
}

fn kind() -> ConfigGroupResource {
    ConfigGroupResource { group: String::new(), resource: "configmaps".into() }
}

fn on(cluster: &str) -> Key {
    Key::OnCluster(cluster.into())
}

#[test]
fn a_heartbeat_needs_no_work() {
    let mut view = View::default();
    assert_eq!(view.apply(News::Cluster(cluster("edge-01", "1", "a"))), [on("edge-01")]);
    assert_eq!(view.apply(News::Cluster(cluster("edge-01", "2", "a"))), []);
    assert_eq!(view.apply(News::Cluster(cluster("edge-01", "3", "b"))), [on("edge-01")]);
    // Within a repeated list it still counts as seen.
    view.apply(News::Cluster(Update::Restarted));
    view.apply(News::Cluster(cluster("edge-01", "4", "b")));
    assert_eq!(view.apply(News::Cluster(Update::Synced)), []);
    assert!(view.has_cluster("edge-01"));
}

#[test]
fn undecided_requests_are_judged_again_when_their_cluster_changes() {
    let mut view = View::default();
    assert_eq!(view.apply(News::Request(request("csr-1", false))), [Key::Certificate("csr-1".into())]);
    assert_eq!(view.apply(News::AddOn(addon("edge-01", "1", "x"))), [Key::Certificate("csr-1".into()), on("edge-01")]);
    assert_eq!(view.apply(News::AddOn(addon("edge-02", "1", "x"))), [on("edge-02")]);
    view.apply(News::Request(request("csr-1", true)));
    assert!(view.request("csr-1").is_none());
    assert_eq!(view.apply(News::AddOn(addon("edge-01", "2", "x"))), [on("edge-01")]);
}

#[test]
fn works_are_found_by_cluster() {
    let mut view = View::default();
    view.apply(News::AddOn(addon("edge-01", "1", "x")));
    assert_eq!(view.apply(News::Work(work("edge-01", "addon-demo-deploy-1"))), [on("edge-01")]);
    view.apply(News::Work(work("edge-01", "addon-demo-deploy-0")));
    view.apply(News::Work(work("edge-02", "addon-demo-deploy-0")));
    let names = |view: &View| -> Vec<String> {
        let on = view.on_cluster("demo", "demo-agent", "edge-01").expect("enabled");
        on.works.iter().map(|work| work.name().to_owned()).collect()
    };
    assert_eq!(names(&view), ["addon-demo-deploy-0", "addon-demo-deploy-1"]);
    view.apply(News::Work(Update::Deleted(ObjectKey::new("edge-01", "addon-demo-deploy-0"))));
    assert_eq!(names(&view), ["addon-demo-deploy-1"]);
    assert!(view.on_cluster("demo", "demo-agent", "edge-02").is_none());
}

#[test]
fn configurations_concern_those_that_use_them() {
    let mut view = View::default();
    view.apply(News::AddOn(addon("edge-01", "1", "x")));
    view.apply(News::AddOn(addon("edge-02", "1", "y")));
    assert_eq!(view.apply(News::Config(kind(), config("x", "1"))), [on("edge-01"), Key::Offer]);
    let known = |view: &View| view.on_cluster("demo", "demo-agent", "edge-01").expect("enabled").known;
    assert!(known(&view).kinds.is_empty(), "before the list is complete");

    let mut all = view.apply(News::Config(kind(), Update::Synced));
    all.sort();
    assert_eq!(all, [Key::Offer, on("edge-01"), on("edge-02")]);
    assert_eq!(known(&view).kinds, [kind()].into());
    assert_eq!(known(&view).configs.len(), 1);
    assert_eq!(view.apply(News::Config(kind(), Update::Synced)), []);
    let gone = Update::Deleted(ObjectKey::new("ocm", "x"));
    assert_eq!(view.apply(News::Config(kind(), gone)), [on("edge-01"), Key::Offer]);
    assert!(known(&view).configs.is_empty());
}

#[test]
fn synced_when_all_lists_are_complete() {
    let mut view = View::default();
    let news: [fn() -> News; 7] = [
        || News::Offer(Update::Synced),
        || News::AddOn(Update::Synced),
        || News::Cluster(Update::Synced),
        || News::Work(Update::Synced),
        || News::Role(Update::Synced),
        || News::RoleBinding(Update::Synced),
        || News::Request(Update::Synced),
    ];
    for news in news {
        assert!(!view.is_synced());
        view.apply(news());
    }
    assert!(view.is_synced());
}
