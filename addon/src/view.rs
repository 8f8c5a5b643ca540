//! What is known of the hub: the objects of one add-on, kept current by watches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tenant_records_api::ocm::{ClusterManagementAddOn, ConfigGroupResource, ConfigReferent, ManagedClusterAddOn};
use tenant_records_runtime::{Cache, ObjectKey, Update};

use crate::cluster::Cluster;
use crate::config::{ConfigKey, ConfigObject, KnownConfigs};
use crate::csr::CertificateSigningRequest;
use crate::rbac::{Role, RoleBinding};
use crate::works::DeployedWork;

/// What may need work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// The ClusterManagementAddOn.
    Offer,
    /// The add-on on the cluster of that name.
    OnCluster(String),
    /// The CertificateSigningRequest of that name.
    Certificate(String),
}

impl Key {
    /// For metrics.
    pub(crate) fn subject(&self) -> &'static str {
        match self {
            Self::Offer => "clustermanagementaddon",
            Self::OnCluster(_) => "managedclusteraddon",
            Self::Certificate(_) => "certificatesigningrequest",
        }
    }
}

/// What a watch told.
#[derive(Debug)]
pub(crate) enum News {
    Offer(Update<ClusterManagementAddOn>),
    AddOn(Update<ManagedClusterAddOn>),
    Cluster(Update<Cluster>),
    Work(Update<DeployedWork>),
    Role(Update<Role>),
    RoleBinding(Update<RoleBinding>),
    Request(Update<CertificateSigningRequest>),
    Config(ConfigGroupResource, Update<ConfigObject>),
}

/// The objects of one add-on.
#[derive(Debug, Default)]
pub(crate) struct View {
    offers: Cache<ClusterManagementAddOn>,
    addons: Cache<ManagedClusterAddOn>,
    clusters: Cache<Cluster>,
    works: Cache<DeployedWork>,
    works_by_cluster: HashMap<String, BTreeSet<String>>,
    roles: Cache<Role>,
    role_bindings: Cache<RoleBinding>,
    /// Only those on which nobody has decided.
    requests: Cache<CertificateSigningRequest>,
    configs: BTreeMap<ConfigGroupResource, Cache<ConfigObject>>,
}

/// What is known of the add-on on one cluster.
#[derive(Debug)]
pub(crate) struct OnCluster {
    pub(crate) addon: Arc<ManagedClusterAddOn>,
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) works: Vec<Arc<DeployedWork>>,
    pub(crate) role: Option<Arc<Role>>,
    pub(crate) role_binding: Option<Arc<RoleBinding>>,
    pub(crate) known: KnownConfigs,
}

impl View {
    /// Takes what a watch told and returns what may need work.
    pub(crate) fn apply(&mut self, news: News) -> Vec<Key> {
        match news {
            News::Offer(update) => self.offers.apply(update).into_iter().map(|_| Key::Offer).collect(),
            News::AddOn(update) => {
                let changed = self.addons.apply(update);
                changed.into_iter().flat_map(|key| self.keys_of_cluster(key.namespace)).collect()
            }
            News::Cluster(update) => {
                if let Update::Applied(cluster) = &update
                    && self.clusters.get(&ObjectKey::of(cluster)).is_some_and(|known| **known == *cluster)
                {
                    // A heartbeat: the update must be applied, since it may be part of a list, but changes nothing.
                    self.clusters.apply(update);
                    return Vec::new();
                }
                let changed = self.clusters.apply(update);
                changed.into_iter().flat_map(|key| self.keys_of_cluster(key.name)).collect()
            }
            News::Work(update) => {
                let changed = self.works.apply(update);
                for key in &changed {
                    self.index_work(key);
                }
                on_clusters(changed)
            }
            News::Role(update) => on_clusters(self.roles.apply(update)),
            News::RoleBinding(update) => on_clusters(self.role_bindings.apply(update)),
            News::Request(update) => {
                let changed = self.requests.apply(only_undecided(update));
                changed.into_iter().map(|key| Key::Certificate(key.name)).collect()
            }
            News::Config(kind, update) => {
                let complete = matches!(update, Update::Synced);
                let cache = self.configs.entry(kind.clone()).or_default();
                let first = complete && !cache.is_synced();
                let changed: BTreeSet<_> = cache.apply(update).into_iter().collect();
                let names = |config: &ConfigKey| {
                    config.kind == kind && (first || changed.contains(&object_key(&config.referent)))
                };
                if !first && changed.is_empty() { Vec::new() } else { self.keys_configured_by(names) }
            }
        }
    }

    /// Whether everything but configuration objects has been listed.
    pub(crate) fn is_synced(&self) -> bool {
        self.offers.is_synced()
            && self.addons.is_synced()
            && self.clusters.is_synced()
            && self.works.is_synced()
            && self.roles.is_synced()
            && self.role_bindings.is_synced()
            && self.requests.is_synced()
    }

