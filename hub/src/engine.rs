//! From events to writes: keeps the index, decides which records to fold and when, and compares what a record should
//! look like with what it looks like. No I/O: it takes events and the time and gives out [`Effects`].
//!
//! ```text
//! Event ─▶ index ─▶ dirty records ─(debounce)─▶ fold ─▶ difference ─▶ Flush ─▶ the writer
//!                        ▲                        └─▶ reads wanted ─▶ the reader     │
//!                        └───────────────────────────────────────────────────────────┘
//! ```

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tenant_records_api::{TenantDeploymentRecord, TenantDeploymentRecordPage, TenantDeploymentRecordStatus};
use tenant_records_runtime::{ObjectKey, Update};
use tokio::time::Instant;

use crate::config_watches::ConfigChanges;
use crate::fold::{Inputs, Output, Settings, config_kinds, fold, pages_of};
use crate::index::rows::{ClusterFacts, ClusterMemory, ClusterNames, PageRow};
use crate::index::{ConfigKind, Event, Index, Rows};

/// How long after its first change a quiet record is folded.
const FIRST: Duration = Duration::from_millis(20);
/// The least time between two writes of a record's pages.
const PAGES: Duration = Duration::from_millis(200);
/// The least time between two writes of a record's root.
const ROOT: Duration = Duration::from_millis(500);
/// The first and longest wait after a failed write.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// What is to be done outside.
#[derive(Debug, Default)]
pub struct Effects {
    /// Records to be written; each comes back by [`Engine::written`].
    pub flushes: Vec<Flush>,
    /// ManagedClusters to be read afresh; each comes back by [`Engine::read`].
    pub reads: Vec<Read>,
}

/// A wish to read a ManagedCluster from the API server, because of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub record: ObjectKey,
    pub cluster: String,
}

/// The writes of one record.
#[derive(Debug)]
pub struct Flush {
    pub key: ObjectKey,
    pub uid: String,
    pub pages: Vec<PageWrite>,
    /// The new status, with the record's resource version that it is based on.
    pub status: Option<(String, Box<TenantDeploymentRecordStatus>)>,
}

impl Flush {
    /// The pages that are to be written.
    pub fn page_keys(&self) -> impl Iterator<Item = ObjectKey> {
        self.pages.iter().map(|page| ObjectKey::new(&self.key.namespace, page.name()))
    }
}

/// One write of a page.
#[derive(Debug)]
pub enum PageWrite {
    Create(Box<TenantDeploymentRecordPage>),
    /// Carries the resource version that it replaces.
    Replace(Box<TenantDeploymentRecordPage>),
    Delete {
        name: String,
        uid: String,
        resource_version: String,
    },
}

impl PageWrite {
    /// The page's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(page) | Self::Replace(page) => page.metadata.name.as_deref().unwrap_or_default(),
            Self::Delete { name, .. } => name,
        }
    }
}

/// What became of a flush.
#[derive(Debug, Default)]
pub struct Written {
    pub key: ObjectKey,
    /// The pages that were to be written.
    pub wrote: BTreeSet<ObjectKey>,
    /// Pages as the API server now holds them.
    pub pages: Vec<TenantDeploymentRecordPage>,
    /// Names of deleted pages.
    pub deleted: Vec<String>,
    /// The record as the API server now holds it.
    pub record: Option<Arc<TenantDeploymentRecord>>,
    /// Whether something couldn't be written.
    pub failed: bool,
}

/// What the engine keeps of a record beside the index.
#[derive(Debug, Default)]
struct State {
    /// When to fold it next.
    due: Option<Instant>,
    writing: bool,
    pages_written: Option<Instant>,
    root_written: Option<Instant>,
    failures: u32,
    /// After a failed write, nothing before that.
    not_before: Option<Instant>,
    members: ClusterNames,
    /// Reads that the last fold asked for; a value when it has come.
    reads: HashMap<String, Option<Option<ClusterFacts>>>,
}

