//! Who is in the record.
//!
//! A cluster is in when a Placement or the record's `clusterNames` chooses it. One that nothing chooses any more is
//! not simply out: OCM taints a cluster that it can't reach, and Placements then drop it. Leaving is not vanishing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tenant_records_api::{FindingType, Held, PlacementSource, RowPlacement};
use tenant_records_runtime::ObjectKey;

use super::findings::Findings;
use super::{Inputs, Previous};
use crate::index::rows::{ClusterFacts, ClusterNames, matches};

/// Who is in the record.
#[derive(Debug, Default)]
pub(super) struct Membership {
    pub(super) members: BTreeMap<String, Member>,
    /// Every cluster whose change may change the record.
    pub(super) concerned: ClusterNames,
    pub(super) sources: Vec<PlacementSource>,
    pub(super) reads: BTreeSet<String>,
    pub(super) wake: Option<Timestamp>,
}

/// Why a cluster is in the record.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Member {
    pub(super) placements: Vec<RowPlacement>,
    pub(super) explicit: bool,
    pub(super) held: Option<Held>,
}

/// What becomes of a cluster that nothing chooses any more.
#[derive(Debug, PartialEq)]
enum Fate {
    /// It stays for now: whether it can be reached must be read first.
    Read,
    /// It stays: it can't be reached, or isn't back for long enough.
    Held { held: Held, until: Option<Timestamp> },
    /// It is out.
    Out,
}

pub(super) fn resolve(inputs: &Inputs<'_>, previous: &Previous<'_>, findings: &mut Findings) -> Membership {
    let mut membership = Membership::default();
    choose_by_placements(inputs, &mut membership, findings);
    choose_by_name(inputs, &mut membership, findings);
    for (&cluster, memory) in &previous.clusters {
        if membership.members.contains_key(cluster) {
            continue;
        }
        let held = match fate(inputs, cluster, memory.held.as_ref()) {
            Fate::Out => continue,
            Fate::Read => {
                membership.reads.insert(cluster.to_owned());
                memory.held.clone()
            }
            Fate::Held { held, until } => {
                membership.wake = [membership.wake, until].into_iter().flatten().min();
                Some(held)
            }
        };
        membership.members.insert(cluster.to_owned(), Member { held, ..Member::default() });
    }
    membership.concerned.extend(membership.members.keys().cloned());
    membership
}

fn choose_by_placements(inputs: &Inputs<'_>, membership: &mut Membership, findings: &mut Findings) {
    let namespace = &inputs.key.namespace;
    for name in placement_names(inputs, findings) {
        let Some(placement) = inputs.index.placements.get(&ObjectKey::new(namespace, &name)) else {
            findings.add(FindingType::PlacementNotFound, &name);
            membership.sources.push(PlacementSource {
                name,
                reason: "NotFound".to_owned(),
                ..PlacementSource::default()
            });
            continue;
        };
        let decisions = decisions(inputs, &name);
        let groups: BTreeSet<_> = decisions.values().collect();
        membership.sources.push(PlacementSource {
            selected: decisions.len() as u32,
            satisfied: placement.satisfied,
            reason: placement.reason.clone(),
            decision_groups: groups.len() as u32,
            name: name.clone(),
        });
        if decisions.is_empty() {
            findings.add(FindingType::NoDecision, &name);
        }
        for (cluster, decision_group) in decisions {
            let member = membership.members.entry(cluster).or_default();
            member.placements.push(RowPlacement { name: name.clone(), decision_group });
        }
    }
}

/// The names of the referenced Placements, each once, sorted.
fn placement_names(inputs: &Inputs<'_>, findings: &mut Findings) -> BTreeSet<String> {
    let namespace = &inputs.key.namespace;
    let existing = inputs.index.namespace(namespace).into_iter().flat_map(|names| &names.placements);
    let mut names = BTreeSet::new();
    for (number, reference) in inputs.record.spec.placement_refs.iter().enumerate() {
        names.extend(reference.name.clone());
        let Some(selector) = &reference.selector else { continue };
        let mut selected = existing.clone().filter(|name| {
            let placement = inputs.index.placements.get(&ObjectKey::new(namespace, *name));
            placement.is_some_and(|placement| matches(selector, &placement.labels))
        });
        let first = selected.next();
        if first.is_none() {
            findings.add(FindingType::PlacementNotFound, format!("placementRefs[{number}] by selector"));
        }
        names.extend(first.into_iter().chain(selected).cloned());
    }
    names
}

/// The clusters that a Placement chooses, with their decision groups.
pub(super) fn decisions(inputs: &Inputs<'_>, placement: &str) -> BTreeMap<String, i32> {
    let namespace = &inputs.key.namespace;
    let pages = inputs.index.namespace(namespace).into_iter().flat_map(|names| &names.decisions);
    let rows = pages.filter_map(|name| inputs.index.decisions.get(&ObjectKey::new(namespace, name)));
    let rows = rows.filter(|decision| decision.placement == placement);
    rows.flat_map(|decision| decision.clusters.iter().map(|cluster| (cluster.clone(), decision.group))).collect()
}

fn choose_by_name(inputs: &Inputs<'_>, membership: &mut Membership, findings: &mut Findings) {
    for cluster in &inputs.record.spec.cluster_names {
        membership.concerned.insert(cluster.clone());
        if is_bound(inputs, cluster) {
            membership.members.entry(cluster.clone()).or_default().explicit = true;
        } else {
            findings.add(FindingType::ClusterNotBound, cluster);
        }
    }
}

/// Whether the cluster is in a set that is bound to the record's namespace.
fn is_bound(inputs: &Inputs<'_>, cluster: &str) -> bool {
    let Some(facts) = inputs.index.cluster(cluster) else { return false };
    inputs.index.bound_sets(&inputs.key.namespace).any(|(name, set)| set.contains(name, &facts.labels))
}

fn fate(inputs: &Inputs<'_>, cluster: &str, held: Option<&Held>) -> Fate {
    let Some(facts) = inputs.index.cluster(cluster).filter(|facts| !facts.deleting) else { return Fate::Out };
    if !is_bound(inputs, cluster) {
        return Fate::Out;
    }
    let held = match (held, inputs.reads.get(cluster)) {
        (Some(held), _) => held.clone(),
        (None, None) => return Fate::Read,
        (None, Some(Some(ClusterFacts { tainted: true, .. }))) => {
            Held { since: Some(Time(inputs.now)), returned: None }
        }
        (None, Some(_)) => return Fate::Out,
    };
    if !facts.is_reachable() {
        return Fate::Held { held: Held { returned: None, ..held }, until: None };
    }
    let returned = held.returned.as_ref().map_or(inputs.now, |time| time.0);
    let grace = SignedDuration::try_from(inputs.settings.return_grace).unwrap_or(SignedDuration::MAX);
    match returned.saturating_add(grace) {
        Ok(until) if until > inputs.now => {
            Fate::Held { held: Held { returned: Some(Time(returned)), ..held }, until: Some(until) }
        }
        _ => Fate::Out,
    }
}
