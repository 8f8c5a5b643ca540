//! The agent's rights on the hub.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tenant_records_api::ocm::RegistrationConfig;
use tenant_records_runtime::ObjectKey;

use super::{ReconcileError, Reconciler};
use crate::change::{ANNOTATION_MANAGER, Change, Owner, annotation};
use crate::hub::Written;
use crate::rbac::{HubPermissions, Role, RoleBinding, plan_role, plan_role_binding, taken};
use crate::registration::rbac_subjects;
use crate::status::RegistrationApplied;
use crate::view::OnCluster;

impl Reconciler {
    /// Writes Role and RoleBinding for whoever the agent registers as.
    pub(super) async fn apply_permissions(
        &self,
        owner: &Owner<'_>,
        on: &OnCluster,
        registrations: &[RegistrationConfig],
    ) -> Result<RegistrationApplied, ReconcileError> {
        let wanted = HubPermissions {
            name: self.addon.hub_role_name(),
            rules: self.addon.hub_permissions(owner.namespace),
            subjects: rbac_subjects(registrations, &on.addon.status.kube_client_driver, owner.namespace),
        };
        if let Some(change) = plan_role(owner, &wanted, on.role.as_deref())?
            && self.hub.write(&self.kinds.role, owner.namespace, &change).await? == Written::NameTaken
        {
            let role: Option<Role> = self.hub.read(&ObjectKey::new(owner.namespace, change.name())).await?;
            return Err(name_taken(owner, "Role", &change, role.as_ref().map(|role| &role.metadata)));
        }
        if let Some(change) = plan_role_binding(owner, &wanted, on.role_binding.as_deref())?
            && self.hub.write(&self.kinds.role_binding, owner.namespace, &change).await? == Written::NameTaken
        {
            let binding: Option<RoleBinding> = self.hub.read(&ObjectKey::new(owner.namespace, change.name())).await?;
            return Err(name_taken(owner, "RoleBinding", &change, binding.as_ref().map(|binding| &binding.metadata)));
        }
        let ready = wanted.rules.is_empty() || !wanted.subjects.is_empty();
        Ok(if ready { RegistrationApplied::Yes } else { RegistrationApplied::Pending })
    }
}

/// An object of that name exists that wasn't in the view: another's, which the watch doesn't see, or ours, which it hasn't
/// seen yet.
fn name_taken(owner: &Owner<'_>, kind: &'static str, change: &Change, present: Option<&ObjectMeta>) -> ReconcileError {
    match present {
        Some(metadata) if annotation(metadata, ANNOTATION_MANAGER) != Some(owner.manager) => {
            taken(owner, kind, change.name()).into()
        }
        _ => ReconcileError::Outdated(format!("{kind} {}/{}", owner.namespace, change.name())),
    }
}
