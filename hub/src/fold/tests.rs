//! The fold over small worlds, built from objects as the API server would deliver them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenant_records_api::ocm::*;
use tenant_records_api::{ClusterRow, FindingType, PageContents, Phase, TenantDeploymentRecord, condition, reason};
use tenant_records_runtime::{ObjectKey, Update};

use super::*;
use crate::index::Event;
use crate::index::rows::*;

const NAMESPACE: &str = "tenant-a";

/// A hub's objects, and what the manager has written so far.
struct World {
    index: Index,
    reads: HashMap<String, Option<ClusterFacts>>,
    record: TenantDeploymentRecord,
    now: Timestamp,
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

impl World {
    /// A record over the Placement `edge`, in a namespace to which the set `global` is bound.
    fn new() -> Self {
        let record = object(json!({
            "apiVersion": "tenancy.open-cluster-management.io/v1alpha1", "kind": "TenantDeploymentRecord",
            "metadata": {"name": "sample", "namespace": NAMESPACE, "uid": "record-uid", "generation": 1},
            "spec": {"placementRefs": [{"name": "edge"}]},
        }));
        let mut world = Self {
            index: Index::default(),
            reads: HashMap::new(),
            record,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        world.apply(Event::Set(Update::Applied((ObjectKey::new("", "global"), SetRow::Selected(Default::default())))));
        world.apply(Event::Binding(Update::Applied((ObjectKey::new(NAMESPACE, "global"), BindingRow { bound: true }))));
        let satisfied = json!([{"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled"}]);
        let placement: Placement = object(json!({"metadata": {"name": "edge"}, "status": {"conditions": satisfied}}));
        world.apply(Event::Placement(Update::Applied((
            ObjectKey::new(NAMESPACE, "edge"),
            PlacementRow::from(&placement),
        ))));
        world
    }

    fn apply(&mut self, event: Event) {
        self.index.apply(event);
    }

    fn spec(&mut self, spec: Value) {
        self.record.spec = object(spec);
    }

    fn cluster(&mut self, name: &str, available: &str, taint: Option<&str>) {
        let taints: Vec<_> = taint.iter().map(|key| json!({"key": key, "effect": "NoSelect"})).collect();
        let cluster: ManagedCluster = object(json!({
            "metadata": {"name": name},
            "spec": {"hubAcceptsClient": true, "taints": taints},
            "status": {"conditions": [{"type": CLUSTER_AVAILABLE, "status": available}], "version": {"kubernetes": "v1.35.4"}},
        }));
        self.apply(Event::Cluster(Update::Applied((ObjectKey::new("", name), ClusterFacts::from(&cluster)))));
    }

    fn decide(&mut self, clusters: &[&str]) {
        let decisions: Vec<_> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let decision: PlacementDecision = object(json!({
            "metadata": {"name": "edge-decision-1", "labels": {LABEL_PLACEMENT: "edge", LABEL_GROUP_INDEX: "0"}},
            "status": {"decisions": decisions},
        }));
        self.apply(Event::Decision(Update::Applied((
            ObjectKey::new(NAMESPACE, "edge-decision-1"),
            DecisionRow::from(&decision),
        ))));
    }

    /// A cluster that OCM can't reach: tainted, and dropped by the Placement.
    fn lose(&mut self, name: &str, left: &[&str]) {
        self.cluster(name, "Unknown", Some(TAINT_UNREACHABLE));
        self.decide(left);
    }

    fn fold(&self) -> Output {
        let key = ObjectKey::new(NAMESPACE, "sample");
        let settings = Settings::default();
        let inputs = Inputs {
            key: &key,
            record: &self.record,
            index: &self.index,
            reads: &self.reads,
            settings: &settings,
            now: self.now,
        };
        fold(inputs)
    }

    /// Folds and writes, as the engine and the writer would, until no read is wanted.
    fn settle(&mut self) -> Output {
        loop {
            let output = self.fold();
            let wanted: Vec<_> = output.reads.iter().cloned().collect();
            if wanted.is_empty() {
                self.write(&output);
                self.reads.clear();
                return output;
            }
            for name in wanted {
                let facts = self.index.cluster(&name).cloned();
                self.reads.insert(name, facts);
            }
        }
    }

    fn write(&mut self, output: &Output) {
        self.index.apply(Event::Page(Update::Restarted));
        for page in &output.pages {
            let key = ObjectKey::new(NAMESPACE, page.metadata.name.clone().unwrap());
            self.index.apply(Event::Page(Update::Applied((key, Arc::new(PageRow::from(page))))));
        }
        self.index.apply(Event::Page(Update::Synced));
        self.record.status = Some(output.status.clone());
    }

    fn pass(&mut self, seconds: i64) {
        self.now += jiff::SignedDuration::from_secs(seconds);
    }
}

fn rows(output: &Output) -> Vec<&ClusterRow> {
    output.pages.iter().flat_map(|page| &page.spec.clusters).collect()
}

fn finding(output: &Output, type_: FindingType) -> u32 {
    output.status.findings.iter().find(|finding| finding.type_ == type_).map_or(0, |finding| finding.count)
}

fn status<'a>(output: &'a Output, type_: &str) -> (&'a str, &'a str) {
    let found = output.status.conditions.iter().find(|c| c.type_ == type_).expect("every condition is always there");
    (&found.status, &found.reason)
}

#[test]
fn chosen_clusters_are_in_and_unknown_until_they_report() {
    let mut world = World::new();
    for name in ["b", "a"] {
        world.cluster(name, "True", None);
    }
    world.decide(&["b", "a"]);
    let output = world.settle();

    assert_eq!(output.status.cluster_names, ["a", "b"]);
    let states: Vec<_> = rows(&output).iter().map(|row| (row.phase, row.reason.as_str())).collect();
    assert_eq!(states, [(Phase::Unknown, reason::NEVER_REPORTED); 2]);
    assert_eq!((output.status.clusters.total, output.status.clusters.unknown), (2, 2));
    assert_eq!(output.status.summary.healthy, "0/2");
    assert_eq!(status(&output, condition::SOURCES_RESOLVED), ("True", "Resolved"));
    assert_eq!(status(&output, condition::REPORTED), ("False", reason::NEVER_REPORTED));
    assert_eq!(finding(&output, FindingType::AddOnNotEnabled), 2);
}

#[test]
fn nothing_changes_while_nothing_changes() {
    let mut world = World::new();
    world.cluster("a", "True", None);
    world.decide(&["a"]);
    let first = world.settle();
    world.pass(3600);
    let second = world.settle();
    assert_eq!(first.status, second.status);
    assert_eq!(first.pages, second.pages);
}

#[test]
fn an_outage_never_makes_a_record_smaller() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.cluster(name, "True", None);
    }
    world.decide(&["a", "b"]);
    world.spec(json!({
        "placementRefs": [{"name": "edge"}],
        "workload": [{"name": "frontend", "manifestWorkReplicaSetRef": {"name": "web"}}],
    }));
    replica_set(&mut world, json!([]));
    work(&mut world, "b", "True");
    world.settle();

    world.lose("b", &["a"]);
    let output = world.fold();
    assert_eq!(output.reads, ["b".to_owned()].into(), "whether it can be reached must be read after the drop");
    assert_eq!(output.status.clusters.total, 2, "and until then it stays");
    assert_eq!(finding(&output, FindingType::WorkWithoutDecision), 0, "and isn't called out of place");

    let output = world.settle();
    let row = rows(&output)[1];
    assert_eq!((row.phase, row.reason.as_str()), (Phase::Unknown, reason::CLUSTER_UNAVAILABLE));
    assert!(row.held.as_ref().is_some_and(|held| held.returned.is_none()));
    assert_eq!(output.status.clusters.total, 2);

    world.pass(7200);
    assert_eq!(world.settle().status.clusters.total, 2, "however long it lasts");
}

