//! Everything the fold reads, joined in memory.
//!
//! One watch per kind feeds a [`Table`] of projected rows. Beside the tables stand reverse indexes, so that an event
//! leads to the records that it concerns without a search.
//!
//! ```text
//! Placement, PlacementDecision, ManagedClusterSetBinding,
//! ManifestWorkReplicaSet, configuration, page ── namespace ──▶ records of that namespace
//! ManifestWork ── its replica set's or its tenant's namespace ─▶ records of that namespace
//! ManagedClusterSet ── bindings ─▶ namespaces ────────────────▶ records of those namespaces
//! ManagedCluster, ManagedClusterAddOn ── members ─────────────▶ records that the cluster concerns
//! ```

pub mod rows;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tenant_records_api::TenantDeploymentRecord;
use tenant_records_runtime::{ObjectKey, Update};

use rows::*;
pub use table::{Change, Table};

/// An update of a kind's rows.
pub type Rows<R> = Update<(ObjectKey, R)>;

/// What the index learns, by kind.
#[derive(Debug)]
pub enum Event {
    Record(Rows<Arc<TenantDeploymentRecord>>),
    Page(Rows<Arc<PageRow>>),
    Placement(Rows<PlacementRow>),
    Decision(Rows<DecisionRow>),
    Binding(Rows<BindingRow>),
    Set(Rows<SetRow>),
    Cluster(Rows<ClusterFacts>),
    ReplicaSet(Rows<Arc<ReplicaSetRow>>),
    /// A work that no record can be about has no row.
    Work(Rows<Option<Arc<WorkRow>>>),
    AddOn(Rows<AddOnRow>),
    /// From the watch of that number; what an earlier watch of the kind still had to tell is ignored.
    Config(ConfigKind, u64, Rows<ConfigRow>),
    /// The kind can't be read, and why.
    ConfigUnreadable(ConfigKind, u64, Unreadable),
}

/// A kind of configuration object, as a record names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigKind {
    /// API group; empty for core.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
}

impl std::fmt::Display for ConfigKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() { f.write_str(&self.resource) } else { write!(f, "{}.{}", self.resource, self.group) }
    }
}

/// Why a kind of configuration object can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The API server doesn't serve it.
    NotServed,
    /// The manager has no right to.
    Forbidden,
    /// Something else is wrong; what was known before stays.
    Failed,
}

/// The configuration objects of a kind.
#[derive(Debug, Default)]
pub struct ConfigTable {
    watch: u64,
    pub rows: Table<ConfigRow>,
    pub unreadable: Option<Unreadable>,
    /// The namespaces of which the current watch will know everything when it has listed.
    listing: BTreeSet<String>,
    /// The namespaces of which everything is known.
    known: BTreeSet<String>,
}

impl ConfigTable {
    /// Whether it's known what is there in that namespace, or that it can't be known.
    pub fn is_known(&self, namespace: &str) -> bool {
        self.known.contains(namespace) || self.unreadable.is_some()
    }
}

/// All rows and reverse indexes.
#[derive(Debug, Default)]
pub struct Index {
    pub records: Table<Arc<TenantDeploymentRecord>>,
    pub pages: Table<Arc<PageRow>>,
    pub placements: Table<PlacementRow>,
    pub decisions: Table<DecisionRow>,
    pub bindings: Table<BindingRow>,
    pub sets: Table<SetRow>,
    pub clusters: Table<ClusterFacts>,
    pub replica_sets: Table<Arc<ReplicaSetRow>>,
    pub works: Table<Option<Arc<WorkRow>>>,
    pub addons: Table<AddOnRow>,
    pub configs: HashMap<ConfigKind, ConfigTable>,
    namespaces: HashMap<String, Namespace>,
    /// Which works a replica set has made, by cluster.
    works_of_sets: HashMap<ObjectKey, BTreeMap<String, BTreeSet<String>>>,
    /// Which works carry a tenant's label, as (cluster, name).
    works_of_tenants: HashMap<String, BTreeSet<(String, String)>>,
    /// Which records a cluster concerns, as their last folds said.
    members: HashMap<String, HashSet<ObjectKey>>,
}

/// The names of a namespace's objects per kind.
#[derive(Debug, Default)]
pub struct Namespace {
    pub records: BTreeSet<String>,
    pub pages: BTreeSet<String>,
    pub placements: BTreeSet<String>,
    pub decisions: BTreeSet<String>,
    pub bindings: BTreeSet<String>,
    pub replica_sets: BTreeSet<String>,
}

/// Keeps a namespace's names of one kind in step with that kind's table.
macro_rules! namespaced {
    ($index:expr, $table:ident, $update:expr) => {{
        let mut touched = BTreeSet::new();
        for change in $index.$table.apply($update) {
            let names = &mut $index.namespaces.entry(change.key.namespace.clone()).or_default().$table;
            if $index.$table.get(&change.key).is_some() {
                names.insert(change.key.name);
            } else {
                names.remove(&change.key.name);
            }
            touched.insert(change.key.namespace);
        }
        touched
    }};
}

