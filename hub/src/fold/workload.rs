//! What the record's clusters run: the record's entries, resolved to sources and objects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use serde_json::Value;
use tenant_records_api::{
    FindingType, Manifest, ManifestWorkCounts, ManifestWorkReplicaSetSource, ObjectIdentity, ResolvedObject,
    ResolvedWorkload, RowWork, SourceKind, WorkloadEntry, WorkloadSource,
};
use tenant_records_runtime::ObjectKey;

use super::findings::Findings;
use super::membership::{Membership, decisions};
use super::{Inputs, Previous};
use crate::index::rows::{ConditionStatus, ManifestRow, ReplicaSetRow, WorkOwner, WorkRow, WorkloadKey, matches};

/// What the clusters run.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    pub(super) page: WorkloadPage,
    pub(super) sources: Vec<ManifestWorkReplicaSetSource>,
    pub(super) counts: ManifestWorkCounts,
    /// Per cluster: the workload's index, and the work that carries it, where one should or does.
    pub(super) works: HashMap<String, Vec<(u32, Option<RowWork>)>>,
    /// Inline entries: index and the one cluster that it is narrowed to.
    pub(super) inline: Vec<(u32, Option<String>)>,
}

/// The entries and each distinct manifest once.
#[derive(Debug, Default)]
pub(super) struct WorkloadPage {
    pub(super) workload: Vec<ResolvedWorkload>,
    pub(super) objects: Vec<ResolvedObject>,
}

/// An entry with one of its sources, before indices are given.
struct Part {
    key: WorkloadKey,
    manifests: Vec<ManifestRow>,
    /// Per cluster, the work that carries it.
    works: BTreeMap<String, Option<RowWork>>,
    /// For inline entries, the one cluster that it is narrowed to.
    inline: Option<Option<String>>,
}

pub(super) fn resolve(
    inputs: &Inputs<'_>,
    membership: &Membership,
    previous: &Previous<'_>,
    findings: &mut Findings,
) -> Resolution {
    let mut resolution = Resolution::default();
    let mut parts = Vec::new();
    for entry in &inputs.record.spec.workload {
        if entry.manifest_work_replica_set_ref.is_some() {
            for (name, set) in referenced_sets(inputs, entry, findings) {
                resolution.sources.push(set_source(name, set));
                parts.push(set_part(inputs, membership, entry, name, set, findings));
            }
        } else if entry.manifest_work_selector.is_some() {
            parts.extend(label_parts(inputs, membership, entry));
        } else {
            parts.push(inline_part(inputs, entry));
        }
    }
    resolution.sources.sort_by(|a, b| a.name.cmp(&b.name));
    resolution.sources.dedup();
    count_works(inputs, &parts, &mut resolution.counts, findings);
    index_parts(parts, previous, &mut resolution);
    resolution
}

fn referenced_sets<'a>(
    inputs: &Inputs<'a>,
    entry: &'a WorkloadEntry,
    findings: &mut Findings,
) -> Vec<(&'a str, &'a ReplicaSetRow)> {
    let Some(reference) = &entry.manifest_work_replica_set_ref else { return Vec::new() };
    let namespace = &inputs.key.namespace;
    let index = inputs.index;
    let get = |name: &str| index.replica_sets.get(&ObjectKey::new(namespace, name)).map(AsRef::as_ref);
    if let Some(name) = &reference.name {
        let set = get(name);
        if set.is_none() {
            findings.add(FindingType::SourceNotFound, name);
        }
        return set.map(|set| (name.as_str(), set)).into_iter().collect();
    }
    let Some(selector) = &reference.selector else { return Vec::new() };
    let names = index.namespace(namespace).into_iter().flat_map(|names| &names.replica_sets);
    let sets = names.filter_map(|name| get(name).map(|set| (name.as_str(), set)));
    let sets: Vec<_> = sets.filter(|(_, set)| matches(selector, &set.labels)).collect();
    if sets.is_empty() {
        findings.add(FindingType::SourceNotFound, format!("{} by selector", entry.name));
    }
    sets
}