#[test]
fn a_cluster_that_returns_and_stays_unchosen_leaves_after_the_grace() {
    let mut world = World::new();
    world.cluster("a", "True", None);
    world.decide(&["a"]);
    world.settle();
    world.lose("a", &[]);
    world.settle();

    world.cluster("a", "True", None);
    let output = world.settle();
    assert_eq!(output.status.clusters.total, 1);
    assert_eq!(output.wake, Some(world.now + jiff::SignedDuration::from_secs(60)));

    world.pass(30);
    world.lose("a", &[]);
    world.settle();
    world.cluster("a", "True", None);
    world.settle();
    world.pass(59);
    assert_eq!(world.settle().status.clusters.total, 1, "the grace starts anew after a break");
    world.pass(1);
    let output = world.settle();
    assert_eq!(output.status.clusters.total, 0);
    assert!(output.pages.is_empty());
}

#[test]
fn a_cluster_that_returns_and_is_chosen_again_is_as_before() {
    let mut world = World::new();
    world.cluster("a", "True", None);
    world.decide(&["a"]);
    world.settle();
    world.lose("a", &[]);
    world.settle();
    world.cluster("a", "True", None);
    world.decide(&["a"]);
    let output = world.settle();
    assert_eq!(rows(&output)[0].held, None);
    assert_eq!(rows(&output)[0].reason, reason::NEVER_REPORTED);
}

