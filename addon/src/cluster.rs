//! What an add-on may know of a cluster when it is deployed there.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use tenant_records_api::ocm::{ClusterClaim, ManagedCluster};

use crate::projection::projection;

/// The part of a ManagedCluster that manifests may depend on. What changes all the time, such as conditions, isn't in it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "ManagedCluster")]
pub struct Cluster {
    /// The identity; labels and annotations are beside.
    pub metadata: ObjectMeta,
    /// The ManagedCluster's labels.
    pub labels: BTreeMap<String, String>,
    /// The ManagedCluster's annotations.
    pub annotations: BTreeMap<String, String>,
    /// Kubernetes' version, for example `v1.35.4`; empty until the cluster has told.
    pub kubernetes_version: String,
    /// What the cluster claims about itself.
    pub claims: Vec<ClusterClaim>,
}
projection!(Cluster of ManagedCluster);

impl Cluster {
    /// The cluster's name, which is its namespace on the hub too.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether the hub is about to forget the cluster.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// Equal in all that an add-on may depend on: a heartbeat gives the object a new version and changes nothing.
impl PartialEq for Cluster {
    fn eq(&self, other: &Self) -> bool {
        let facts = |cluster: &Self| {
            let meta = &cluster.metadata;
            (meta.name.clone(), meta.uid.clone(), meta.deletion_timestamp.clone())
        };
        facts(self) == facts(other)
            && self.labels == other.labels
            && self.annotations == other.annotations
            && self.kubernetes_version == other.kubernetes_version
            && self.claims == other.claims
    }
}

impl From<ManagedCluster> for Cluster {
    fn from(cluster: ManagedCluster) -> Self {
        let meta = cluster.metadata;
        Self {
            metadata: ObjectMeta {
                name: meta.name,
                uid: meta.uid,
                // The watch goes on from here; without it, it would list everything anew after each change.
                resource_version: meta.resource_version,
                deletion_timestamp: meta.deletion_timestamp,
                ..ObjectMeta::default()
            },
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.unwrap_or_default(),
            kubernetes_version: cluster.status.version.kubernetes,
            claims: cluster.status.cluster_claims,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_heartbeat_changes_nothing() {
        let cluster = |version: &str, status: &str| -> Cluster {
            serde_json::from_value(json!({
                "metadata": {"name": "edge-01", "uid": "1", "resourceVersion": version, "labels": {"a": "b"}},
                "status": {
                    "version": {"kubernetes": "v1.35.4"},
                    "conditions": [{"type": "ManagedClusterConditionAvailable", "status": status}],
                },
            }))
            .expect("a cluster")
        };
        assert_eq!(cluster("1", "True"), cluster("2", "Unknown"));
        assert_eq!(cluster("1", "True").kubernetes_version, "v1.35.4");
    }
}