fn set_source(name: &str, set: &ReplicaSetRow) -> ManifestWorkReplicaSetSource {
    ManifestWorkReplicaSetSource {
        name: name.to_owned(),
        applied: set.applied,
        available: set.available,
        total: set.total,
        rolled_out: set.rolled_out,
    }
}

fn set_part(
    inputs: &Inputs<'_>,
    membership: &Membership,
    entry: &WorkloadEntry,
    name: &str,
    set: &ReplicaSetRow,
    findings: &mut Findings,
) -> Part {
    let chosen: BTreeSet<_> = set.placements.iter().flat_map(|p| decisions(inputs, p).into_keys()).collect();
    let made: BTreeMap<_, _> = inputs.index.works_of_set(&ObjectKey::new(&inputs.key.namespace, name)).collect();
    let mut works = BTreeMap::new();
    for (cluster, member) in &membership.members {
        match (made.get(cluster), chosen.contains(cluster)) {
            (Some(work), true) => {
                works.insert(cluster.clone(), row_work(inputs, cluster, work));
            }
            (Some(work), false) => {
                works.insert(cluster.clone(), row_work(inputs, cluster, work));
                if member.held.is_none() && !membership.reads.contains(cluster) {
                    findings.add(FindingType::WorkWithoutDecision, format!("{cluster}/{work}"));
                }
            }
            (None, true) => {
                works.insert(cluster.clone(), None);
                findings.add(FindingType::DecisionWithoutWork, format!("{cluster} ({name})"));
            }
            (None, false) => {}
        }
    }
    let source = WorkloadSource { kind: SourceKind::ManifestWorkReplicaSet, name: name.to_owned() };
    Part { key: (entry.name.clone(), source), manifests: set.manifests.to_vec(), works, inline: None }
}

/// One part per name of a labelled work; works of one name on several clusters are one source.
fn label_parts(inputs: &Inputs<'_>, membership: &Membership, entry: &WorkloadEntry) -> Vec<Part> {
    let Some(selector) = &entry.manifest_work_selector else { return Vec::new() };
    let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
    for (cluster, name) in inputs.index.works_of_tenant(&inputs.key.namespace) {
        let Some(work) = inputs.index.work(cluster, name) else { continue };
        let WorkOwner::Tenant { labels, manifests, .. } = &work.owner else { continue };
        if !matches(selector, labels) || !membership.members.contains_key(cluster) {
            continue;
        }
        let part = parts.entry(name).or_insert_with(|| {
            let source = WorkloadSource { kind: SourceKind::ManifestWork, name: name.clone() };
            Part { key: (entry.name.clone(), source), manifests: Vec::new(), works: BTreeMap::new(), inline: None }
        });
        part.manifests.extend(manifests.iter().cloned());
        part.works.insert(cluster.clone(), Some(to_row_work(name, work)));
    }
    parts.into_values().collect()
}

fn inline_part(inputs: &Inputs<'_>, entry: &WorkloadEntry) -> Part {
    let given = entry.manifest.iter().chain(entry.manifests.iter().flatten());
    let manifests = given.filter_map(|manifest| ManifestRow::of(&in_namespace(&manifest.0, &inputs.key.namespace)));
    let source = WorkloadSource { kind: SourceKind::Inline, name: String::new() };
    Part {
        key: (entry.name.clone(), source),
        manifests: manifests.collect(),
        works: BTreeMap::new(),
        inline: Some(entry.cluster_name.clone()),
    }
}

/// An inline manifest without a namespace is in the record's.
fn in_namespace(manifest: &Value, namespace: &str) -> Value {
    let mut manifest = manifest.clone();
    let cluster_scoped = manifest["kind"] == "Namespace" && manifest["apiVersion"] == "v1";
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut)
        && !cluster_scoped
    {
        metadata.entry("namespace").or_insert_with(|| namespace.into());
    }
    manifest
}

fn row_work(inputs: &Inputs<'_>, cluster: &str, name: &str) -> Option<RowWork> {
    inputs.index.work(cluster, name).map(|work| to_row_work(name, work))
}