#[test]
fn a_reachable_cluster_that_is_dropped_leaves_at_once() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.cluster(name, "True", None);
    }
    world.decide(&["a", "b"]);
    world.settle();
    world.decide(&["a"]);
    assert_eq!(world.settle().status.cluster_names, ["a"]);
}

#[test]
fn a_deleted_or_unbound_cluster_leaves_even_amid_an_outage() {
    for leave in [0, 1] {
        let mut world = World::new();
        world.cluster("a", "True", None);
        world.decide(&["a"]);
        world.settle();
        world.lose("a", &[]);
        assert_eq!(world.settle().status.clusters.total, 1);
        match leave {
            0 => world.apply(Event::Cluster(Update::Deleted(ObjectKey::new("", "a")))),
            _ => world.apply(Event::Binding(Update::Deleted(ObjectKey::new(NAMESPACE, "global")))),
        }
        assert_eq!(world.settle().status.clusters.total, 0);
    }
}

#[test]
fn explicit_clusters_count_only_inside_bound_sets() {
    let mut world = World::new();
    world.cluster("a", "True", None);
    world.spec(json!({"clusterNames": ["a", "nowhere"]}));
    let output = world.settle();
    assert_eq!(output.status.cluster_names, ["a"]);
    assert!(rows(&output)[0].explicit);
    assert_eq!(finding(&output, FindingType::ClusterNotBound), 1);
    assert!(output.members.contains("nowhere"), "should it appear, the record must be folded again");
}

#[test]
fn missing_sources_are_found() {
    let mut world = World::new();
    world.spec(json!({
        "placementRefs": [{"name": "edge"}, {"name": "other"}],
        "workload": [{"name": "w", "manifestWorkReplicaSetRef": {"name": "gone"}}],
    }));
    let output = world.settle();
    assert_eq!(finding(&output, FindingType::PlacementNotFound), 1);
    assert_eq!(finding(&output, FindingType::NoDecision), 1);
    assert_eq!(finding(&output, FindingType::SourceNotFound), 1);
    assert_eq!(status(&output, condition::SOURCES_RESOLVED), ("False", "PlacementNotFound"));
}

fn replica_set(world: &mut World, manifests: Value) {
    let set: ManifestWorkReplicaSet = serde_json::from_str(
        &json!({
            "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"placementRefs": [{"name": "edge"}], "manifestWorkTemplate": {"workload": {"manifests": manifests}}},
            "status": {"summary": {"total": 2, "applied": 1, "available": 1}},
        })
        .to_string(),
    )
    .unwrap();
    let row = (ObjectKey::new(NAMESPACE, "web"), Arc::new(ReplicaSetRow::from(&set)));
    world.apply(Event::ReplicaSet(Update::Applied(row)));
}