/// The decisions of the hub manager about records.
#[derive(Debug, Default)]
pub struct Engine {
    index: Index,
    settings: Settings,
    states: HashMap<ObjectKey, State>,
    /// Pages that are being written, and whether they were deleted meanwhile: then what the write says is outdated.
    pages_in_flight: HashMap<ObjectKey, bool>,
    leading: bool,
}

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Everything that is known.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// From now on it gives out writes; every record is compared once.
    pub fn lead(&mut self, now: Instant) {
        self.leading = true;
        let keys: Vec<_> = self.index.records.iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.mark(key, now);
        }
    }

    /// Takes in what a watch tells.
    pub fn handle(&mut self, event: Event, now: Instant) {
        let was_synced = self.index.is_synced();
        let event = match event {
            Event::Record(update) => Event::Record(self.newest_record(update)),
            Event::Page(update) => {
                if let Update::Deleted(key) = &update
                    && let Some(deleted) = self.pages_in_flight.get_mut(key)
                {
                    *deleted = true;
                }
                Event::Page(self.newest_page(update))
            }
            other => other,
        };
        let mut dirty = self.index.apply(event);
        if !was_synced && self.index.is_synced() {
            dirty = self.index.records.iter().map(|(key, _)| key.clone()).collect();
        }
        for key in dirty {
            self.mark(key, now);
        }
    }

    /// Takes in a ManagedCluster that was read afresh; none when it doesn't exist.
    pub fn read(&mut self, read: &Read, facts: Option<ClusterFacts>, now: Instant) {
        if let Some(slot) = self.states.get_mut(&read.record).and_then(|state| state.reads.get_mut(&read.cluster)) {
            *slot = Some(facts);
            self.mark(read.record.clone(), now);
        }
    }

    /// Takes in what became of a flush.
    pub fn written(&mut self, written: Written, now: Instant) {
        let outdated: Vec<_> = self.pages_in_flight.extract_if(|key, _| written.wrote.contains(key)).collect();
        let outdated: BTreeSet<_> = outdated.into_iter().filter(|(_, deleted)| *deleted).map(|(key, _)| key).collect();
        for page in &written.pages {
            let key = ObjectKey::of(page);
            if !outdated.contains(&key) {
                self.handle(Event::Page(Update::Applied((key, Arc::new(PageRow::from(page))))), now);
            }
        }
        for name in written.deleted {
            self.handle(Event::Page(Update::Deleted(ObjectKey::new(&written.key.namespace, name))), now);
        }
        if let Some(record) = written.record {
            // It may have been deleted meanwhile, and another may have its name.
            let known = self.index.records.get(&written.key);
            if known.is_some_and(|known| known.metadata.uid == record.metadata.uid) {
                self.handle(Event::Record(Update::Applied((written.key.clone(), record))), now);
            }
        }
        let Some(state) = self.states.get_mut(&written.key) else { return };
        state.writing = false;
        if written.failed {
            state.failures += 1;
            state.not_before = Some(now + back_off(state.failures));
            state.due = state.not_before;
        } else {
            state.failures = 0;
            state.not_before = None;
        }
    }

    /// The kinds of configuration object that records reference, with the namespaces where they do.
    pub fn wanted_configs(&self) -> HashMap<ConfigKind, BTreeSet<String>> {
        let mut wanted: HashMap<_, BTreeSet<String>> = HashMap::new();
        for (key, record) in self.index.records.iter() {
            for kind in config_kinds(record) {
                wanted.entry(kind).or_default().insert(key.namespace.clone());
            }
        }
        wanted
    }

    /// Takes in which watches of configuration kinds started and stopped.
    pub fn configs_watched(&mut self, changes: ConfigChanges) {
        for kind in &changes.stopped {
            self.index.forget_config(kind);
        }
        for (kind, watch, namespaces) in changes.started {
            self.index.expect_config(kind, watch, namespaces);
        }
    }

    /// When [`Self::run`] has something to do next.
    pub fn next_due(&self) -> Option<Instant> {
        if !self.leading || !self.index.is_synced() {
            return None;
        }
        self.states.values().filter(|state| !state.writing).filter_map(|state| state.due).min()
    }

    /// Folds records that are due, until there are `room` of them to be written, and gives out what is to be done.
    pub fn run(&mut self, now: Instant, wall: Timestamp, room: usize) -> Effects {
        let mut effects = Effects::default();
        if !self.leading || !self.index.is_synced() {
            return effects;
        }
        let is_due = |state: &State| !state.writing && state.due.is_some_and(|due| due <= now);
        let due: Vec<_> = self.states.iter().filter(|(_, state)| is_due(state)).map(|(key, _)| key.clone()).collect();
        for key in due {
            if effects.flushes.len() >= room {
                break;
            }
            self.fold_one(key, now, wall, &mut effects);
        }
        for flush in &effects.flushes {
            self.pages_in_flight.extend(flush.page_keys().map(|key| (key, false)));
        }
        effects
    }

    fn fold_one(&mut self, key: ObjectKey, now: Instant, wall: Timestamp, effects: &mut Effects) {
        let state = self.states.entry(key.clone()).or_default();
        state.due = None;
        let Some(record) = self.index.records.get(&key).cloned() else {
            let state = self.states.remove(&key).unwrap_or_default();
            self.index.set_members(&key, &state.members, &ClusterNames::new());
            return;
        };
        if record.metadata.deletion_timestamp.is_some() || !configs_known(&self.index, &key, &record) {
            return;
        }
        let reads = state.reads.iter().filter_map(|(cluster, read)| Some((cluster.clone(), read.clone()?))).collect();
        let output = fold(Inputs {
            key: &key,
            record: &record,
            index: &self.index,
            reads: &reads,
            settings: &self.settings,
            now: whole_seconds(wall),
        });
        self.index.set_members(&key, &state.members, &output.members);
        state.members.clone_from(&output.members);
        effects.reads.extend(state.want_reads(&key, &output.reads));
        if let Some(wake) = output.wake {
            state.wake_at(now, wall, wake);
        }
        effects.flushes.extend(difference(&self.index, &key, &record, output, state, now));
    }

    fn mark(&mut self, key: ObjectKey, now: Instant) {
        let state = self.states.entry(key).or_default();
        let earliest = state.pages_written.map_or(now, |written| written + PAGES);
        let due = earliest.max(now + FIRST).max(state.not_before.unwrap_or(now));
        state.due = Some(state.due.map_or(due, |known| known.min(due)));
    }

    /// An echo of an older version of a record, after our own write has told us a newer one, changes nothing.
    fn newest_record(&self, update: Rows<Arc<TenantDeploymentRecord>>) -> Rows<Arc<TenantDeploymentRecord>> {
        update.map(|(key, record)| match self.index.records.get(&key) {
            Some(known)
                if known.metadata.uid == record.metadata.uid
                    && is_older(&record.metadata.resource_version, &known.metadata.resource_version) =>
            {
                (key, known.clone())
            }
            _ => (key, record),
        })
    }

    fn newest_page(&self, update: Rows<Arc<PageRow>>) -> Rows<Arc<PageRow>> {
        update.map(|(key, page)| match self.index.pages.get(&key) {
            Some(known) if known.uid == page.uid && older(&page.resource_version, &known.resource_version) => {
                (key, known.clone())
            }
            _ => (key, page),
        })
    }
}

