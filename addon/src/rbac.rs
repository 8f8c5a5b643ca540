//! An agent's rights in its cluster's namespace on the hub: a Role, and a RoleBinding to whoever the agent registers as.

use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use tenant_records_api::lean_resource;
use tenant_records_api::ocm::{LABEL_ADDON_NAME, lean_metadata, or_default};

use crate::change::{ANNOTATION_MANAGER, Change, Owner, annotation, label, seen};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// A Role, as far as it is compared.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Role {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// The rights.
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<PolicyRule>,
}
lean_resource!(Role, "rbac.authorization.k8s.io", "v1", "roles", NamespaceResourceScope);

/// A RoleBinding, as far as it is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleBinding {
    /// Standard metadata without managedFields.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What it grants.
    pub role_ref: RoleRef,
    /// To whom.
    #[serde(default, deserialize_with = "or_default")]
    pub subjects: Vec<Subject>,
}
lean_resource!(RoleBinding, "rbac.authorization.k8s.io", "v1", "rolebindings", NamespaceResourceScope);

/// The rights that an agent should have, and who it is.
#[derive(Clone, Debug, PartialEq)]
pub struct HubPermissions {
    /// The name of both Role and RoleBinding.
    pub name: String,
    /// The rights; none, and there is neither Role nor RoleBinding.
    pub rules: Vec<PolicyRule>,
    /// Who has them; nobody, and there is no RoleBinding.
    pub subjects: Vec<Subject>,
}

