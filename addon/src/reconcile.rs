//! Brings one thing to its wanted state: reads the view, decides by pure code, writes to the hub.
//!
//! Safe to repeat at any time, and silent when nothing differs.

mod certificate;
mod deploy;
mod offer;
mod on_cluster;
mod permissions;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::core::ApiResource;
use tenant_records_api::ocm::{
    ADDON_GROUP, ADDON_TEMPLATES, ClusterManagementAddOn, ConfigGroupResource, ManagedClusterAddOn, ManifestWork,
};

use crate::addon::AddOn;
use crate::csr::CertificateSigningRequest;
use crate::hub::{Hub, HubError};
use crate::metrics::Metrics;
use crate::rbac::{NameTaken, Role, RoleBinding};
use crate::view::{Key, View};
use crate::works::WorksError;

/// Why something isn't in its wanted state. It is tried again later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The hub's API server.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The deploy works.
    #[error(transparent)]
    Works(#[from] WorksError),
    /// The agent's Role or RoleBinding.
    #[error(transparent)]
    Permissions(#[from] NameTaken),
    /// What was seen isn't the present state; a newer one is on its way.
    #[error("{0} has changed meanwhile")]
    Outdated(String),
}

impl ReconcileError {
    /// Whether it is the normal course of things with several writers.
    pub(crate) fn is_outdated(&self) -> bool {
        match self {
            Self::Hub(error) => error.is_outdated(),
            Self::Outdated(_) => true,
            Self::Works(_) | Self::Permissions(_) => false,
        }
    }

    /// Whether people should read of it in a condition: what passes by itself would only make the condition flap.
    fn is_for_people(&self) -> bool {
        match self {
            Self::Hub(error) => error.is_refusal(),
            Self::Works(_) | Self::Permissions(_) => true,
            Self::Outdated(_) => false,
        }
    }
}

/// The kinds that are written to.
#[derive(Debug)]
struct Kinds {
    offer: ApiResource,
    addon: ApiResource,
    work: ApiResource,
    role: ApiResource,
    role_binding: ApiResource,
    request: ApiResource,
}

/// Brings things of one add-on to their wanted states.
pub(crate) struct Reconciler {
    addon: Arc<dyn AddOn>,
    hub: Hub,
    metrics: Metrics,
    view: Arc<Mutex<View>>,
    supported: Vec<ConfigGroupResource>,
    kinds: Kinds,
}

impl Reconciler {
    pub(crate) fn new(addon: Arc<dyn AddOn>, hub: Hub, metrics: Metrics, view: Arc<Mutex<View>>) -> Self {
        fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
            ApiResource::erase::<K>(&())
        }
        let supported = addon.supported_configs().iter().map(group_resource).collect();
        let kinds = Kinds {
            offer: kind::<ClusterManagementAddOn>(),
            addon: kind::<ManagedClusterAddOn>(),
            work: kind::<ManifestWork>(),
            role: kind::<Role>(),
            role_binding: kind::<RoleBinding>(),
            request: kind::<CertificateSigningRequest>(),
        };
        Self { addon, hub, metrics, view, supported, kinds }
    }

    pub(crate) async fn reconcile(&self, key: &Key) -> Result<(), ReconcileError> {
        match key {
            Key::Offer => self.reconcile_offer().await,
            Key::OnCluster(cluster) => self.reconcile_on_cluster(cluster).await,
            Key::Certificate(name) => self.reconcile_certificate(name).await,
        }
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a kind of configuration as OCM writes it.
pub(crate) fn group_resource(kind: &ApiResource) -> ConfigGroupResource {
    ConfigGroupResource { group: kind.group.clone(), resource: kind.plural.clone() }
}

/// Whether OCM's addon-manager takes care of the add-on on that cluster, because an AddOnTemplate defines it there.
fn is_templated(addon: &ManagedClusterAddOn) -> bool {
    addon.status.config_references.iter().any(|reference| is_template(&reference.kind))
}

fn is_template(kind: &ConfigGroupResource) -> bool {
    kind.group == ADDON_GROUP && kind.resource == ADDON_TEMPLATES
}
