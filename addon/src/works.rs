//! Deploy works: the ManifestWorks `addon-<add-on>-deploy-<i>` that bring an add-on's manifests to a cluster.
//!
//! ```text
//! manifests ─▶ Manifest ─▶ split ─▶ WorkSpec ─┐
//!                            ▲                ├─▶ plan ─▶ changes to write
//! watched works ─▶ DeployedWork ──────────────┘
//! ```
//! A manifest stays in the work in which it is: the work agent removes what leaves a work, and with a
//! CustomResourceDefinition all its objects would go.

mod deployed;
mod manifest;
mod plan;
mod spec;
mod split;

pub use deployed::{Applied, DeployedWork, Ownership};
pub use manifest::{Manifest, ManifestKey};
pub use plan::{DeployRequest, Plan, plan};
pub use spec::{
    FeedbackRule, JsonPath, ManifestConfig, ResourceIdentifier, ServerSideApply, UpdateStrategy, workload_feedback,
};

/// Why there can't be deploy works as they should be.
#[derive(Debug, thiserror::Error)]
pub enum WorksError {
    /// A manifest isn't a Kubernetes object with a name of its own.
    #[error("manifest {0} isn't an object with apiVersion, kind and metadata.name")]
    NotAnObject(usize),
    /// Two manifests are the same object.
    #[error("{0} is among the manifests twice")]
    Duplicate(ManifestKey),
    /// A manifest is larger than OCM lets a whole work be.
    #[error("{manifest} has {size} bytes; OCM takes at most {limit}")]
    ManifestTooLarge {
        /// The manifest.
        manifest: ManifestKey,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A work has grown above OCM's limit by manifests that may not be moved.
    #[error("the manifests of ManifestWork {0} that can't be moved to another one exceed OCM's limit")]
    WorkTooLarge(String),
    /// A work of that name exists that somebody else made.
    #[error(
        "ManifestWork {0} exists and wasn't made by this manager for this add-on; it is left alone, please rename or delete it"
    )]
    NameTaken(String),
    /// A work of that name is left from an earlier time when the add-on was enabled.
    #[error("ManifestWork {0} of a former ManagedClusterAddOn has to be removed first")]
    Former(String),
    /// A work is being deleted that holds wanted manifests.
    #[error("ManifestWork {0} is being deleted; its manifests come back when it is gone")]
    BeingDeleted(String),
}

/// The name of a deploy work.
pub fn deploy_work_name(addon: &str, index: u32) -> String {
    format!("addon-{addon}-deploy-{index}")
}

/// The index of a work that has the name of one of an add-on's deploy works.
pub fn deploy_work_index(addon: &str, name: &str) -> Option<u32> {
    let digits = name.strip_prefix("addon-")?.strip_prefix(addon)?.strip_prefix("-deploy-")?;
    let index = digits.parse().ok()?;
    (deploy_work_name(addon, index) == name).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(deploy_work_index("demo", &deploy_work_name("demo", 12)), Some(12));
        for other in [
            "addon-demo-deploy",
            "addon-demo-deploy-",
            "addon-demo-deploy-01",
            "addon-demo-deploy-+1",
            "addon-demo-deploy-hosting-c1-0",
            "addon-demo-x-deploy-0",
            "addon-demo-pre-delete",
        ] {
            assert_eq!(deploy_work_index("demo", other), None, "{other}");
        }
    }
}