fn work(world: &mut World, cluster: &str, applied: &str) {
    let work: ManifestWork = serde_json::from_str(
        &json!({
            "metadata": {"name": "web", "namespace": cluster, "generation": 1, "labels": {LABEL_REPLICA_SET: "tenant-a.web"}},
            "status": {"conditions": [{"type": "Applied", "status": applied, "observedGeneration": 1}]},
        })
        .to_string(),
    )
    .unwrap();
    world.apply(Event::Work(Update::Applied((ObjectKey::new(cluster, "web"), WorkRow::of(&work).map(Arc::new)))));
}

#[test]
fn works_of_a_replica_set_are_joined_per_cluster() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.cluster(name, "True", None);
    }
    world.spec(json!({
        "placementRefs": [{"name": "edge"}], "clusterNames": ["c"],
        "workload": [{"name": "frontend", "manifestWorkReplicaSetRef": {"name": "web"}}],
    }));
    world.decide(&["a", "b"]);
    replica_set(
        &mut world,
        json!([
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "tenant-a"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "tenant-a"}, "data": {"k": "dmFsdWU="}},
        ]),
    );
    work(&mut world, "a", "False");
    work(&mut world, "c", "True");
    let output = world.settle();

    let works =
        |row: &ClusterRow| row.workload.iter().map(|w| w.work.as_ref().map(|w| w.applied.clone())).collect::<Vec<_>>();
    let works: BTreeMap<_, _> = rows(&output).iter().map(|row| (row.cluster_name.as_str(), works(row))).collect();
    assert_eq!(works["a"], [Some("False".to_owned())]);
    assert_eq!(works["b"], [None]);
    assert_eq!(works["c"], [Some("True".to_owned())]);
    let counts = output.status.sources.manifest_works;
    assert_eq!((counts.total, counts.applied, counts.failed), (2, 1, 1));
    assert_eq!(finding(&output, FindingType::WorkApplyFailed), 1);
    assert_eq!(finding(&output, FindingType::DecisionWithoutWork), 1);
    assert_eq!(finding(&output, FindingType::WorkWithoutDecision), 1);

    let page = output.pages.iter().find(|page| page.spec.contents == PageContents::Workload).unwrap();
    let [deployment, secret] = page.spec.objects.as_slice() else { panic!("{:?}", page.spec.objects) };
    assert!(deployment.manifest.is_some() && !deployment.omitted);
    assert!(secret.manifest.is_none() && secret.omitted && secret.digest.is_empty(), "no Secret enters a record");
    assert_eq!(page.spec.workload[0].objects, [deployment.index, secret.index]);
}

#[test]
fn entries_and_objects_keep_their_indices() {
    let manifest = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let mut world = World::new();
    world.spec(
        json!({"workload": [{"name": "b", "manifest": manifest("b")}, {"name": "c", "manifest": manifest("c")}]}),
    );
    world.settle();
    world.spec(json!({"workload": [
        {"name": "a", "manifest": manifest("a")}, {"name": "c", "manifest": manifest("c")}, {"name": "d", "manifest": manifest("d")},
    ]}));
    let output = world.settle();
    let page = &output.pages[0].spec;
    let indices: BTreeMap<_, _> =
        page.workload.iter().map(|w| (w.entry.as_str(), (w.index, w.objects.clone()))).collect();
    assert_eq!(indices["c"], (1, vec![1]), "c keeps its index although b is gone and a came before it");
    assert_eq!(indices["a"], (0, vec![0]));
    assert_eq!(indices["d"], (2, vec![2]));
    assert_eq!(page.objects[0].object.namespace, NAMESPACE, "an inline manifest is in the record's namespace");
}