impl Index {
    /// Takes in what a watch tells; returns the records that it may concern.
    pub fn apply(&mut self, event: Event) -> BTreeSet<ObjectKey> {
        let namespaces = match event {
            Event::Record(update) => return self.apply_record(update),
            Event::Page(update) => return self.apply_page(update),
            Event::Placement(update) => namespaced!(self, placements, update),
            Event::Decision(update) => namespaced!(self, decisions, update),
            Event::Binding(update) => namespaced!(self, bindings, update),
            Event::ReplicaSet(update) => namespaced!(self, replica_sets, update),
            Event::Set(update) => self.apply_set(update),
            Event::Work(update) => self.apply_work(update),
            Event::Config(kind, watch, update) => self.apply_config(kind, watch, update),
            Event::ConfigUnreadable(kind, watch, why) => self.apply_unreadable(kind, watch, why),
            Event::Cluster(update) => {
                let changes = self.clusters.apply(update);
                return self.records_of_clusters(changes.iter().map(|change| change.key.name.as_str()));
            }
            Event::AddOn(update) => {
                let changes = self.addons.apply(update);
                return self.records_of_clusters(changes.iter().map(|change| change.key.namespace.as_str()));
            }
        };
        namespaces.iter().flat_map(|namespace| self.records_of_namespace(namespace)).collect()
    }

    /// Whether every kind but the tenants' own has listed once. Before that nothing may be called missing or gone.
    pub fn is_synced(&self) -> bool {
        self.records.is_synced()
            && self.pages.is_synced()
            && self.placements.is_synced()
            && self.decisions.is_synced()
            && self.bindings.is_synced()
            && self.sets.is_synced()
            && self.clusters.is_synced()
            && self.replica_sets.is_synced()
            && self.works.is_synced()
            && self.addons.is_synced()
    }

    /// From now on the watch of that number tells about the kind in these namespaces. What is known of it stays.
    pub fn expect_config(&mut self, kind: ConfigKind, watch: u64, namespaces: BTreeSet<String>) {
        let table = self.configs.entry(kind).or_default();
        table.watch = watch;
        table.known.retain(|namespace| namespaces.contains(namespace));
        table.listing = namespaces;
    }

    /// Nobody asks about the kind any more.
    pub fn forget_config(&mut self, kind: &ConfigKind) {
        self.configs.remove(kind);
    }

    /// Remembers which clusters concern a record.
    pub fn set_members(&mut self, record: &ObjectKey, old: &ClusterNames, new: &ClusterNames) {
        for cluster in old.difference(new) {
            if let Some(records) = self.members.get_mut(cluster) {
                records.remove(record);
                if records.is_empty() {
                    self.members.remove(cluster);
                }
            }
        }
        for cluster in new.difference(old) {
            self.members.entry(cluster.clone()).or_default().insert(record.clone());
        }
    }

    /// The names of a namespace's objects.
    pub fn namespace(&self, namespace: &str) -> Option<&Namespace> {
        self.namespaces.get(namespace)
    }

    /// The works that a replica set has made: cluster and the work's name. Of several on one cluster, which OCM
    /// doesn't make, the first by name.
    pub fn works_of_set(&self, set: &ObjectKey) -> impl Iterator<Item = (&String, &String)> {
        let works = self.works_of_sets.get(set).into_iter().flatten();
        works.filter_map(|(cluster, names)| Some((cluster, names.first()?)))
    }

    /// The works that carry a tenant's label, as (cluster, name).
    pub fn works_of_tenant(&self, namespace: &str) -> impl Iterator<Item = &(String, String)> {
        self.works_of_tenants.get(namespace).into_iter().flatten()
    }

    /// The work of that name in that cluster's namespace.
    pub fn work(&self, cluster: &str, name: &str) -> Option<&Arc<WorkRow>> {
        self.works.get(&ObjectKey::new(cluster, name))?.as_ref()
    }

    /// The cluster of that name.
    pub fn cluster(&self, name: &str) -> Option<&ClusterFacts> {
        self.clusters.get(&ObjectKey::new("", name))
    }

