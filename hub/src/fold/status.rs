//! The record's status, made from its pages and sources.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use tenant_records_api::digest::digest;
use tenant_records_api::{
    Attention, ClusterCounts, ClusterRow, ClusterSetBindingSource, ConfigSource, Finding, FindingType,
    ManifestWorkCounts, ManifestWorkReplicaSetSource, PageSummary, Phase, PlacementSource, RecordSummary, Sources,
    TenantDeploymentRecordPage, TenantDeploymentRecordStatus, condition, reason,
};
use tenant_records_runtime::ObjectKey;

use super::Inputs;
use super::findings::Findings;

/// Entries of each list of sources; counts stay exact.
const SOURCES: usize = 50;
/// Entries of the attention list.
const ATTENTION: usize = 20;
/// Names of clusters in the root.
const NAMES: usize = 1000;
/// Clusters named in a condition's message.
const NAMED: usize = 3;

/// What the status is made from.
pub(super) struct Parts<'a> {
    pub(super) pages: &'a [TenantDeploymentRecordPage],
    /// Of each page's contents.
    pub(super) digests: &'a [String],
    pub(super) placements: Vec<PlacementSource>,
    pub(super) replica_sets: Vec<ManifestWorkReplicaSetSource>,
    pub(super) works: ManifestWorkCounts,
    pub(super) configs: Vec<ConfigSource>,
    pub(super) findings: Findings,
}

pub(super) fn summarise(inputs: &Inputs<'_>, parts: Parts<'_>) -> TenantDeploymentRecordStatus {
    let rows: Vec<&ClusterRow> = parts.pages.iter().flat_map(|page| &page.spec.clusters).collect();
    let clusters = count(&rows);
    let findings = parts.findings.into_list();
    let mut names: Vec<_> =
        rows.iter().filter(|row| row.phase != Phase::Leaving).map(|row| row.cluster_name.clone()).collect();
    names.sort_unstable();
    let cluster_names_truncated = names.len() > NAMES;
    names.truncate(NAMES);
    let sources = Sources {
        cluster_set_bindings: bounded(bindings(inputs)),
        placements: bounded(parts.placements),
        manifest_work_replica_sets: bounded(parts.replica_sets),
        manifest_works: parts.works,
        configs: bounded(parts.configs),
    };
    let pages: Vec<_> = parts.pages.iter().zip(parts.digests).map(page_summary).collect();
    TenantDeploymentRecordStatus {
        observed_generation: inputs.record.metadata.generation.unwrap_or_default(),
        conditions: conditions(inputs, &rows, &clusters, &findings),
        summary: RecordSummary {
            clusters: clusters.total,
            healthy: format!("{}/{}", clusters.healthy, clusters.total),
            attention: rows.iter().filter(|row| needs_attention(row.phase)).count() as u32,
            current: format!("{}/{}", clusters.current, clusters.total),
        },
        cluster_names: names,
        cluster_names_truncated,
        clusters,
        inputs_digest: digest(&(&inputs.record.spec, &sources, parts.digests)),
        sources,
        attention: attention(&rows),
        findings,
        pages,
    }
}

fn bounded<T>(mut list: Vec<T>) -> Vec<T> {
    list.truncate(SOURCES);
    list
}

fn bindings(inputs: &Inputs<'_>) -> Vec<ClusterSetBindingSource> {
    let namespace = &inputs.key.namespace;
    let names = inputs.index.namespace(namespace).into_iter().flat_map(|names| &names.bindings);
    let bound = |name: &String| inputs.index.bindings.get(&ObjectKey::new(namespace, name)).is_some_and(|b| b.bound);
    names.map(|name| ClusterSetBindingSource { name: name.clone(), bound: bound(name) }).collect()
}

fn page_summary((page, digest): (&TenantDeploymentRecordPage, &String)) -> PageSummary {
    PageSummary {
        name: page.metadata.name.clone().unwrap_or_default(),
        contents: page.spec.contents,
        count: page.spec.count,
        digest: digest.clone(),
    }
}