    pub(crate) fn offer(&self, addon: &str) -> Option<Arc<ClusterManagementAddOn>> {
        self.offers.get(&ObjectKey::new("", addon)).cloned()
    }

    pub(crate) fn request(&self, name: &str) -> Option<Arc<CertificateSigningRequest>> {
        self.requests.get(&ObjectKey::new("", name)).cloned()
    }

    /// Drops a request on which somebody has decided, before the watch tells.
    pub(crate) fn forget_request(&mut self, name: &str) {
        self.requests.apply(Update::Deleted(ObjectKey::new("", name)));
    }

    pub(crate) fn addon(&self, addon: &str, cluster: &str) -> Option<Arc<ManagedClusterAddOn>> {
        self.addons.get(&ObjectKey::new(cluster, addon)).cloned()
    }

    pub(crate) fn has_cluster(&self, cluster: &str) -> bool {
        self.clusters.get(&ObjectKey::new("", cluster)).is_some()
    }

    /// Everything about the add-on on one cluster, if it is enabled there.
    pub(crate) fn on_cluster(&self, addon: &str, role: &str, cluster: &str) -> Option<OnCluster> {
        let role = ObjectKey::new(cluster, role);
        let addon = self.addon(addon, cluster)?;
        let works = self.works_by_cluster.get(cluster).into_iter().flatten();
        Some(OnCluster {
            cluster: self.clusters.get(&ObjectKey::new("", cluster)).cloned(),
            works: works.filter_map(|name| self.works.get(&ObjectKey::new(cluster, name)).cloned()).collect(),
            role: self.roles.get(&role).cloned(),
            role_binding: self.role_bindings.get(&role).cloned(),
            known: self.known(configs_of(&addon)),
            addon,
        })
    }

    /// What is known of these configuration objects.
    pub(crate) fn known(&self, configs: impl IntoIterator<Item = ConfigKey>) -> KnownConfigs {
        let synced = self.configs.iter().filter(|(_, cache)| cache.is_synced());
        let kinds: BTreeSet<_> = synced.map(|(kind, _)| kind.clone()).collect();
        let found = configs.into_iter().filter_map(|key| {
            let object = self.configs.get(&key.kind)?.get(&object_key(&key.referent))?.clone();
            Some((key, object))
        });
        KnownConfigs { configs: found.collect(), kinds }
    }

    fn index_work(&mut self, key: &ObjectKey) {
        if self.works.get(key).is_some() {
            self.works_by_cluster.entry(key.namespace.clone()).or_default().insert(key.name.clone());
        } else if let Some(names) = self.works_by_cluster.get_mut(&key.namespace) {
            names.remove(&key.name);
            if names.is_empty() {
                self.works_by_cluster.remove(&key.namespace);
            }
        }
    }

    /// The add-on on a cluster, and the undecided requests from there.
    fn keys_of_cluster(&self, cluster: String) -> Vec<Key> {
        let requests = self.requests.iter().filter(|(_, request)| request.cluster() == Some(&cluster));
        let mut keys: Vec<_> = requests.map(|(key, _)| Key::Certificate(key.name.clone())).collect();
        keys.push(Key::OnCluster(cluster));
        keys
    }

    fn keys_configured_by(&self, names: impl Fn(&ConfigKey) -> bool) -> Vec<Key> {
        let configured = self.addons.iter().filter(|(_, addon)| configs_of(addon).any(|config| names(&config)));
        let mut keys = on_clusters(configured.map(|(key, _)| key.clone()).collect());
        keys.push(Key::Offer);
        keys
    }
}

/// The configurations that are decided or asked for.
fn configs_of(addon: &ManagedClusterAddOn) -> impl Iterator<Item = ConfigKey> {
    let decided = addon.status.config_references.iter().filter_map(|reference| {
        let desired = reference.desired_config.as_ref()?;
        Some(ConfigKey { kind: reference.kind.clone(), referent: desired.referent.clone() })
    });
    let asked = addon.spec.configs.iter();
    decided.chain(asked.map(|config| ConfigKey { kind: config.kind.clone(), referent: config.referent.clone() }))
}

fn object_key(referent: &ConfigReferent) -> ObjectKey {
    ObjectKey::new(referent.namespace.as_str(), referent.name.as_str())
}

fn on_clusters(keys: Vec<ObjectKey>) -> Vec<Key> {
    keys.into_iter().map(|key| Key::OnCluster(key.namespace)).collect()
}

fn only_undecided(update: Update<CertificateSigningRequest>) -> Update<CertificateSigningRequest> {
    match update {
        Update::Applied(request) if request.is_decided() => Update::Deleted(ObjectKey::of(&request)),
        update => update,
    }
}

#[cfg(test)]
mod tests;