fn to_row_work(name: &str, work: &WorkRow) -> RowWork {
    RowWork {
        name: name.to_owned(),
        applied: work.applied.as_str().to_owned(),
        available: work.available.as_str().to_owned(),
    }
}

fn count_works(inputs: &Inputs<'_>, parts: &[Part], counts: &mut ManifestWorkCounts, findings: &mut Findings) {
    let works: BTreeSet<(&str, &str)> = parts
        .iter()
        .flat_map(|part| &part.works)
        .filter_map(|(cluster, work)| Some((cluster.as_str(), work.as_ref()?.name.as_str())))
        .collect();
    for (cluster, name) in works {
        let Some(work) = inputs.index.work(cluster, name) else { continue };
        counts.total += 1;
        match work.applied {
            ConditionStatus::True => counts.applied += 1,
            ConditionStatus::False => {
                counts.failed += 1;
                findings.add(FindingType::WorkApplyFailed, format!("{cluster}/{name}"));
            }
            ConditionStatus::Unknown => {}
        }
    }
}

fn index_parts(parts: Vec<Part>, previous: &Previous<'_>, resolution: &mut Resolution) {
    let known = previous.pages.iter().flat_map(|(_, page)| page.workload.iter().cloned());
    let entries = Indices::assign(known, parts.iter().map(|part| part.key.clone()));

    let known = previous.pages.iter().flat_map(|(_, page)| page.objects.iter());
    let manifests = parts.iter().flat_map(|part| &part.manifests);
    let objects = Indices::assign(
        known.map(|(object, digest, index)| ((object.clone(), digest.clone()), *index)),
        manifests.map(object_key),
    );

    let mut resolved: BTreeMap<u32, ResolvedObject> = BTreeMap::new();
    for part in parts {
        let index = entries.of(&part.key);
        let mut indices = Vec::new();
        for manifest in &part.manifests {
            let object = objects.of(&object_key(manifest));
            resolved.entry(object).or_insert_with(|| resolved_object(object, manifest));
            indices.push(object);
        }
        indices.sort_unstable();
        indices.dedup();
        for (cluster, work) in part.works {
            resolution.works.entry(cluster).or_default().push((index, work));
        }
        resolution.inline.extend(part.inline.map(|cluster| (index, cluster)));
        let (entry, source) = part.key;
        resolution.page.workload.push(ResolvedWorkload { index, entry, source, objects: indices });
    }
    resolution.page.workload.sort_by_key(|workload| workload.index);
    resolution.page.objects = resolved.into_values().collect();
}

fn object_key(manifest: &ManifestRow) -> (ObjectIdentity, String) {
    (manifest.object.clone(), manifest.digest.clone())
}

fn resolved_object(index: u32, row: &ManifestRow) -> ResolvedObject {
    let manifest = row.json.as_deref().and_then(|json| serde_json::from_str(json).ok()).map(Manifest);
    ResolvedObject {
        index,
        object: row.object.clone(),
        digest: row.digest.clone(),
        size: row.size as u32,
        omitted: manifest.is_none(),
        manifest,
    }
}

/// Numbers for keys: a key keeps its number while it stays, and a new one takes the lowest that is free.
struct Indices<K>(HashMap<K, u32>);

impl<K: Hash + Eq> Indices<K> {
    fn assign(known: impl Iterator<Item = (K, u32)>, keys: impl Iterator<Item = K>) -> Self {
        let known: HashMap<K, u32> = known.collect();
        let (mut assigned, mut new, mut used) = (HashMap::new(), Vec::new(), BTreeSet::new());
        for key in keys {
            match known.get(&key) {
                _ if assigned.contains_key(&key) => {}
                // Half a write, or somebody's edit, may have left a number twice: the first keeps it.
                Some(&index) if used.insert(index) => {
                    assigned.insert(key, index);
                }
                _ => new.push(key),
            }
        }
        let mut free = (0..).filter(|index| !used.contains(index));
        for key in new {
            assigned.entry(key).or_insert_with(|| free.next().expect("there are more numbers than keys"));
        }
        Self(assigned)
    }

    fn of(&self, key: &K) -> u32 {
        self.0[key]
    }
}