fn count(rows: &[&ClusterRow]) -> ClusterCounts {
    let mut counts = ClusterCounts::default();
    for row in rows {
        match row.phase {
            Phase::Leaving => {
                counts.leaving += 1;
                continue;
            }
            Phase::Healthy | Phase::NotInspected => counts.healthy += 1,
            Phase::Progressing => counts.progressing += 1,
            Phase::Drifted => counts.drifted += 1,
            Phase::Missing => counts.missing += 1,
            Phase::Failed => counts.failed += 1,
            Phase::Unknown => counts.unknown += 1,
        }
        counts.total += 1;
        counts.delivered += u32::from(row.slice.as_ref().is_some_and(|slice| slice.delivered));
        counts.reported += u32::from(row.report.is_some());
        counts.current += u32::from(is_current(row));
    }
    counts
}

fn is_current(row: &ClusterRow) -> bool {
    row.report.as_ref().is_some_and(|report| report.current)
}

fn needs_attention(phase: Phase) -> bool {
    matches!(phase, Phase::Failed | Phase::Missing | Phase::Drifted | Phase::Unknown)
}

/// The worst rows, in an order that depends on nothing but the rows.
fn attention(rows: &[&ClusterRow]) -> Vec<Attention> {
    let mut rows: Vec<_> = rows.iter().filter(|row| needs_attention(row.phase)).collect();
    rows.sort_by(|a, b| (a.phase, &a.cluster_name).cmp(&(b.phase, &b.cluster_name)));
    rows.truncate(ATTENTION);
    let item = |row: &&&ClusterRow| Attention {
        summary: format!("{} {}: {}", row.cluster_name, row.phase.as_str(), explanation(&row.reason)),
        cluster_name: row.cluster_name.clone(),
        phase: row.phase,
        reason: row.reason.clone(),
        since: row.since.clone(),
        ..Attention::default()
    };
    rows.iter().map(item).collect()
}

fn explanation(reason: &str) -> &str {
    match reason {
        reason::NEVER_REPORTED => "the agent there has not reported yet",
        reason::CLUSTER_UNAVAILABLE => "the hub can't reach the cluster",
        reason::REPORT_STALE => "the agent's newest report isn't about what the cluster holds now",
        other => other,
    }
}

fn conditions(
    inputs: &Inputs<'_>,
    rows: &[&ClusterRow],
    counts: &ClusterCounts,
    findings: &[Finding],
) -> Vec<Condition> {
    let mut verdicts = vec![
        (condition::SOURCES_RESOLVED, sources_resolved(findings)),
        (condition::DISTRIBUTED, distributed(rows, counts)),
        (condition::REPORTED, reported(rows, counts)),
        (condition::HEALTHY, healthy(counts)),
    ];
    let wrong: Vec<_> = verdicts.iter().filter(|(_, verdict)| !verdict.holds).collect();
    let ready = match wrong.first() {
        None => Verdict::holds("Ready", "everything is in place, current and healthy"),
        Some((_, first)) => {
            let messages: Vec<_> = wrong.iter().map(|(type_, v)| format!("{type_}: {}", v.message)).collect();
            Verdict::fails(&first.reason, messages.join("; "))
        }
    };
    verdicts.insert(0, (condition::READY, ready));
    let before = inputs.record.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    verdicts.into_iter().map(|(type_, verdict)| verdict.into_condition(type_, before, inputs)).collect()
}

/// What a condition says.
struct Verdict {
    holds: bool,
    reason: String,
    message: String,
}

impl Verdict {
    fn holds(reason: &str, message: impl Into<String>) -> Self {
        Self { holds: true, reason: reason.to_owned(), message: message.into() }
    }

    fn fails(reason: &str, message: impl Into<String>) -> Self {
        Self { holds: false, reason: reason.to_owned(), message: message.into() }
    }

    /// The condition; its transition time moves only when the status does.
    fn into_condition(self, type_: &str, before: &[Condition], inputs: &Inputs<'_>) -> Condition {
        let status = if self.holds { "True" } else { "False" };
        let same = before.iter().find(|c| c.type_ == type_ && c.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: self.reason,
            message: self.message,
            observed_generation: inputs.record.metadata.generation,
            last_transition_time: same.map_or(Time(inputs.now), |c| c.last_transition_time.clone()),
        }
    }
}

