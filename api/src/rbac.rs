//! The rights that each part needs, and no more. The chart's roles are generated from here, and the hub manager grants
//! from here.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::core::ObjectMeta;

use crate::GROUP;

const READ: &[&str] = &["get", "list", "watch"];
const APPLY: &[&str] = &["create", "patch", "delete"];
const WRITE: &[&str] = &["create", "update", "patch", "delete"];

/// The ClusterRoles that the hub needs.
pub fn hub_cluster_roles() -> Vec<ClusterRole> {
    vec![
        role("tenant-records-hub", &[], hub_manager()),
        role(
            "tenant-records-view",
            &["admin", "edit", "view"],
            vec![rule(GROUP, &["tenantdeploymentrecords", "tenantdeploymentrecordpages"], READ)],
        ),
        role("tenant-records-edit", &["admin", "edit"], vec![rule(GROUP, &["tenantdeploymentrecords"], WRITE)]),
    ]
}

/// What a cluster's agent may do on the hub, in the cluster's namespace.
pub fn agent_on_hub() -> Vec<PolicyRule> {
    vec![rule(GROUP, &["tenantrecordreports"], &["get", "list", "watch", "create", "update", "patch"])]
}

fn hub_manager() -> Vec<PolicyRule> {
    let mut rules = vec![
        // What records are joined from.
        rule(
            "cluster.open-cluster-management.io",
            &["managedclusters", "managedclustersets", "managedclustersetbindings", "placements", "placementdecisions"],
            READ,
        ),
        rule("work.open-cluster-management.io", &["manifestworkreplicasets"], READ),
        // Records and what stands beside them.
        rule(GROUP, &["tenantdeploymentrecords"], READ),
        rule(GROUP, &["tenantdeploymentrecords/status"], &["update"]),
        rule(GROUP, &["tenantdeploymentrecordpages"], &["get", "list", "watch", "create", "update", "delete"]),
        // The add-on contract.
        rule("addon.open-cluster-management.io", &["clustermanagementaddons"], &["get", "list", "watch", "patch"]),
        rule("addon.open-cluster-management.io", &["managedclusteraddons"], READ),
        rule(
            "addon.open-cluster-management.io",
            &["clustermanagementaddons/status", "managedclusteraddons/status"],
            &["patch"],
        ),
        rule("addon.open-cluster-management.io", &["managedclusteraddons/finalizers"], &["update"]),
        rule("addon.open-cluster-management.io", &["addondeploymentconfigs"], READ),
        rule("work.open-cluster-management.io", &["manifestworks"], &[READ, APPLY].concat()),
        rule("certificates.k8s.io", &["certificatesigningrequests"], READ),
        rule("certificates.k8s.io", &["certificatesigningrequests/approval"], &["patch"]),
        PolicyRule {
            resource_names: Some(vec!["kubernetes.io/kube-apiserver-client".to_owned()]),
            ..rule("certificates.k8s.io", &["signers"], &["approve"])
        },
        rule("rbac.authorization.k8s.io", &["roles", "rolebindings"], &[READ, APPLY].concat()),
    ];
    // Whoever grants a right must hold it.
    rules.extend(agent_on_hub());
    rules
}

fn role(name: &str, aggregate_to: &[&str], rules: Vec<PolicyRule>) -> ClusterRole {
    let label = |role: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".to_owned());
    let labels: std::collections::BTreeMap<_, _> = aggregate_to.iter().map(label).collect();
    ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: (!labels.is_empty()).then_some(labels),
            ..ObjectMeta::default()
        },
        rules: Some(rules),
        ..ClusterRole::default()
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_role_of_ours_has_a_wildcard_or_reads_secrets() {
        for role in hub_cluster_roles() {
            for rule in role.rules.unwrap() {
                let all = [rule.api_groups.unwrap(), rule.resources.unwrap(), rule.verbs].concat();
                assert!(!all.iter().any(|word| word == "*" || word == "secrets"), "{all:?}");
            }
        }
    }
}
