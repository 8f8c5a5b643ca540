//! Carries out what the engine decides: writes of pages and roots, and fresh reads of ManagedClusters.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use tenant_records_api::ocm::ManagedCluster;
use tenant_records_api::{TenantDeploymentRecord, TenantDeploymentRecordPage};
use tenant_records_runtime::{Leadership, ObjectKey};

use crate::engine::{Flush, PageWrite, Read, Written};
use crate::index::rows::ClusterFacts;
use crate::watches::without_managed_fields;

/// The longest time that a single request may take.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Writes to the API server, while this process leads.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    leadership: Leadership,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    TimedOut(#[from] tokio::time::error::Elapsed),
    #[error("this process doesn't lead any more")]
    NotLeading,
}

impl Writer {
    /// A writer that writes while `leadership` lasts.
    pub fn new(client: Client, leadership: Leadership) -> Self {
        Self { client, leadership }
    }

    /// Writes a record's pages in order, then its root, until something can't be written; that is told, logged and
    /// left to the next try with all that follows.
    pub async fn flush(&self, flush: Flush) -> Written {
        let wrote = flush.page_keys().collect();
        let mut written = Written { key: flush.key.clone(), wrote, ..Written::default() };
        for page in flush.pages {
            let name = page.name().to_owned();
            if let Err(error) = self.write_page(&flush.key, page, &mut written).await {
                report(&flush.key, &format!("page {name}"), &error);
                written.failed = true;
                return written;
            }
        }
        if let Some((resource_version, status)) = flush.status {
            let record = TenantDeploymentRecord {
                metadata: ObjectMeta {
                    name: Some(flush.key.name.clone()),
                    namespace: Some(flush.key.namespace.clone()),
                    uid: Some(flush.uid),
                    resource_version: Some(resource_version),
                    ..ObjectMeta::default()
                },
                status: Some(*status),
                ..TenantDeploymentRecord::default()
            };
            match self.write_status(&record).await {
                Ok(record) => written.record = Some(Arc::new(without_managed_fields(record))),
                Err(error) => {
                    report(&flush.key, "status", &error);
                    written.failed = !is_gone(&error);
                }
            }
        }
        written
    }

    /// Reads a ManagedCluster from the API server, not from a cache; none when it doesn't exist.
    pub async fn read(&self, read: &Read) -> Result<Option<ClusterFacts>, kube::Error> {
        let cluster = Api::<ManagedCluster>::all(self.client.clone()).get_opt(&read.cluster).await?;
        Ok(cluster.as_ref().map(ClusterFacts::from))
    }

    async fn write_page(&self, record: &ObjectKey, page: PageWrite, written: &mut Written) -> Result<(), Error> {
        let pages = Api::<TenantDeploymentRecordPage>::namespaced(self.client.clone(), &record.namespace);
        let name = page.name().to_owned();
        match page {
            PageWrite::Create(page) => {
                written.pages.push(self.request(pages.create(&PostParams::default(), &page)).await?);
            }
            PageWrite::Replace(page) => {
                written.pages.push(self.request(pages.replace(&name, &PostParams::default(), &page)).await?);
            }
            PageWrite::Delete { name, uid, resource_version } => {
                let only_this = Preconditions { uid: Some(uid), resource_version: Some(resource_version) };
                let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
                match self.request(pages.delete(&name, &params)).await {
                    Err(error) if !is_gone(&error) => return Err(error),
                    _ => written.deleted.push(name),
                }
            }
        }
        Ok(())
    }

    async fn write_status(&self, record: &TenantDeploymentRecord) -> Result<TenantDeploymentRecord, Error> {
        let namespace = record.metadata.namespace.as_deref().unwrap_or_default();
        let name = record.metadata.name.as_deref().unwrap_or_default();
        let records = Api::<TenantDeploymentRecord>::namespaced(self.client.clone(), namespace);
        self.request(records.replace_status(name, &PostParams::default(), record)).await
    }

    async fn request<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
        if !self.leadership.is_leader() {
            return Err(Error::NotLeading);
        }
        Ok(tokio::time::timeout(TIMEOUT, request).await??)
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Api(kube::Error::Api(status)) if status.code == 404)
}

/// A conflict is no fault: somebody wrote first, and the next fold sees what.
fn report(record: &ObjectKey, what: &str, error: &Error) {
    match error {
        Error::Api(kube::Error::Api(status)) if status.code == 409 => {
            tracing::debug!(%record, what, "somebody wrote first; trying again");
        }
        error if is_gone(error) => tracing::debug!(%record, what, "gone; nothing to write"),
        error => tracing::warn!(%record, what, %error, "can't write; trying again"),
    }
}
