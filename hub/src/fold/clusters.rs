//! One row per cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tenant_records_api::{ClusterRow, FindingType, Phase, RowCluster, RowWorkload, reason};
use tenant_records_runtime::ObjectKey;

use super::findings::Findings;
use super::membership::{Member, Membership};
use super::workload::Resolution;
use super::{Inputs, Previous};
use crate::index::rows::{ClusterFacts, ConditionStatus};

/// The rows, sorted by cluster.
pub(super) fn rows(
    inputs: &Inputs<'_>,
    membership: &Membership,
    workload: &Resolution,
    previous: &Previous<'_>,
    findings: &mut Findings,
) -> Vec<ClusterRow> {
    let members = membership.members.iter();
    members.map(|(cluster, member)| row(inputs, cluster, member, workload, previous, findings)).collect()
}

fn row(
    inputs: &Inputs<'_>,
    cluster: &str,
    member: &Member,
    workload: &Resolution,
    previous: &Previous<'_>,
    findings: &mut Findings,
) -> ClusterRow {
    let facts = inputs.index.cluster(cluster);
    let workload = row_workload(cluster, workload);
    let wrong = wrong(inputs, cluster, facts, &workload);
    for type_ in wrong.iter().filter(|type_| **type_ != FindingType::WorkApplyFailed) {
        findings.add(*type_, cluster);
    }
    let (phase, reason) = if facts.is_some_and(ClusterFacts::is_reachable) {
        (Phase::Unknown, reason::NEVER_REPORTED)
    } else {
        (Phase::Unknown, reason::CLUSTER_UNAVAILABLE)
    };
    let memory = previous.clusters.get(cluster).filter(|memory| memory.phase == phase && memory.reason == reason);
    ClusterRow {
        cluster_name: cluster.to_owned(),
        placements: member.placements.clone(),
        explicit: member.explicit,
        held: member.held.clone(),
        cluster: row_cluster(inputs, facts),
        workload,
        phase,
        reason: reason.to_owned(),
        since: memory.and_then(|memory| memory.since.clone()).or(Some(Time(inputs.now))),
        findings: wrong,
        ..ClusterRow::default()
    }
}

fn row_cluster(inputs: &Inputs<'_>, facts: Option<&ClusterFacts>) -> RowCluster {
    let Some(facts) = facts else {
        return RowCluster { available: ConditionStatus::Unknown.as_str().to_owned(), ..RowCluster::default() };
    };
    let sets = inputs.index.bound_sets(&inputs.key.namespace);
    let sets = sets.filter(|(name, set)| set.contains(name, &facts.labels));
    RowCluster {
        available: facts.available.as_str().to_owned(),
        kubernetes_version: facts.kubernetes_version.clone(),
        cluster_sets: sets.map(|(name, _)| name.to_owned()).collect(),
    }
}

fn row_workload(cluster: &str, workload: &Resolution) -> Vec<RowWorkload> {
    let works = workload.works.get(cluster).into_iter().flatten();
    let works = works.map(|(index, work)| RowWorkload { index: *index, work: work.clone(), objects: Vec::new() });
    let here = |only: &Option<String>| only.as_deref().is_none_or(|only| only == cluster);
    let inline = workload.inline.iter().filter(|(_, only)| here(only));
    let inline = inline.map(|(index, _)| RowWorkload { index: *index, ..RowWorkload::default() });
    let mut all: Vec<_> = works.chain(inline).collect();
    all.sort_by_key(|workload| workload.index);
    all
}

/// What is wrong with the cluster itself and this add-on there.
fn wrong(
    inputs: &Inputs<'_>,
    cluster: &str,
    facts: Option<&ClusterFacts>,
    workload: &[RowWorkload],
) -> Vec<FindingType> {
    let mut wrong = Vec::new();
    if facts.is_some_and(|facts| !facts.accepted) {
        wrong.push(FindingType::ClusterNotAccepted);
    }
    if !facts.is_some_and(ClusterFacts::is_reachable) {
        wrong.push(FindingType::ClusterUnavailable);
    }
    let addon = inputs.index.addons.get(&ObjectKey::new(cluster, tenant_records_api::ADDON_NAME));
    if addon.is_none_or(|addon| addon.deleting) {
        wrong.push(FindingType::AddOnNotEnabled);
    }
    let failed = |w: &RowWorkload| w.work.as_ref().is_some_and(|w| w.applied == ConditionStatus::False.as_str());
    if workload.iter().any(failed) {
        wrong.push(FindingType::WorkApplyFailed);
    }
    wrong
}
