//! The fold: from a record's spec and everything the index knows to what its status and pages should say.
//!
//! A pure function of the record, the index, what was written before, and the time. What only history can say (page
//! and index assignment, since when something is so, whether a cluster is held through an outage) is read back from
//! our own objects, so a restart or a change of leader changes nothing.
//!
//! ```text
//! membership: who is in ─┐
//! workload: what runs ───┼─▶ clusters: one row each ─▶ pages ─▶ status
//! config: with what ─────┘                └────── findings ──────▲
//! ```

mod clusters;
mod config;
mod findings;
mod membership;
mod pages;
mod status;
#[cfg(test)]
mod tests;
mod workload;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use tenant_records_api::digest::digest;
use tenant_records_api::{TenantDeploymentRecord, TenantDeploymentRecordPage, TenantDeploymentRecordStatus};
use tenant_records_runtime::ObjectKey;

use crate::index::rows::{ClusterFacts, ClusterMemory, ClusterNames, PageRow};
use crate::index::{ConfigKind, Index};

/// What a hub admin may set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a cluster that was unreachable must be back, and still not chosen, before it leaves a record.
    pub return_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { return_grace: Duration::from_secs(60) }
    }
}

/// What a fold reads.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub key: &'a ObjectKey,
    pub record: &'a TenantDeploymentRecord,
    pub index: &'a Index,
    /// ManagedClusters as read from the API server after the record's last fold asked for it; none when deleted.
    pub reads: &'a HashMap<String, Option<ClusterFacts>>,
    pub settings: &'a Settings,
    pub now: Timestamp,
}

/// What a record should look like, and what the next fold needs.
#[derive(Debug, Default)]
pub struct Output {
    pub status: TenantDeploymentRecordStatus,
    pub pages: Vec<TenantDeploymentRecordPage>,
    /// The digest of each page's contents, in the order of the pages.
    pub digests: Vec<String>,
    /// The clusters that concern the record.
    pub members: ClusterNames,
    /// Clusters to be read from the API server before it can be told whether they leave.
    pub reads: BTreeSet<String>,
    /// When to fold again although nothing changes.
    pub wake: Option<Timestamp>,
}

/// The kinds of configuration object that a record references.
pub fn config_kinds(record: &TenantDeploymentRecord) -> BTreeSet<ConfigKind> {
    record.spec.config_refs.iter().map(ConfigKind::of).collect()
}

/// Computes what a record should look like. The index must be synced, and the record's config kinds known.
pub fn fold(inputs: Inputs<'_>) -> Output {
    let previous = Previous::of(&inputs);
    let mut findings = findings::Findings::default();

    let membership = membership::resolve(&inputs, &previous, &mut findings);
    let workload = workload::resolve(&inputs, &membership, &previous, &mut findings);
    let config = config::resolve(&inputs, &mut findings);
    let rows = clusters::rows(&inputs, &membership, &workload, &previous, &mut findings);

    let pages = pages::arrange(&inputs, &previous, rows, workload.page, config.page);
    let digests: Vec<_> = pages.iter().map(|page| digest(&page.spec)).collect();
    let status = status::summarise(
        &inputs,
        status::Parts {
            pages: &pages,
            digests: &digests,
            placements: membership.sources,
            replica_sets: workload.sources,
            works: workload.counts,
            configs: config.sources,
            findings,
        },
    );
    Output { status, pages, digests, members: membership.concerned, reads: membership.reads, wake: membership.wake }
}

/// What was written before.
struct Previous<'a> {
    pages: Vec<(&'a str, &'a PageRow)>,
    clusters: HashMap<&'a str, &'a ClusterMemory>,
}

impl<'a> Previous<'a> {
    fn of(inputs: &Inputs<'a>) -> Self {
        let pages: Vec<_> = pages_of(inputs.index, inputs.key, inputs.record).collect();
        let clusters = pages.iter().flat_map(|(_, page)| &page.clusters);
        let clusters = clusters.map(|memory| (memory.cluster.as_str(), memory)).collect();
        Self { pages, clusters }
    }
}

/// The record's pages, sorted by name: those that it owns, and those of its naming that lost their owner.
pub fn pages_of<'a>(
    index: &'a Index,
    key: &'a ObjectKey,
    record: &'a TenantDeploymentRecord,
) -> impl Iterator<Item = (&'a str, &'a PageRow)> {
    let uid = record.metadata.uid.as_deref().unwrap_or_default();
    let stem = pages::stem(key, uid);
    let names = index.namespace(&key.namespace).into_iter().flat_map(|names| &names.pages);
    names.filter_map(move |name| {
        let page = index.pages.get(&ObjectKey::new(&key.namespace, name))?;
        let orphaned = page.owner.is_empty() && name.starts_with(&stem);
        (page.owner == uid || orphaned).then_some((name.as_str(), page.as_ref()))
    })
}