impl State {
    /// Remembers which reads are wanted; returns those that aren't under way.
    fn want_reads(&mut self, record: &ObjectKey, wanted: &BTreeSet<String>) -> Vec<Read> {
        self.reads.retain(|cluster, _| wanted.contains(cluster));
        let new = wanted.iter().filter(|cluster| !self.reads.contains_key(*cluster)).cloned().collect::<Vec<_>>();
        self.reads.extend(new.iter().map(|cluster| (cluster.clone(), None)));
        new.into_iter().map(|cluster| Read { record: record.clone(), cluster }).collect()
    }

    fn wake_at(&mut self, now: Instant, wall: Timestamp, wake: Timestamp) {
        let wait = Duration::try_from(wake.duration_since(wall)).unwrap_or_default();
        let due = now + wait.max(Duration::from_secs(1));
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }
}

/// Whether for every kind of configuration object of the record it's known what is there.
fn configs_known(index: &Index, key: &ObjectKey, record: &TenantDeploymentRecord) -> bool {
    let is_known = |kind| index.configs.get(kind).is_some_and(|table| table.is_known(&key.namespace));
    config_kinds(record).iter().all(is_known)
}

/// What differs between how a record should look and how it looks; nothing when nothing does.
fn difference(
    index: &Index,
    key: &ObjectKey,
    record: &TenantDeploymentRecord,
    output: Output,
    state: &mut State,
    now: Instant,
) -> Option<Flush> {
    let pages = page_writes(index, key, record, output.pages.into_iter().zip(output.digests));
    let mut status = (record.status.as_ref() != Some(&output.status)).then_some(output.status);
    if let (Some(_), Some(written)) = (&status, state.root_written)
        && now < written + ROOT
    {
        let due = written + ROOT;
        state.due = Some(state.due.map_or(due, |known| known.min(due)));
        status = None;
    }
    if pages.is_empty() && status.is_none() {
        return None;
    }
    state.writing = true;
    if !pages.is_empty() {
        state.pages_written = Some(now);
    }
    if status.is_some() {
        state.root_written = Some(now);
    }
    let base = record.metadata.resource_version.clone().unwrap_or_default();
    Some(Flush {
        key: key.clone(),
        uid: record.metadata.uid.clone().unwrap_or_default(),
        pages,
        status: status.map(|status| (base, Box::new(status))),
    })
}