/// An object of that name exists that this manager didn't make.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} {namespace}/{name} exists and wasn't made by this manager; it is left alone, please rename or delete it"
)]
pub struct NameTaken {
    /// `Role` or `RoleBinding`.
    pub kind: &'static str,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// What to write so that the Role is as it should be.
///
/// # Errors
/// [`NameTaken`].
pub fn plan_role(
    owner: &Owner<'_>,
    wanted: &HubPermissions,
    present: Option<&Role>,
) -> Result<Option<Change>, NameTaken> {
    let present = present.map(|role| (&role.metadata, role.rules == wanted.rules));
    let content = (!wanted.rules.is_empty()).then(|| json!({ "rules": wanted.rules }));
    plan(owner, "Role", &wanted.name, content, present)
}

/// What to write so that the RoleBinding is as it should be.
///
/// # Errors
/// [`NameTaken`].
pub fn plan_role_binding(
    owner: &Owner<'_>,
    wanted: &HubPermissions,
    present: Option<&RoleBinding>,
) -> Result<Option<Change>, NameTaken> {
    let role_ref = RoleRef { api_group: RBAC_GROUP.into(), kind: "Role".into(), name: wanted.name.clone() };
    let any = !wanted.rules.is_empty() && !wanted.subjects.is_empty();
    // What a RoleBinding grants can't be changed: another one has to take its place.
    let usable = present.is_none_or(|binding| binding.role_ref == role_ref);
    let content = (any && usable).then(|| json!({ "roleRef": role_ref, "subjects": wanted.subjects }));
    let present = present.map(|binding| (&binding.metadata, binding.subjects == wanted.subjects));
    plan(owner, "RoleBinding", &wanted.name, content, present)
}

/// `content` is what is wanted, if anything; `present` is the object of that name and whether its content is right.
fn plan(
    owner: &Owner<'_>,
    kind: &'static str,
    name: &str,
    content: Option<Value>,
    present: Option<(&ObjectMeta, bool)>,
) -> Result<Option<Change>, NameTaken> {
    let Some((metadata, same_content)) = present else {
        return Ok(content.map(|content| create(owner, kind, name, content)));
    };
    let ours = annotation(metadata, ANNOTATION_MANAGER) == Some(owner.manager);
    let content = match content {
        Some(_) if !ours => return Err(taken(owner, kind, name)),
        Some(content) => content,
        None => return Ok(ours.then(|| Change::delete(metadata))),
    };
    let owned = metadata.owner_references.iter().flatten().any(|reference| reference.uid == owner.uid);
    let labelled = label(metadata, LABEL_ADDON_NAME) == Some(owner.addon);
    if same_content && owned && labelled {
        return Ok(None);
    }
    let mut patch = content;
    patch["metadata"] = seen(metadata);
    patch["metadata"]["labels"] = json!({ LABEL_ADDON_NAME: owner.addon });
    patch["metadata"]["ownerReferences"] = json!([owner.reference(false)]);
    Ok(Some(Change::Update { name: name.into(), patch }))
}

fn create(owner: &Owner<'_>, kind: &str, name: &str, content: Value) -> Change {
    let mut object = content;
    object["apiVersion"] = format!("{RBAC_GROUP}/v1").into();
    object["kind"] = kind.into();
    object["metadata"] = json!({
        "name": name,
        "namespace": owner.namespace,
        "labels": {LABEL_ADDON_NAME: owner.addon},
        "annotations": {ANNOTATION_MANAGER: owner.manager},
        "ownerReferences": [owner.reference(false)],
    });
    Change::Create { name: name.into(), object }
}

/// The error for an object of that name that somebody else made.
pub(crate) fn taken(owner: &Owner<'_>, kind: &'static str, name: &str) -> NameTaken {
    NameTaken { kind, namespace: owner.namespace.into(), name: name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner<'static> = Owner { addon: "demo", namespace: "edge-01", uid: "uid", manager: "demo-manager" };

    fn wanted(users: &[&str]) -> HubPermissions {
        let rule = PolicyRule {
            api_groups: Some(vec!["example.com".into()]),
            resources: Some(vec!["reports".into()]),
            verbs: vec!["get".into()],
            ..PolicyRule::default()
        };
        let subject = |user: &&str| Subject {
            api_group: Some(RBAC_GROUP.into()),
            kind: "User".into(),
            name: (*user).into(),
            namespace: None,
        };
        HubPermissions { name: "demo-agent".into(), rules: vec![rule], subjects: users.iter().map(subject).collect() }
    }

    fn nothing() -> HubPermissions {
        HubPermissions { rules: Vec::new(), ..wanted(&["u"]) }
    }

    /// What an API server makes of an object that was created.
    fn served<K: serde::de::DeserializeOwned>(change: Option<Change>, with: impl FnOnce(&mut Value)) -> K {
        let Some(Change::Create { mut object, .. }) = change else { panic!("{change:?}") };
        object["metadata"]["uid"] = "its-uid".into();
        object["metadata"]["resourceVersion"] = "7".into();
        with(&mut object);
        serde_json::from_value(object).expect("decodable")
    }

    fn role(with: impl FnOnce(&mut Value)) -> Role {
        served(plan_role(&OWNER, &wanted(&["u"]), None).expect("a plan"), with)
    }

    fn binding(with: impl FnOnce(&mut Value)) -> RoleBinding {
        served(plan_role_binding(&OWNER, &wanted(&["u"]), None).expect("a plan"), with)
    }

    #[test]
    fn made_once_and_then_left_alone() {
        let created = plan_role_binding(&OWNER, &wanted(&["u"]), None).expect("a plan");
        let Some(Change::Create { name, object }) = created else { panic!("{created:?}") };
        assert_eq!(name, "demo-agent");
        assert_eq!(
            object,
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {
                    "name": "demo-agent", "namespace": "edge-01",
                    "labels": {"open-cluster-management.io/addon-name": "demo"},
                    "annotations": {"addon.open-cluster-management.io/manager": "demo-manager"},
                    "ownerReferences": [{
                        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
                        "name": "demo", "uid": "uid", "blockOwnerDeletion": true,
                    }],
                },
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "demo-agent"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}],
            })
        );
        assert_eq!(plan_role(&OWNER, &wanted(&["u"]), Some(&role(|_| {}))), Ok(None));
        assert_eq!(plan_role_binding(&OWNER, &wanted(&["u"]), Some(&binding(|_| {}))), Ok(None));
    }

    #[test]
    fn what_differs_is_repaired() {
        let change = plan_role_binding(&OWNER, &wanted(&["v"]), Some(&binding(|_| {}))).expect("a plan");
        let Some(Change::Update { patch, .. }) = change else { panic!("{change:?}") };
        assert_eq!(patch["subjects"][0]["name"], "v");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");

        let widened = role(|role| role["rules"][0]["verbs"] = json!(["*"]));
        let change = plan_role(&OWNER, &wanted(&["u"]), Some(&widened)).expect("a plan");
        let Some(Change::Update { patch, .. }) = change else { panic!("{change:?}") };
        assert_eq!(patch["rules"][0]["verbs"], json!(["get"]));

        let of_former = role(|role| role["metadata"]["ownerReferences"][0]["uid"] = "old".into());
        let change = plan_role(&OWNER, &wanted(&["u"]), Some(&of_former)).expect("a plan");
        let Some(Change::Update { patch, .. }) = change else { panic!("{change:?}") };
        assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], "uid");

        let other_role = binding(|binding| binding["roleRef"]["name"] = "admin".into());
        let change = plan_role_binding(&OWNER, &wanted(&["u"]), Some(&other_role)).expect("a plan");
        assert!(matches!(change, Some(Change::Delete { .. })), "{change:?}");
    }

    #[test]
    fn without_rights_or_subjects_there_is_nothing() {
        assert_eq!(plan_role(&OWNER, &nothing(), None), Ok(None));
        assert_eq!(plan_role_binding(&OWNER, &wanted(&[]), None), Ok(None));
        assert!(matches!(plan_role(&OWNER, &wanted(&[]), None), Ok(Some(Change::Create { .. }))));
        assert!(matches!(plan_role(&OWNER, &nothing(), Some(&role(|_| {}))), Ok(Some(Change::Delete { .. }))));
        assert!(matches!(
            plan_role_binding(&OWNER, &wanted(&[]), Some(&binding(|_| {}))),
            Ok(Some(Change::Delete { .. }))
        ));
    }

    #[test]
    fn objects_of_others_are_left_alone() {
        let foreign = |role: &mut Value| role["metadata"]["annotations"] = json!({});
        assert!(plan_role(&OWNER, &wanted(&["u"]), Some(&role(foreign))).is_err());
        assert_eq!(plan_role(&OWNER, &nothing(), Some(&role(foreign))), Ok(None));
        let error = plan_role_binding(&OWNER, &wanted(&["u"]), Some(&binding(foreign))).expect_err("taken");
        assert!(error.to_string().starts_with("RoleBinding edge-01/demo-agent exists"), "{error}");
    }
}
