//! Which manifest goes into which work.
//!
//! Source of limit and placement: sdk-go `pkg/apis/work/v1/builder`. Different here: a work that has grown too large gives
//! manifests away, indexes never collide, and no work is ever empty.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::manifest::{Manifest, ManifestKey};
use super::{WorksError, deploy_work_name};

/// What OCM's webhook takes, in bytes of manifests.
pub(super) const HARD_LIMIT: usize = 500 * 1024;
/// Up to where works are filled, in bytes of manifests: the rest is room for manifests to grow where they are.
pub(super) const FILL_LIMIT: usize = HARD_LIMIT * 8 / 10;

/// The works that exist already and what they hold, by index.
pub(super) type Present<'w> = BTreeMap<u32, &'w [ManifestKey]>;

/// The manifests of each work, as positions in the list of manifests, by the work's index. A present work whose list is
/// empty isn't needed any more.
pub(super) type Split = BTreeMap<u32, Vec<usize>>;

/// Distributes manifests over works: what is in a work stays there, the rest goes where most room is, largest first, and
/// then into new works with the lowest indexes that are neither present nor `reserved`.
pub(super) fn split(
    addon: &str,
    manifests: &[Manifest],
    present: &Present<'_>,
    reserved: &BTreeSet<u32>,
) -> Result<Split, WorksError> {
    if let Some(large) = manifests.iter().find(|manifest| manifest.size > HARD_LIMIT) {
        let (manifest, size) = (large.key.clone(), large.size);
        return Err(WorksError::ManifestTooLarge { manifest, size, limit: HARD_LIMIT });
    }
    let (mut split, mut homeless) = keep(manifests, present);
    for (index, members) in &mut split {
        let moved =
            shed(manifests, members).ok_or_else(|| WorksError::WorkTooLarge(deploy_work_name(addon, *index)))?;
        homeless.extend(moved);
    }
    homeless.sort_by(|a, b| {
        let (a, b) = (&manifests[*a], &manifests[*b]);
        b.size.cmp(&a.size).then_with(|| a.key.cmp(&b.key))
    });
    for position in homeless {
        place(manifests, position, &mut split, reserved);
    }
    split.values_mut().for_each(|members| members.sort_unstable());
    Ok(split)
}

/// What stays where it is, and what isn't anywhere yet. Of two works that hold a manifest the lower one keeps it.
fn keep(manifests: &[Manifest], present: &Present<'_>) -> (Split, Vec<usize>) {
    let mut home = HashMap::new();
    for (index, keys) in present {
        for key in *keys {
            home.entry(key).or_insert(*index);
        }
    }
    let mut split: Split = present.keys().map(|index| (*index, Vec::new())).collect();
    let mut homeless = Vec::new();
    for (position, manifest) in manifests.iter().enumerate() {
        match home.get(&manifest.key) {
            Some(index) => split.entry(*index).or_default().push(position),
            None => homeless.push(position),
        }
    }
    (split, homeless)
}

/// Takes manifests out of a work that OCM wouldn't take any more, largest first; None when that can't be done.
fn shed(manifests: &[Manifest], members: &mut Vec<usize>) -> Option<Vec<usize>> {
    let mut size = size_of(manifests, members);
    if size <= HARD_LIMIT {
        return Some(Vec::new());
    }
    let mut candidates: Vec<_> =
        members.iter().copied().filter(|position| !manifests[*position].holds_others()).collect();
    candidates.sort_by_key(|position| (manifests[*position].size, &manifests[*position].key));
    let mut moved = Vec::new();
    while size > FILL_LIMIT {
        let Some(position) = candidates.pop() else { break };
        size -= manifests[position].size;
        moved.push(position);
    }
    members.retain(|position| !moved.contains(position));
    (size <= HARD_LIMIT).then_some(moved)
}

fn place(manifests: &[Manifest], position: usize, split: &mut Split, reserved: &BTreeSet<u32>) {
    let roomiest = split
        .iter()
        .map(|(index, members)| (FILL_LIMIT.saturating_sub(size_of(manifests, members)), *index))
        .max_by_key(|(room, index)| (*room, std::cmp::Reverse(*index)));
    let index = match roomiest {
        Some((room, index)) if manifests[position].size <= room => index,
        _ => (0..).find(|index| !split.contains_key(index) && !reserved.contains(index)).unwrap_or_default(),
    };
    split.entry(index).or_default().push(position);
}