fn sources_resolved(findings: &[Finding]) -> Verdict {
    let about_sources = |finding: &&Finding| {
        matches!(
            finding.type_,
            FindingType::PlacementNotFound
                | FindingType::NoDecision
                | FindingType::ClusterNotBound
                | FindingType::SourceNotFound
                | FindingType::ConfigNotFound
                | FindingType::ConfigForbidden
                | FindingType::ConfigUnreadable
        )
    };
    let wrong: Vec<_> = findings.iter().filter(about_sources).collect();
    match wrong.first() {
        None => Verdict::holds("Resolved", "every reference names something that exists"),
        Some(first) => {
            let summaries: Vec<_> = wrong.iter().map(|finding| finding.summary.as_str()).collect();
            Verdict::fails(&format!("{:?}", first.type_), summaries.join("; "))
        }
    }
}

/// A record over nothing isn't well: somebody expects it to be somewhere.
fn no_clusters() -> Verdict {
    Verdict::fails("NoClusters", "the record is over no cluster")
}

fn distributed(rows: &[&ClusterRow], counts: &ClusterCounts) -> Verdict {
    if counts.total == 0 {
        return no_clusters();
    }
    let missing = counts.total - counts.delivered;
    if missing == 0 {
        return Verdict::holds("Delivered", "every cluster holds its newest slice");
    }
    let without = rows.iter().filter(|row| !row.slice.as_ref().is_some_and(|slice| slice.delivered));
    let message = of_clusters(missing, counts.total, "doesn't hold its newest slice", "don't hold their newest slice");
    Verdict::fails("NotDelivered", format!("{message}: {}", named(without, |row| row.cluster_name.clone())))
}

fn reported(rows: &[&ClusterRow], counts: &ClusterCounts) -> Verdict {
    if counts.total == 0 {
        return no_clusters();
    }
    let missing = counts.total - counts.current;
    if missing == 0 {
        return Verdict::holds("Current", "every cluster has a current report");
    }
    let never = counts.total - counts.reported;
    let why = if never == missing { reason::NEVER_REPORTED } else { "Stale" };
    let message = of_clusters(missing, counts.total, "has no current report", "have no current report");
    let without = rows.iter().filter(|row| row.phase != Phase::Leaving && !is_current(row));
    let with_reason = |row: &ClusterRow| format!("{} ({})", row.cluster_name, row.reason);
    Verdict::fails(why, format!("{message}: {}", named(without, with_reason)))
}

fn healthy(counts: &ClusterCounts) -> Verdict {
    if counts.total == 0 {
        return no_clusters();
    }
    let unwell = counts.total - counts.healthy;
    if unwell == 0 {
        return Verdict::holds("Healthy", "every cluster is healthy");
    }
    let phases = [
        (counts.failed, Phase::Failed),
        (counts.missing, Phase::Missing),
        (counts.drifted, Phase::Drifted),
        (counts.unknown, Phase::Unknown),
        (counts.progressing, Phase::Progressing),
    ];
    let phases: Vec<_> =
        phases.iter().filter(|(n, _)| *n > 0).map(|(n, phase)| format!("{n} {}", phase.as_str())).collect();
    let why = if unwell == counts.progressing { "Progressing" } else { "Attention" };
    Verdict::fails(why, format!("{unwell} of {} clusters: {}", counts.total, phases.join(", ")))
}

fn of_clusters(n: u32, total: u32, one: &str, many: &str) -> String {
    format!("{n} of {total} clusters {}", if n == 1 { one } else { many })
}

/// The first few clusters in the order of names.
fn named<'a>(rows: impl Iterator<Item = &'a &'a ClusterRow>, say: impl Fn(&ClusterRow) -> String) -> String {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    let more = if rows.len() > NAMED { ", ..." } else { "" };
    let names: Vec<_> = rows.iter().take(NAMED).map(|row| say(row)).collect();
    names.join(", ") + more
}
