//! The engine against a pretended API server, which keeps what is written and echoes it late.

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::index::rows::{BindingRow, DecisionRow, PlacementRow, SetRow};

const NAMESPACE: &str = "tenant-a";

struct Server {
    engine: Engine,
    now: Instant,
    wall: Timestamp,
    version: u64,
}

impl Server {
    /// One record over one cluster; nothing is synced yet.
    fn new() -> Self {
        let mut server = Self {
            engine: Engine::new(Settings::default()),
            now: Instant::now(),
            wall: "2026-01-01T00:00:00Z".parse().unwrap(),
            version: 100,
        };
        server.engine.lead(server.now);
        let record = server.record(json!({"placementRefs": [{"name": "edge"}]}));
        for event in [
            Event::Record(Update::Applied((key("sample"), record))),
            Event::Placement(Update::Applied((
                key("edge"),
                PlacementRow { labels: Default::default(), satisfied: true, reason: "AllDecisionsScheduled".into() },
            ))),
            Event::Binding(Update::Applied((key("global"), BindingRow { bound: true }))),
            Event::Set(Update::Applied((ObjectKey::new("", "global"), SetRow::Selected(Default::default())))),
        ] {
            server.engine.handle(event, server.now);
        }
        server.cluster("a", true);
        server.decide(&["a"]);
        server
    }

    fn synced() -> Self {
        let mut server = Self::new();
        for event in [
            Event::Record(Update::Synced),
            Event::Page(Update::Synced),
            Event::Placement(Update::Synced),
            Event::Decision(Update::Synced),
            Event::Binding(Update::Synced),
            Event::Set(Update::Synced),
            Event::Cluster(Update::Synced),
            Event::ReplicaSet(Update::Synced),
            Event::Work(Update::Synced),
            Event::AddOn(Update::Synced),
        ] {
            server.engine.handle(event, server.now);
        }
        server
    }

    fn record(&self, spec: serde_json::Value) -> Arc<TenantDeploymentRecord> {
        let mut record: TenantDeploymentRecord = serde_json::from_value(json!({
            "apiVersion": "tenancy.open-cluster-management.io/v1alpha1", "kind": "TenantDeploymentRecord",
            "metadata": {"name": "sample", "namespace": NAMESPACE, "uid": "u", "generation": 1, "resourceVersion": "1"},
            "spec": spec,
        }))
        .unwrap();
        record.metadata.resource_version = Some(self.version.to_string());
        Arc::new(record)
    }

    fn cluster(&mut self, name: &str, reachable: bool) {
        let available = if reachable { crate::index::rows::ConditionStatus::True } else { Default::default() };
        let facts = ClusterFacts { accepted: true, available, tainted: !reachable, ..ClusterFacts::default() };
        self.engine.handle(Event::Cluster(Update::Applied((ObjectKey::new("", name), facts))), self.now);
    }

    fn decide(&mut self, clusters: &[&str]) {
        let clusters = clusters.iter().map(|name| (*name).to_owned()).collect();
        let row = DecisionRow { placement: "edge".into(), group: 0, clusters };
        self.engine.handle(Event::Decision(Update::Applied((key("edge-1"), row))), self.now);
    }

    fn pass(&mut self, duration: Duration) -> Effects {
        self.now += duration;
        self.wall += jiff::SignedDuration::try_from(duration).unwrap();
        self.engine.run(self.now, self.wall, usize::MAX)
    }

    /// Does what a flush says and tells the engine.
    fn write(&mut self, flush: Flush) -> Written {
        let wrote = flush.page_keys().collect();
        let mut written = Written { key: flush.key, wrote, ..Written::default() };
        for page in flush.pages {
            self.version += 1;
            match page {
                PageWrite::Create(mut page) | PageWrite::Replace(mut page) => {
                    page.metadata.resource_version = Some(self.version.to_string());
                    page.metadata.uid = Some(format!("uid-{}", page.metadata.name.as_deref().unwrap()));
                    written.pages.push(*page);
                }
                PageWrite::Delete { name, .. } => written.deleted.push(name),
            }
        }
        if let Some((_, status)) = flush.status {
            self.version += 1;
            let mut record = (*self.record(json!({"placementRefs": [{"name": "edge"}]}))).clone();
            record.status = Some(*status);
            written.record = Some(Arc::new(record));
        }
        written
    }

