//! What is wrong with a record or its sources, collected with exact counts.

use std::collections::{BTreeMap, BTreeSet};

use tenant_records_api::{Finding, FindingType};

const EXAMPLES: usize = 5;

/// Findings by type; each subject counts once per type.
#[derive(Debug, Default)]
pub(super) struct Findings(BTreeMap<FindingType, BTreeSet<String>>);

impl Findings {
    pub(super) fn add(&mut self, type_: FindingType, subject: impl Into<String>) {
        self.0.entry(type_).or_default().insert(subject.into());
    }

    /// The findings in the order of weight, with exact counts and a few examples.
    pub(super) fn into_list(self) -> Vec<Finding> {
        self.0.into_iter().map(|(type_, subjects)| finding(type_, &subjects)).collect()
    }
}

fn finding(type_: FindingType, subjects: &BTreeSet<String>) -> Finding {
    let examples: Vec<_> = subjects.iter().take(EXAMPLES).cloned().collect();
    let more = if subjects.len() > examples.len() { ", ..." } else { "" };
    Finding {
        summary: format!("{type_:?} ({}): {}{more}: {}", subjects.len(), examples.join(", "), meaning(type_)),
        type_,
        count: subjects.len() as u32,
        examples,
    }
}

/// What the type means and what to do, in one clause.
fn meaning(type_: FindingType) -> &'static str {
    match type_ {
        FindingType::PlacementNotFound => "no such Placement in this namespace",
        FindingType::NoDecision => "the Placement chooses no cluster; its condition PlacementSatisfied says why",
        FindingType::ClusterNotBound => "not in a cluster set that is bound to this namespace",
        FindingType::ClusterNotAccepted => "the hub doesn't accept the cluster",
        FindingType::ClusterUnavailable => "the hub can't reach the cluster; its last state is kept",
        FindingType::AddOnNotEnabled => "the add-on tenant-records isn't enabled there",
        FindingType::SourceNotFound => "no such ManifestWorkReplicaSet in this namespace",
        FindingType::ConfigNotFound => "no such configuration object, or the API server doesn't serve its kind",
        FindingType::ConfigForbidden => {
            "the hub manager may not read this kind; a hub admin can add it to the chart's configKinds"
        }
        FindingType::ConfigUnreadable => {
            "the hub manager can't read this kind at the moment; what it knew before stays"
        }
        FindingType::WorkApplyFailed => "the ManifestWork could not be applied",
        FindingType::DecisionWithoutWork => "chosen, but the ManifestWorkReplicaSet has no ManifestWork there",
        FindingType::WorkWithoutDecision => "a ManifestWork is there, but no Placement chooses the cluster",
    }
}
