//! Calls to the hub's API server: each with a time limit, writes only while this process leads.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenant_records_runtime::{Leadership, ObjectKey};

use crate::change::Change;
use crate::metrics::Metrics;
use crate::status::status_patch;

/// How long a call may take, repetitions by the client included.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// How often a write to a status is tried on ever newer states of the object.
const STATUS_ATTEMPTS: usize = 5;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HubError {
    /// The API server's answer, or none.
    #[error("can't {action}: {}", cause(source))]
    Api {
        /// What was to be done.
        action: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// No answer in time.
    #[error("can't {action}: no answer within {} s", CALL_LIMIT.as_secs())]
    Timeout {
        /// What was to be done.
        action: String,
    },
    /// Another process may be writing now.
    #[error("can't {action}: this process doesn't lead")]
    NotLeading {
        /// What was to be done.
        action: String,
    },
}

impl HubError {
    /// The API server's status code.
    fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => match &**source {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout { .. } | Self::NotLeading { .. } => None,
        }
    }

    /// Whether the write was based on an outdated state: a second attempt on a newer one may succeed.
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(self.code(), Some(404 | 409))
    }

    /// Whether the API server refused, and would refuse again: for lack of a right, or because the object isn't valid.
    pub(crate) fn is_refusal(&self) -> bool {
        self.code().is_some_and(|code| (400..500).contains(&code) && !matches!(code, 404 | 409 | 429))
    }

    fn already_exists(&self) -> bool {
        match self {
            Self::Api { source, .. } => matches!(&**source, kube::Error::Api(status) if status.is_already_exists()),
            Self::Timeout { .. } | Self::NotLeading { .. } => false,
        }
    }

    fn outcome(&self) -> &'static str {
        match self {
            _ if self.is_outdated() => "conflict",
            Self::NotLeading { .. } => "not_leading",
            Self::Api { .. } | Self::Timeout { .. } => "error",
        }
    }
}

/// The API server's own words, where there are any; the client's error repeats them twice.
fn cause(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => error.to_string(),
    }
}

/// What came of a write to an object that this manager owns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is written.
    Yes,
    /// An object of that name exists already.
    NameTaken,
}

/// The hub's API server, for one manager.
#[derive(Clone)]
pub(crate) struct Hub {
    client: Client,
    leadership: Leadership,
    metrics: Metrics,
    manager: String,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl Hub {
    pub(crate) fn new(client: Client, leadership: Leadership, metrics: Metrics, manager: &str) -> Self {
        Self { client, leadership, metrics, manager: manager.into() }
    }

    /// Reads an object as it is now.
    pub(crate) async fn read<K>(&self, key: &ObjectKey) -> Result<Option<K>, HubError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        limited(format!("read {} {key}", K::kind(&())), api.get_opt(&key.name)).await
    }