    /// Runs until nothing is to be done; returns how often something was written.
    fn settle(&mut self) -> usize {
        let mut writes = 0;
        for _ in 0..100 {
            let effects = self.pass(Duration::from_millis(100));
            for flush in effects.flushes {
                writes += 1;
                let written = self.write(flush);
                self.engine.written(written, self.now);
            }
            for read in effects.reads {
                let facts = self.engine.index().cluster(&read.cluster).cloned();
                self.engine.read(&read, facts, self.now);
            }
        }
        writes
    }

    fn status(&self) -> TenantDeploymentRecordStatus {
        self.engine.index().records.get(&key("sample")).unwrap().status.clone().unwrap()
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

#[test]
fn nothing_is_published_before_every_kind_has_listed() {
    let mut server = Server::new();
    assert_eq!(server.settle(), 0);
    assert_eq!(server.engine.next_due(), None, "and nobody turns in circles meanwhile");
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    let mut server = Server::synced();
    assert!(server.settle() > 0);
    assert_eq!(server.status().cluster_names, ["a"]);
    assert_eq!(server.settle(), 0);
    server.cluster("a", true);
    assert_eq!(server.settle(), 0, "an event without news is no reason to write");
}

#[test]
fn a_follower_writes_nothing_and_a_new_leader_compares_everything() {
    let mut server = Server::synced();
    server.engine.leading = false;
    assert_eq!(server.settle(), 0);
    server.engine.lead(server.now);
    assert!(server.settle() > 0);
}

#[test]
fn the_first_change_is_written_at_once_and_a_burst_is_gathered() {
    let mut server = Server::synced();
    server.settle();
    server.cluster("a", false);
    assert_eq!(server.pass(Duration::from_millis(19)).flushes.len(), 0);
    let flush = server.pass(Duration::from_millis(1)).flushes.pop().expect("written 20 ms after the first change");
    let written = server.write(flush);
    server.engine.written(written, server.now);

    let mut roots = 0;
    let mut pages = 0;
    for step in 0..100 {
        server.cluster("a", step % 2 == 0);
        for flush in server.pass(Duration::from_millis(10)).flushes {
            roots += usize::from(flush.status.is_some());
            pages += flush.pages.len();
            let written = server.write(flush);
            server.engine.written(written, server.now);
        }
    }
    assert!(pages <= 5, "{pages} writes of one page in a second");
    assert!(roots <= 2, "{roots} writes of one root in a second");
    server.settle();
    assert_eq!(server.status().attention[0].reason, "ClusterUnavailable", "the last state wins");
}

#[test]
fn a_late_echo_of_an_older_version_changes_nothing() {
    let mut server = Server::synced();
    server.settle();
    let old = server.engine.index().pages.iter().map(|(key, page)| (key.clone(), page.clone())).next().unwrap();
    let old_record = server.engine.index().records.get(&key("sample")).unwrap().clone();
    server.cluster("a", false);
    server.settle();
    let before = server.status();
    server.engine.handle(Event::Page(Update::Applied(old)), server.now);
    server.engine.handle(Event::Record(Update::Applied((key("sample"), old_record))), server.now);
    assert_eq!(server.settle(), 0);
    assert_eq!(server.status(), before);
}

#[test]
fn what_somebody_else_changed_is_put_right() {
    let mut server = Server::synced();
    server.settle();
    let (page_key, page) = server.engine.index().pages.iter().map(|(k, p)| (k.clone(), (**p).clone())).next().unwrap();
    let version = (server.version + 1).to_string();
    let tampered = PageRow { digest: "other".into(), resource_version: version, ..page };
    server.version += 1;
    server.engine.handle(Event::Page(Update::Applied((page_key.clone(), Arc::new(tampered)))), server.now);
    assert_eq!(server.settle(), 1);
    let (_, page) = server.engine.index().pages.iter().map(|(k, p)| (k.clone(), (**p).clone())).next().unwrap();
    let version = (server.version + 1).to_string();
    let orphaned = PageRow { owner: String::new(), resource_version: version, ..page };
    server.version += 1;
    server.engine.handle(Event::Page(Update::Applied((page_key.clone(), Arc::new(orphaned)))), server.now);
    assert_eq!(server.settle(), 1, "a page that lost its owner is still ours, and gets it back");
    assert_eq!(server.engine.index().pages.get(&page_key).unwrap().owner, "u");
    server.engine.handle(Event::Page(Update::Deleted(page_key)), server.now);
    assert_eq!(server.settle(), 1);
}

#[test]
fn a_failed_write_is_tried_again_ever_more_slowly() {
    let mut server = Server::synced();
    let mut tries = Vec::new();
    for _ in 0..3000 {
        for flush in server.pass(Duration::from_millis(100)).flushes {
            tries.push(server.now);
            server.engine.written(Written { key: flush.key, failed: true, ..Written::default() }, server.now);
        }
    }
    let waits: Vec<_> = tries.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    server.cluster("a", false);
    assert_eq!(server.pass(Duration::from_millis(500)).flushes.len(), 0, "an event is no reason to hurry");
    assert_eq!(waits[..6], [500, 1000, 2000, 4000, 8000, 16_000]);
    assert!(waits.iter().all(|wait| *wait <= 60_000), "{waits:?}");
    for _ in 0..7 {
        server.settle();
    }
    assert_eq!(server.status().clusters.total, 1, "and it heals");
}

#[test]
fn a_cluster_lost_in_an_outage_is_read_once_and_held() {
    let mut server = Server::synced();
    server.settle();
    server.cluster("a", false);
    server.decide(&[]);
    let effects = server.pass(Duration::from_millis(250));
    assert_eq!(effects.reads, [Read { record: key("sample"), cluster: "a".into() }]);
    for flush in effects.flushes {
        let written = server.write(flush);
        server.engine.written(written, server.now);
    }
    assert_eq!(server.pass(Duration::from_secs(1)).reads, [], "while a read is under way there is no second one");
    server.engine.read(&effects.reads[0], server.engine.index().cluster("a").cloned(), server.now);
    server.settle();
    assert_eq!(server.status().clusters.total, 1);
    server.cluster("a", true);
    server.settle();
    for _ in 0..7 {
        server.settle();
    }
    assert_eq!(server.status().clusters.total, 0, "back for longer than the grace, and not chosen");
}

#[test]
fn a_write_that_ends_after_its_object_was_deleted_brings_nothing_back() {
    let mut server = Server::synced();
    let flush = server.pass(Duration::from_millis(100)).flushes.pop().unwrap();
    let page = flush.page_keys().next().unwrap();
    let written = server.write(flush);
    server.engine.handle(Event::Page(Update::Deleted(page.clone())), server.now);
    server.engine.handle(Event::Record(Update::Deleted(key("sample"))), server.now);
    server.engine.written(written, server.now);
    assert!(server.engine.index().pages.get(&page).is_none());
    assert!(server.engine.index().records.get(&key("sample")).is_none());
    assert_eq!(server.settle(), 0);
}

#[test]
fn no_more_is_folded_than_can_be_written() {
    let mut server = Server::synced();
    server.now += Duration::from_secs(1);
    assert_eq!(server.engine.run(server.now, server.wall, 0).flushes.len(), 0);
    assert_eq!(server.engine.run(server.now, server.wall, 1).flushes.len(), 1);
}

#[test]
fn a_deleted_record_is_forgotten() {
    let mut server = Server::synced();
    server.settle();
    server.engine.handle(Event::Record(Update::Deleted(key("sample"))), server.now);
    assert_eq!(server.settle(), 0);
    assert!(server.engine.states.is_empty());
}