#[test]
fn config_objects_are_joined_and_unreadable_kinds_found() {
    let mut world = World::new();
    let kind = ConfigKind { group: "acme.example.io".into(), resource: "tenantconfigs".into() };
    let forbidden = ConfigKind { group: String::new(), resource: "pods".into() };
    world.spec(json!({"configRefs": [
        {"group": "acme.example.io", "resource": "tenantconfigs", "name": "sample"},
        {"group": "acme.example.io", "resource": "tenantconfigs", "name": "missing"},
        {"resource": "pods", "selector": {}},
    ]}));
    world.index.expect_config(kind.clone(), 7, [NAMESPACE.to_owned()].into());
    world.index.expect_config(forbidden.clone(), 8, [NAMESPACE.to_owned()].into());
    let row = ConfigRow::from(object::<kube::core::DynamicObject>(json!({
        "apiVersion": "acme.example.io/v1", "kind": "TenantConfig",
        "metadata": {"name": "sample", "namespace": NAMESPACE, "generation": 4},
        "spec": {"tier": "gold"}, "status": {"noise": 1},
    })));
    world.apply(Event::Config(kind.clone(), 7, Update::Applied((ObjectKey::new(NAMESPACE, "sample"), row.clone()))));
    let known = |world: &World| world.index.configs[&kind].is_known(NAMESPACE);
    world.apply(Event::Config(kind.clone(), 6, Update::Synced));
    assert!(!known(&world), "an earlier watch has nothing to say any more");
    world.apply(Event::Config(kind.clone(), 7, Update::Synced));
    assert!(known(&world));
    world.index.expect_config(kind.clone(), 9, [NAMESPACE.to_owned(), "tenant-b".to_owned()].into());
    assert!(known(&world), "that another tenant asks for the kind holds nobody back who knew it");
    assert!(!world.index.configs[&kind].is_known("tenant-b"));
    world.apply(Event::ConfigUnreadable(kind.clone(), 9, crate::index::Unreadable::Failed));
    assert_eq!(finding(&world.fold(), FindingType::ConfigUnreadable), 1, "told, and what was known stays");
    world.apply(Event::Config(kind.clone(), 9, Update::Restarted));
    world.apply(Event::Config(kind.clone(), 9, Update::Applied((ObjectKey::new(NAMESPACE, "sample"), row))));
    world.apply(Event::Config(kind.clone(), 9, Update::Synced));
    world.apply(Event::ConfigUnreadable(forbidden, 8, crate::index::Unreadable::Forbidden));

    let output = world.settle();
    let sources: Vec<_> =
        output.status.sources.configs.iter().map(|c| (c.name.as_str(), c.generation, c.found)).collect();
    assert_eq!(sources, [("missing", None, false), ("sample", Some(4), true)]);
    assert_eq!(output.pages[0].spec.config[0].content, Some(json!({"spec": {"tier": "gold"}})));
    assert_eq!(finding(&output, FindingType::ConfigNotFound), 1);
    assert_eq!(finding(&output, FindingType::ConfigForbidden), 1);
}

#[test]
fn selectors_that_match_nothing_are_found_and_a_record_over_nothing_is_not_ready() {
    let mut world = World::new();
    world.spec(json!({
        "placementRefs": [{"selector": {"matchLabels": {"typo": "1"}}}],
        "workload": [{"name": "w", "manifestWorkReplicaSetRef": {"selector": {"matchLabels": {"typo": "1"}}}}],
    }));
    let output = world.settle();
    assert_eq!(finding(&output, FindingType::PlacementNotFound), 1);
    assert_eq!(finding(&output, FindingType::SourceNotFound), 1);
    for type_ in [condition::READY, condition::SOURCES_RESOLVED, condition::HEALTHY, condition::REPORTED] {
        assert_eq!(status(&output, type_).0, "False", "{type_}");
    }
}

#[test]
fn a_set_without_a_selector_is_empty() {
    let set = |selector: Value| {
        let spec = json!({"metadata": {"name": "s"}, "spec": {"clusterSelector": selector}});
        SetRow::from(&object::<ManagedClusterSet>(spec))
    };
    let labels = Labels::from([(LABEL_CLUSTER_SET.to_owned(), "s".to_owned())]);
    assert!(set(json!({})).contains("s", &labels));
    assert!(set(json!({"selectorType": "LabelSelector", "labelSelector": {}})).contains("s", &labels));
    assert!(!set(json!({"selectorType": "LabelSelector"})).contains("s", &labels));
    assert!(!set(json!({"selectorType": "Later"})).contains("s", &labels));
}