    /// Carries out a change of an object that this manager owns. A deletion of what is gone succeeds.
    pub(crate) async fn write(
        &self,
        kind: &ApiResource,
        namespace: &str,
        change: &Change,
    ) -> Result<Written, HubError> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, kind);
        let named = |verb: &str| format!("{verb} {} {namespace}/{}", kind.kind, change.name());
        let result = match change {
            Change::Create { object, .. } => {
                let params = PostParams { field_manager: Some(self.manager.clone()), ..PostParams::default() };
                self.writing(kind, named("create"), async {
                    let object = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
                    api.create(&params, &object).await.map(drop)
                })
                .await
            }
            Change::Update { name, patch } => {
                self.writing(kind, named("change"), async {
                    api.patch(name, &self.patch_params(), &Patch::Merge(patch)).await.map(drop)
                })
                .await
            }
            Change::Delete { name, uid, resource_version } => {
                let params = DeleteParams::default().preconditions(Preconditions {
                    uid: Some(uid.clone()),
                    resource_version: Some(resource_version.clone()),
                });
                self.writing(kind, named("delete"), async { api.delete(name, &params).await.map(drop) }).await
            }
        };
        match (change, result) {
            (_, Ok(())) => Ok(Written::Yes),
            (Change::Create { .. }, Err(error)) if error.already_exists() => Ok(Written::NameTaken),
            (Change::Delete { .. }, Err(error)) if error.code() == Some(404) => Ok(Written::Yes),
            (_, Err(error)) => Err(error),
        }
    }

    /// Applies fields of a cluster-scoped object server-side; others that hold them lose them. `fields` name the UID, so
    /// that the object is never made by this.
    pub(crate) async fn apply(&self, kind: &ApiResource, name: &str, fields: &Value) -> Result<(), HubError> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), kind);
        let params = PatchParams::apply(&self.manager).force();
        self.writing(kind, format!("register with {} {name}", kind.kind), async {
            api.patch(name, &params, &Patch::Apply(fields)).await.map(drop)
        })
        .await
    }

    /// Edits the status of the object with that UID, on its present state. Whatever `edit` changes outside the status is
    /// dropped. Does nothing when the object is gone, or when there is nothing to change.
    pub(crate) async fn edit_status(
        &self,
        kind: &ApiResource,
        key: &ObjectKey,
        uid: &str,
        edit: impl Fn(&mut Value) + Send,
    ) -> Result<(), HubError> {
        let api: Api<DynamicObject> = match key.namespace.as_str() {
            "" => Api::all_with(self.client.clone(), kind),
            namespace => Api::namespaced_with(self.client.clone(), namespace, kind),
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let read = limited(format!("read {} {key}", kind.kind), api.get_opt(&key.name)).await?;
            let Some(object) = read.filter(|object| object.metadata.uid.as_deref() == Some(uid)) else { return Ok(()) };
            let mut edited = object.data.clone();
            edit(&mut edited);
            let Some(patch) = status_patch(&object.metadata, &object.data, &edited) else { return Ok(()) };
            let written = self
                .writing(kind, format!("write the status of {} {key}", kind.kind), async {
                    api.patch_status(&key.name, &self.patch_params(), &Patch::Merge(&patch)).await.map(drop)
                })
                .await;
            match written {
                Err(error) if error.is_outdated() && attempts < STATUS_ATTEMPTS => {}
                other => return other,
            }
        }
    }

    /// Writes the decision on a request for a certificate.
    pub(crate) async fn decide(&self, kind: &ApiResource, name: &str, patch: &Value) -> Result<(), HubError> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), kind);
        self.writing(kind, format!("decide on {} {name}", kind.kind), async {
            api.patch_subresource("approval", name, &self.patch_params(), &Patch::Merge(patch)).await.map(drop)
        })
        .await
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() }
    }

    /// A write, while this process leads, and counted.
    async fn writing(
        &self,
        kind: &ApiResource,
        action: String,
        call: impl Future<Output = kube::Result<()>>,
    ) -> Result<(), HubError> {
        let result = if self.leadership.is_leader() {
            limited(action, call).await
        } else {
            Err(HubError::NotLeading { action })
        };
        self.metrics.wrote(&kind.plural, result.as_ref().map_or_else(HubError::outcome, |()| "done"));
        result
    }
}

async fn limited<T>(action: String, call: impl Future<Output = kube::Result<T>>) -> Result<T, HubError> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(HubError::Api { action, source: Box::new(source) }),
        Err(_) => Err(HubError::Timeout { action }),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn errors_say_what_and_why_once() {
        let api = |code: u16, reason: &str| HubError::Api {
            action: "create ManifestWork edge-01/addon-demo-deploy-0".into(),
            source: Box::new(kube::Error::Api(Box::new(Status::failure("no way", reason).with_code(code)))),
        };
        assert_eq!(api(403, "Forbidden").to_string(), "can't create ManifestWork edge-01/addon-demo-deploy-0: no way");
        assert!(api(403, "Forbidden").is_refusal() && !api(403, "Forbidden").is_outdated());
        assert!(api(409, "Conflict").is_outdated() && !api(409, "Conflict").already_exists());
        assert!(api(409, "AlreadyExists").already_exists());
        for transient in [api(429, "TooManyRequests"), api(503, "ServiceUnavailable")] {
            assert!(!transient.is_refusal() && !transient.is_outdated());
        }
    }
}