fn size_of(manifests: &[Manifest], members: &[usize]) -> usize {
    members.iter().map(|position| manifests[*position].size).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(kind: &str, name: &str, size: usize) -> Manifest {
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}});
        let mut manifest = Manifest::all(vec![object]).expect("a manifest").remove(0);
        manifest.size = size;
        manifest
    }

    fn keys(manifests: &[Manifest], positions: &[usize]) -> Vec<ManifestKey> {
        positions.iter().map(|position| manifests[*position].key.clone()).collect()
    }

    fn run(manifests: &[Manifest], present: &[(u32, Vec<ManifestKey>)], reserved: &[u32]) -> Result<Split, WorksError> {
        let present = present.iter().map(|(index, keys)| (*index, keys.as_slice())).collect();
        split("demo", manifests, &present, &reserved.iter().copied().collect())
    }

    #[test]
    fn few_small_manifests_are_one_work_in_their_order() {
        let manifests = [manifest("A", "x", 10), manifest("B", "x", 1000), manifest("C", "x", 100)];
        assert_eq!(run(&manifests, &[], &[]).expect("split"), [(0, vec![0, 1, 2])].into());
        assert_eq!(run(&[], &[], &[]).expect("split"), Split::new());
    }

    #[test]
    fn large_ones_fill_several_works_whatever_their_order() {
        let half = FILL_LIMIT / 2;
        let mut manifests: Vec<_> = (0..5).map(|n| manifest("A", &n.to_string(), half)).collect();
        let expected: Split = [(0, vec![0, 1]), (1, vec![2, 3]), (2, vec![4])].into();
        assert_eq!(run(&manifests, &[], &[]).expect("split"), expected);
        manifests.reverse();
        assert_eq!(run(&manifests, &[], &[]).expect("split"), [(0, vec![3, 4]), (1, vec![1, 2]), (2, vec![0])].into());
        // The lowest of the indexes that are free.
        assert_eq!(run(&manifests, &[], &[0, 2]).expect("split").into_keys().collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn a_manifest_between_the_limits_has_a_work_of_its_own_and_no_work_is_empty() {
        let manifests = [manifest("A", "small", 10), manifest("A", "large", FILL_LIMIT + 1)];
        assert_eq!(run(&manifests, &[], &[]).expect("split"), [(0, vec![1]), (1, vec![0])].into());
        let error = run(&[manifest("A", "x", HARD_LIMIT + 1)], &[], &[]).expect_err("too large");
        assert!(matches!(error, WorksError::ManifestTooLarge { .. }));
    }

    #[test]
    fn what_is_in_a_work_stays_there() {
        let manifests: Vec<_> = (0..4).map(|n| manifest("A", &n.to_string(), 10 * (n + 1))).collect();
        let present = [(1, keys(&manifests, &[3])), (4, keys(&manifests, &[0, 3])), (5, keys(&manifests, &[]))];
        assert_eq!(
            run(&manifests, &present, &[]).expect("split"),
            [(1, vec![3]), (4, vec![0, 1]), (5, vec![2])].into()
        );
        // One that vanished leaves its work, and an emptied work stays listed so that it is deleted.
        assert_eq!(
            run(&manifests[..1], &present, &[]).expect("split"),
            [(1, vec![]), (4, vec![0]), (5, vec![])].into()
        );
    }

    #[test]
    fn a_work_that_has_grown_gives_away_the_largest_but_never_what_holds_others() {
        let grown = HARD_LIMIT - 10;
        let crd = manifest("CustomResourceDefinition", "crd", grown);
        let manifests = [crd, manifest("A", "a", 40), manifest("A", "b", 50)];
        let present = [(0, keys(&manifests, &[0, 1, 2]))];
        let split = run(&manifests, &present, &[]).expect("split");
        assert_eq!(split, [(0, vec![0]), (1, vec![1, 2])].into());

        let within = [manifest("A", "a", FILL_LIMIT), manifest("A", "b", HARD_LIMIT - FILL_LIMIT)];
        let present = [(0, keys(&within, &[0, 1]))];
        assert_eq!(run(&within, &present, &[]).expect("split"), [(0, vec![0, 1])].into(), "there is room to grow");

        let fixed = [manifest("Namespace", "a", FILL_LIMIT), manifest("Namespace", "b", FILL_LIMIT)];
        let present = [(0, keys(&fixed, &[0, 1]))];
        let error = run(&fixed, &present, &[]).expect_err("too large");
        assert_eq!(
            error.to_string(),
            "the manifests of ManifestWork addon-demo-deploy-0 that can't be moved to another one exceed OCM's limit"
        );
    }
}
