//! What to write so that an add-on's deploy works on a cluster are as they should be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tenant_records_api::ocm::{ANNOTATION_CONFIG_SPEC_HASH, LABEL_ADDON_NAME};

use super::deployed::{Applied, DeployedWork, Ownership};
use super::manifest::Manifest;
use super::spec::{ManifestConfig, WorkSpec};
use super::split::{Present, Split, split};
use super::{WorksError, deploy_work_name};
use crate::change::{ANNOTATION_MANAGER, Change, Owner, annotation, label, seen};

/// What an add-on wants to have on a cluster.
#[derive(Clone, Debug)]
pub struct DeployRequest<'r> {
    /// On whose behalf.
    pub owner: Owner<'r>,
    /// See [`config_spec_hash_annotation`](crate::config::config_spec_hash_annotation).
    pub config_spec_hash: Option<String>,
    /// The manifests.
    pub manifests: Vec<Manifest>,
    /// What the work agent should do with them beyond applying them.
    pub manifest_configs: Vec<ManifestConfig>,
}

/// What to write, and what is known about the works that stay.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The writes, in this order: a manifest enters its new work before it leaves its old one.
    pub changes: Vec<Change>,
    /// What the work agent says about the works that are wanted, one entry each.
    pub applied: Vec<Applied>,
}

/// Compares what is wanted with the works that exist. `works` are all works that carry the add-on's label in the cluster's
/// namespace; those without the name of a deploy work are left alone.
///
/// # Errors
/// When OCM would refuse the works, or when one that is in the way isn't ours.
pub fn plan(request: &DeployRequest<'_>, works: &[Arc<DeployedWork>]) -> Result<Plan, WorksError> {
    let existing = Existing::sort(request, works);
    let present: Present<'_> = existing.ours.iter().map(|(index, work)| (*index, work.keys.as_slice())).collect();
    let split = split(request.owner.addon, &request.manifests, &present, &existing.leaving)?;
    existing.check(request, &split)?;

    let mut writes = Vec::new();
    let mut deletions = Vec::new();
    let mut applied = Vec::new();
    for (index, members) in &split {
        let name = deploy_work_name(request.owner.addon, *index);
        match (existing.ours.get(index), members.as_slice()) {
            (None, members) => {
                writes.push((0, Change::Create { object: request.work(&name, members), name }));
                applied.push(Applied::Unknown);
            }
            (Some(work), []) => deletions.push(Change::delete(&work.metadata)),
            (Some(work), members) => {
                if let Some(patch) = request.patch(work, members) {
                    let gains = members.iter().any(|position| !work.keys.contains(&request.manifests[*position].key));
                    writes.push((if gains { 1 } else { 2 }, Change::Update { name, patch }));
                }
                applied.push(work.applied().clone());
            }
        }
    }
    writes.sort_by_key(|(order, _)| *order);
    let changes = writes.into_iter().map(|(_, change)| change).chain(deletions).collect();
    Ok(Plan { changes, applied })
}

/// The works that have the name of a deploy work, by index.
struct Existing<'w> {
    ours: BTreeMap<u32, &'w DeployedWork>,
    /// Ours, but about to go.
    leaving: BTreeSet<u32>,
    in_the_way: BTreeMap<u32, (Ownership, &'w DeployedWork)>,
}

impl<'w> Existing<'w> {
    fn sort(request: &DeployRequest<'_>, works: &'w [Arc<DeployedWork>]) -> Self {
        let mut existing = Self { ours: BTreeMap::new(), leaving: BTreeSet::new(), in_the_way: BTreeMap::new() };
        for work in works {
            let Some(index) = work.index(request.owner.addon) else { continue };
            let ownership = work.ownership(&request.owner);
            match ownership {
                Ownership::Ours | Ownership::Inherited if !work.is_deleting() => {
                    existing.ours.insert(index, work);
                }
                Ownership::Ours | Ownership::Inherited
                    if request.manifests.iter().all(|m| !work.keys.contains(&m.key)) =>
                {
                    existing.leaving.insert(index);
                }
                _ => {
                    existing.in_the_way.insert(index, (ownership, work));
                }
            }
        }
        existing
    }

    /// A work that holds wanted manifests and is about to go, or one that isn't ours where one of ours is wanted.
    fn check(&self, request: &DeployRequest<'_>, split: &Split) -> Result<(), WorksError> {
        for (index, (ownership, work)) in &self.in_the_way {
            let name = || format!("{}/{}", request.owner.namespace, work.name());
            match ownership {
                Ownership::Ours | Ownership::Inherited => return Err(WorksError::BeingDeleted(name())),
                Ownership::Former if split.contains_key(index) => return Err(WorksError::Former(name())),
                Ownership::Foreign if split.contains_key(index) => return Err(WorksError::NameTaken(name())),
                Ownership::Former | Ownership::Foreign => {}
            }
        }
        Ok(())
    }
}

impl DeployRequest<'_> {
    fn spec(&self, members: &[usize]) -> WorkSpec {
        WorkSpec::new(members.iter().map(|position| &self.manifests[*position]), &self.manifest_configs)
    }

    /// The label and annotations that are ours; null removes.
    fn marks(&self) -> (Value, Value) {
        let labels = json!({ LABEL_ADDON_NAME: self.owner.addon });
        let annotations =
            json!({ ANNOTATION_MANAGER: self.owner.manager, ANNOTATION_CONFIG_SPEC_HASH: self.config_spec_hash });
        (labels, annotations)
    }

    fn work(&self, name: &str, members: &[usize]) -> Value {
        let (labels, annotations) = self.marks();
        let mut work = json!({
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "ManifestWork",
            "metadata": {
                "name": name,
                "namespace": self.owner.namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [self.owner.reference(true)],
            },
            "spec": self.spec(members).to_json(),
        });
        for part in ["/metadata/annotations", "/spec"] {
            if let Some(part) = work.pointer_mut(part).and_then(Value::as_object_mut) {
                part.retain(|_, value| !value.is_null());
            }
        }
        work
    }

    /// What of a work isn't as it should be. Labels, annotations and owners of others stay.
    fn patch(&self, work: &DeployedWork, members: &[usize]) -> Option<Value> {
        let spec = self.spec(members);
        let spec_differs = spec.digest() != work.digest;
        let marks_differ = label(&work.metadata, LABEL_ADDON_NAME) != Some(self.owner.addon)
            || annotation(&work.metadata, ANNOTATION_MANAGER) != Some(self.owner.manager)
            || annotation(&work.metadata, ANNOTATION_CONFIG_SPEC_HASH) != self.config_spec_hash.as_deref()
            || !work.field_managers.iter().any(|name| name == self.owner.manager);
        if !spec_differs && !marks_differ {
            return None;
        }
        let (labels, annotations) = self.marks();
        let mut patch = json!({ "metadata": seen(&work.metadata) });
        patch["metadata"]["labels"] = labels;
        patch["metadata"]["annotations"] = annotations;
        if spec_differs {
            patch["spec"] = spec.to_json();
        }
        Some(patch)
    }
}

#[cfg(test)]
mod tests;