fn page_writes(
    index: &Index,
    key: &ObjectKey,
    record: &TenantDeploymentRecord,
    wanted: impl Iterator<Item = (TenantDeploymentRecordPage, String)>,
) -> Vec<PageWrite> {
    let mut existing: HashMap<&str, &PageRow> = pages_of(index, key, record).collect();
    let (mut writes, mut losing) = (Vec::new(), Vec::new());
    for (mut page, digest) in wanted {
        let name = page.metadata.name.as_deref().unwrap_or_default();
        match existing.remove(name) {
            None => writes.push(PageWrite::Create(Box::new(page))),
            Some(known) if known.digest == digest && Some(&known.owner) == record.metadata.uid.as_ref() => {}
            Some(known) => {
                page.metadata.resource_version = Some(known.resource_version.clone());
                page.metadata.uid = Some(known.uid.clone());
                let stays =
                    |memory: &ClusterMemory| page.spec.clusters.iter().any(|r| r.cluster_name == memory.cluster);
                let loses = !known.clusters.iter().all(stays);
                let group = if loses { &mut losing } else { &mut writes };
                group.push(PageWrite::Replace(Box::new(page)));
            }
        }
    }
    // A row that moves must be on its new page before it leaves the old one: only there stands that it is held.
    writes.append(&mut losing);
    let mut obsolete: Vec<_> = existing.into_iter().collect();
    obsolete.sort_by_key(|(name, _)| *name);
    writes.extend(obsolete.into_iter().map(|(name, page)| PageWrite::Delete {
        name: name.to_owned(),
        uid: page.uid.clone(),
        resource_version: page.resource_version.clone(),
    }));
    writes
}

/// Whether the first resource version is older. They are numbers since Kubernetes 1.35 (KEP-5504), and in practice
/// always were; anything else is never older.
fn older(a: &str, b: &str) -> bool {
    matches!((a.parse::<u64>(), b.parse::<u64>()), (Ok(a), Ok(b)) if a < b)
}

fn is_older(a: &Option<String>, b: &Option<String>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if older(a, b))
}

fn back_off(failures: u32) -> Duration {
    BACK_OFF.0.saturating_mul(1 << failures.min(10).saturating_sub(1)).min(BACK_OFF.1)
}

/// The time in whole seconds: the API server keeps no more, and a finer one would differ from what is read back.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests;