    /// The bound cluster sets of a namespace: name and row, sorted by name.
    pub fn bound_sets<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a str, &'a SetRow)> {
        let names = self.namespace(namespace).into_iter().flat_map(|names| &names.bindings);
        names.filter_map(move |name| {
            let bound = self.bindings.get(&ObjectKey::new(namespace, name))?.bound;
            let set = self.sets.get(&ObjectKey::new("", name))?;
            bound.then_some((name.as_str(), set))
        })
    }

    fn apply_record(&mut self, update: Rows<Arc<TenantDeploymentRecord>>) -> BTreeSet<ObjectKey> {
        let changes = self.records.apply(update);
        changes
            .into_iter()
            .map(|change| {
                let names = &mut self.namespaces.entry(change.key.namespace.clone()).or_default().records;
                if self.records.get(&change.key).is_some() {
                    names.insert(change.key.name.clone());
                } else {
                    names.remove(&change.key.name);
                }
                change.key
            })
            .collect()
    }

    /// A page concerns its record alone.
    fn apply_page(&mut self, update: Rows<Arc<PageRow>>) -> BTreeSet<ObjectKey> {
        let mut touched = BTreeSet::new();
        for Change { key, old } in self.pages.apply(update) {
            let new = self.pages.get(&key);
            let names = &mut self.namespaces.entry(key.namespace.clone()).or_default().pages;
            if new.is_some() {
                names.insert(key.name.clone());
            } else {
                names.remove(&key.name);
            }
            let records = old.iter().chain(new).map(|page| ObjectKey::new(&key.namespace, &page.record));
            touched.extend(records.filter(|record| self.records.get(record).is_some()));
        }
        touched
    }

    fn apply_set(&mut self, update: Rows<SetRow>) -> BTreeSet<String> {
        let sets: HashSet<_> = self.sets.apply(update).into_iter().map(|change| change.key.name).collect();
        let bindings = self.bindings.iter().filter(|(key, _)| sets.contains(&key.name));
        bindings.map(|(key, _)| key.namespace.clone()).collect()
    }

    fn apply_work(&mut self, update: Rows<Option<Arc<WorkRow>>>) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        for Change { key, old } in self.works.apply(update) {
            let new = self.works.get(&key).cloned().flatten();
            for (row, present) in [(old.flatten(), false), (new, true)] {
                let Some(row) = row else { continue };
                touched.insert(self.link_work(&key, &row.owner, present));
            }
        }
        touched
    }

    fn link_work(&mut self, key: &ObjectKey, owner: &WorkOwner, present: bool) -> String {
        match owner {
            WorkOwner::ReplicaSet(set) => {
                let works = self.works_of_sets.entry(set.clone()).or_default();
                let names = works.entry(key.namespace.clone()).or_default();
                if present {
                    names.insert(key.name.clone());
                } else {
                    names.remove(&key.name);
                }
                if names.is_empty() {
                    works.remove(&key.namespace);
                }
                if works.is_empty() {
                    self.works_of_sets.remove(set);
                }
                set.namespace.clone()
            }
            WorkOwner::Tenant { namespace, .. } => {
                let works = self.works_of_tenants.entry(namespace.clone()).or_default();
                let work = (key.namespace.clone(), key.name.clone());
                if present {
                    works.insert(work);
                } else {
                    works.remove(&work);
                }
                if works.is_empty() {
                    self.works_of_tenants.remove(namespace);
                }
                namespace.clone()
            }
        }
    }

    fn apply_config(&mut self, kind: ConfigKind, watch: u64, update: Rows<ConfigRow>) -> BTreeSet<String> {
        let Some(table) = self.configs.get_mut(&kind).filter(|table| table.watch == watch) else {
            return BTreeSet::new();
        };
        let synced = matches!(update, Update::Synced);
        let mut touched: BTreeSet<_> =
            table.rows.apply(update).into_iter().map(|change| change.key.namespace).collect();
        if synced {
            let news = table.known != table.listing || table.unreadable.is_some();
            table.known.clone_from(&table.listing);
            table.unreadable = None;
            if news {
                touched.extend(self.namespaces_with_config(&kind));
            }
        }
        touched
    }

    fn apply_unreadable(&mut self, kind: ConfigKind, watch: u64, why: Unreadable) -> BTreeSet<String> {
        let Some(table) = self.configs.get_mut(&kind).filter(|table| table.watch == watch) else {
            return BTreeSet::new();
        };
        if table.unreadable.as_ref() == Some(&why) {
            return BTreeSet::new();
        }
        if why == Unreadable::Failed {
            table.unreadable = Some(why);
        } else {
            let listing = std::mem::take(&mut table.listing);
            *table = ConfigTable { watch, unreadable: Some(why), listing, ..ConfigTable::default() };
        }
        self.namespaces_with_config(&kind)
    }

    fn namespaces_with_config(&self, kind: &ConfigKind) -> BTreeSet<String> {
        let references = |record: &TenantDeploymentRecord| record.spec.config_refs.iter().any(|r| kind.is_of(r));
        let records = self.records.iter().filter(|(_, record)| references(record));
        records.map(|(key, _)| key.namespace.clone()).collect()
    }

    fn records_of_namespace(&self, namespace: &str) -> Vec<ObjectKey> {
        let names = self.namespace(namespace).into_iter().flat_map(|names| &names.records);
        names.map(|name| ObjectKey::new(namespace, name)).collect()
    }

    fn records_of_clusters<'a>(&self, clusters: impl Iterator<Item = &'a str>) -> BTreeSet<ObjectKey> {
        clusters.filter_map(|cluster| self.members.get(cluster)).flatten().cloned().collect()
    }
}

impl ConfigKind {
    /// The kind that a reference names.
    pub fn of(reference: &tenant_records_api::ConfigReference) -> Self {
        Self { group: reference.group.clone(), resource: reference.resource.clone() }
    }

    fn is_of(&self, reference: &tenant_records_api::ConfigReference) -> bool {
        self.group == reference.group && self.resource == reference.resource
    }
}