#[test]
fn a_record_too_long_for_a_label_still_has_pages() {
    let mut world = World::new();
    world.cluster("a", "True", None);
    world.decide(&["a"]);
    let key = ObjectKey::new(NAMESPACE, "r".repeat(253));
    let settings = Settings::default();
    let inputs = Inputs {
        key: &key,
        record: &world.record,
        index: &world.index,
        reads: &world.reads,
        settings: &settings,
        now: world.now,
    };
    let page = &fold(inputs).pages[0].metadata;
    assert!(page.name.as_ref().unwrap().len() <= 253);
    assert!(page.labels.as_ref().unwrap().values().all(|label| label.len() <= 63));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Clusters come, go, break and return; after each step the numbers add up, no page is too large, and a cluster
    /// that stays keeps its page.
    #[test]
    fn numbers_add_up_and_clusters_keep_their_pages(steps in prop::collection::vec((0..160usize, 0..4u8), 1..200)) {
        let mut world = World::new();
        let name = |n: usize| format!("cluster-{n:03}");
        let mut chosen: BTreeMap<usize, ()> = (0..120).map(|n| (n, ())).collect();
        for n in 0..160 {
            world.cluster(&name(n), "True", None);
        }
        let mut before: BTreeMap<String, String> = BTreeMap::new();
        for chunk in steps.chunks(20) {
            for (n, action) in chunk {
                match action {
                    0 => { chosen.insert(*n, ()); world.cluster(&name(*n), "True", None); }
                    1 => { chosen.remove(n); }
                    2 => { chosen.remove(n); world.cluster(&name(*n), "Unknown", Some(TAINT_UNREACHABLE)); }
                    _ => world.cluster(&name(*n), "True", None),
                }
            }
            let names: Vec<_> = chosen.keys().map(|n| name(*n)).collect();
            world.decide(&names.iter().map(String::as_str).collect::<Vec<_>>());
            world.pass(7);
            let output = world.settle();

            let rows = rows(&output);
            let counts = output.status.clusters;
            prop_assert_eq!(counts.total as usize, rows.len());
            let phases = counts.healthy + counts.progressing + counts.drifted + counts.missing + counts.failed + counts.unknown;
            prop_assert_eq!(counts.total, phases);
            prop_assert_eq!(output.status.cluster_names.len(), rows.len());
            for name in &names {
                prop_assert!(output.status.cluster_names.contains(name));
            }
            let mut after = BTreeMap::new();
            for page in &output.pages {
                prop_assert!(page.spec.clusters.len() <= 100);
                prop_assert!(serde_json::to_vec(&page.spec).unwrap().len() <= 64 * 1024);
                for row in &page.spec.clusters {
                    let twice = after.insert(row.cluster_name.clone(), page.metadata.name.clone().unwrap());
                    prop_assert_eq!(twice, None);
                }
            }
            for (cluster, page) in &before {
                if let Some(now) = after.get(cluster) {
                    prop_assert_eq!(page, now);
                }
            }
            before = after;
        }
    }

    /// What a record says doesn't depend on the order in which its sources arrive.
    #[test]
    fn content_does_not_depend_on_the_order_of_arrival(order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle()) {
        let build = |order: &[usize]| {
            let mut world = World::new();
            world.spec(json!({
                "placementRefs": [{"name": "edge"}],
                "workload": [{"name": "frontend", "manifestWorkReplicaSetRef": {"name": "web"}}],
            }));
            for step in order {
                match step {
                    0 => world.cluster("a", "True", None),
                    1 => world.cluster("b", "True", None),
                    2 => world.decide(&["a", "b"]),
                    3 => replica_set(&mut world, json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}])),
                    4 => work(&mut world, "a", "True"),
                    _ => work(&mut world, "b", "False"),
                }
            }
            world.fold()
        };
        let (one, other) = (build(&order), build(&[0, 1, 2, 3, 4, 5]));
        prop_assert_eq!(one.status, other.status);
        prop_assert_eq!(one.pages, other.pages);
    }
}
