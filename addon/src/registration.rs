//! Who an add-on's agent is on the hub.

use k8s_openapi::api::rbac::v1::Subject as RbacSubject;
use tenant_records_api::ocm::{ManagedClusterAddOn, ManagedClusterAddOnStatus, RegistrationConfig, Subject};

use crate::addon::AddOn;

/// The signer of certificates for clients of the hub's API server.
pub const KUBE_CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The `kubeClientDriver` that gives the agent a ServiceAccount's token instead of a certificate.
pub const DRIVER_TOKEN: &str = "token";
/// The group of everyone whom the API server knows; Go frameworks before 1.3 put agents into it by name.
pub const GROUP_AUTHENTICATED: &str = "system:authenticated";

/// The name that a cluster's agent has on the hub.
pub fn default_user(cluster: &str, addon: &str, agent: &str) -> String {
    format!("system:open-cluster-management:cluster:{cluster}:addon:{addon}:agent:{agent}")
}

/// The groups that a cluster's agent has on the hub: its own and that of all agents of the add-on. Their order is fixed:
/// the registration agent makes a new Secret when it changes.
pub fn default_groups(cluster: &str, addon: &str) -> Vec<String> {
    vec![
        format!("system:open-cluster-management:cluster:{cluster}:addon:{addon}"),
        format!("system:open-cluster-management:addon:{addon}"),
    ]
}

/// How a cluster's agent registers with the hub's API server.
pub fn kube_client_registration(addon: &dyn AddOn, cluster: &str) -> RegistrationConfig {
    RegistrationConfig {
        signer_name: KUBE_CLIENT_SIGNER.into(),
        subject: Subject {
            user: default_user(cluster, addon.name(), addon.agent_name()),
            groups: default_groups(cluster, addon.name()),
            organization_units: Vec::new(),
        },
    }
}

/// The registrations to publish, given those that are published now.
///
/// With tokens, the registration agent writes who the agent is, and that stays.
/// Source: `buildRegistrationConfigs` in addon-framework `pkg/addonmanager/controllers/registration`.
pub fn registrations(wanted: RegistrationConfig, present: &ManagedClusterAddOnStatus) -> Vec<RegistrationConfig> {
    if present.kube_client_driver != DRIVER_TOKEN {
        return vec![wanted];
    }
    let written = kube_client_subject(&present.registrations).cloned().unwrap_or_default();
    vec![RegistrationConfig { subject: written, ..wanted }]
}

/// Whom to give the agent's rights: the user and the groups as whom it registers with the hub's API server. Nobody, while
/// that isn't known.
///
/// With tokens the cluster says who that is; it is believed only for a ServiceAccount in its own namespace.
pub fn rbac_subjects(registrations: &[RegistrationConfig], driver: &str, cluster: &str) -> Vec<RbacSubject> {
    let Some(subject) = kube_client_subject(registrations) else { return Vec::new() };
    let of = |kind: &str, name: &String| RbacSubject {
        api_group: Some("rbac.authorization.k8s.io".into()),
        kind: kind.into(),
        name: name.clone(),
        namespace: None,
    };
    let user = Some(&subject.user).filter(|user| !user.is_empty()).map(|user| of("User", user));
    if driver == DRIVER_TOKEN {
        let accounts = format!("system:serviceaccount:{cluster}:");
        return user.into_iter().filter(|user| user.name.starts_with(&accounts)).collect();
    }
    let groups = subject.groups.iter().filter(|group| *group != GROUP_AUTHENTICATED).map(|group| of("Group", group));
    user.into_iter().chain(groups).collect()
}

fn kube_client_subject(registrations: &[RegistrationConfig]) -> Option<&Subject> {
    let registration = registrations.iter().find(|registration| registration.signer_name == KUBE_CLIENT_SIGNER)?;
    Some(&registration.subject)
}

/// The namespace for the agent. Lowest to highest: the add-on's own, the ManagedClusterAddOn's, the configuration's.
pub fn install_namespace(addon: &dyn AddOn, on: &ManagedClusterAddOn, configured: Option<&str>) -> String {
    [configured.unwrap_or_default(), on.spec.install_namespace.as_str()]
        .into_iter()
        .find(|namespace| !namespace.is_empty())
        .unwrap_or_else(|| addon.default_install_namespace())
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(user: &str, groups: &[&str]) -> Subject {
        let groups = groups.iter().map(|group| (*group).into()).collect();
        Subject { user: user.into(), groups, organization_units: Vec::new() }
    }

    fn registration(signer: &str, subject: Subject) -> RegistrationConfig {
        RegistrationConfig { signer_name: signer.into(), subject }
    }

    #[test]
    fn names_are_ocms() {
        assert_eq!(default_user("c", "a", "g"), "system:open-cluster-management:cluster:c:addon:a:agent:g");
        assert_eq!(
            default_groups("c", "a"),
            ["system:open-cluster-management:cluster:c:addon:a", "system:open-cluster-management:addon:a"]
        );
    }

    #[test]
    fn a_token_keeps_the_subject_that_the_agent_wrote() {
        let wanted = registration(KUBE_CLIENT_SIGNER, subject("default", &["g"]));
        let account = subject("system:serviceaccount:c:a-agent", &[]);
        for (driver, present, expected) in [
            ("", vec![], wanted.subject.clone()),
            ("csr", vec![registration(KUBE_CLIENT_SIGNER, account.clone())], wanted.subject.clone()),
            ("token", vec![registration(KUBE_CLIENT_SIGNER, account.clone())], account.clone()),
            ("token", vec![registration("example.com/other", account.clone())], Subject::default()),
        ] {
            let status = ManagedClusterAddOnStatus {
                registrations: present,
                kube_client_driver: driver.into(),
                ..Default::default()
            };
            let published = registrations(wanted.clone(), &status);
            assert_eq!(published, [registration(KUBE_CLIENT_SIGNER, expected)], "{driver}");
        }
    }

    #[test]
    fn rights_go_to_whoever_registers() {
        let names = |driver: &str, registrations: &[RegistrationConfig]| -> Vec<String> {
            let subjects = rbac_subjects(registrations, driver, "c");
            subjects.into_iter().map(|subject| format!("{}/{}", subject.kind, subject.name)).collect()
        };
        let by = |user: &str, groups: &[&str]| registration(KUBE_CLIENT_SIGNER, subject(user, groups));
        let other = registration("example.com/x", subject("v", &[]));
        assert_eq!(names("csr", &[other, by("u", &["g", GROUP_AUTHENTICATED])]), ["User/u", "Group/g"]);
        assert!(names("csr", &[by("", &[])]).is_empty());
        assert!(names("csr", &[]).is_empty());
        let account = "system:serviceaccount:c:a-agent";
        assert_eq!(names("token", &[by(account, &["system:masters"])]), [format!("User/{account}")]);
        for liar in ["admin", "system:serviceaccount:cc:a-agent"] {
            assert!(names("token", &[by(liar, &["g"])]).is_empty(), "{liar}");
        }
    }
}
