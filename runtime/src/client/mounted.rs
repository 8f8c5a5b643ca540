//! A kubeconfig in a mounted Secret, whose contents are replaced while the process runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt};

use super::files::{Loaded, load};
use super::transport::{HttpService, Protocol};
use super::{ClientError, Credentials};

const WAIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_secs(30);

/// A directory with a `kubeconfig` and the files that it names beside it.
#[derive(Clone, Debug)]
pub struct MountedKubeconfig {
    directory: PathBuf,
    proxy_authorities: Option<PathBuf>,
    protocol: Protocol,
    poll: Duration,
}

impl MountedKubeconfig {
    /// That of a directory that may still be empty.
    pub fn new(directory: impl Into<PathBuf>, protocol: Protocol) -> Self {
        Self { directory: directory.into(), proxy_authorities: None, protocol, poll: POLL }
    }

    /// Accepts a proxy that is spoken to by TLS also with a certificate of an authority in that file.
    pub fn with_proxy_authorities(self, file: Option<PathBuf>) -> Self {
        Self { proxy_authorities: file, ..self }
    }

    /// Waits until the directory holds a usable kubeconfig, and makes a client of it.
    ///
    /// The client works with whatever the directory holds later as long as the [`Rotation`] runs.
    pub async fn connect(&self) -> (Client, Rotation) {
        let mut last = String::new();
        loop {
            match self.try_connect() {
                Ok(connected) => return connected,
                Err(error) => {
                    let error = error.to_string();
                    if error != last {
                        tracing::info!(directory = %self.directory.display(), reason = %error, "waiting for a kubeconfig");
                        last = error;
                    }
                    tokio::time::sleep(WAIT).await;
                }
            }
        }
    }

    fn load(&self) -> Result<Loaded, ClientError> {
        load(&self.directory, self.proxy_authorities.as_deref())
    }

    fn try_connect(&self) -> Result<(Client, Rotation), ClientError> {
        let loaded = self.load()?;
        let service = Current(Arc::new(Mutex::new(loaded.connect(self.protocol)?)));
        let client = Client::new(service.clone(), loaded.config.default_namespace.clone());
        let (credentials, _) = watch::channel(loaded.credentials.clone());
        let rotation = Rotation { source: self.clone(), loaded, service, credentials };
        Ok((client, rotation))
    }
}

/// Keeps a client's credentials those of its directory.
#[derive(Debug)]
pub struct Rotation {
    source: MountedKubeconfig,
    loaded: Loaded,
    service: Current,
    credentials: watch::Sender<Credentials>,
}

/// Why a client can't follow its directory any further: the process must start afresh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationEnd {
    /// Rights, and with them what the process may have seen, belong to another identity now.
    #[error("the client certificate's subject changed from {before:?} to {after:?}")]
    Identity {
        /// The subject until now; empty without a certificate.
        before: String,
        /// The subject in the directory now.
        after: String,
    },
    /// Resource versions and everything learnt from the old server mean nothing to the new one.
    #[error("the server changed from {before} to {after}")]
    Server {
        /// The URL until now.
        before: String,
        /// The URL in the directory now.
        after: String,
    },
}

impl Rotation {
    /// The credentials in use, now and after each rotation.
    pub fn credentials(&self) -> watch::Receiver<Credentials> {
        self.credentials.subscribe()
    }

    /// Follows the directory until that isn't possible any more.
    ///
    /// Requests made after a change use new connections with the new certificate, token, CAs and proxy; answers and
    /// watches in progress go on undisturbed. What can't be read leaves things as they are.
    pub async fn run(mut self) -> RotationEnd {
        loop {
            // Kubelet replaces the files through a symbolic link, which file notification doesn't see.
            tokio::time::sleep(self.source.poll).await;
            match self.reload() {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(error) => tracing::warn!(%error, "can't reload the kubeconfig; the credentials stay as they were"),
            }
        }
    }

    fn reload(&mut self) -> Result<Option<RotationEnd>, ClientError> {
        let now = self.source.load()?;
        if now.files == self.loaded.files {
            return Ok(None);
        }
        if let Some(end) = end(&self.loaded, &now) {
            return Ok(Some(end));
        }
        self.service.replace(now.connect(self.source.protocol)?);
        tracing::info!(subject = %now.credentials.subject, expires = ?now.credentials.expires, "credentials rotated");
        self.credentials.send_replace(now.credentials.clone());
        self.loaded = now;
        Ok(None)
    }
}

fn end(before: &Loaded, after: &Loaded) -> Option<RotationEnd> {
    if before.config.cluster_url != after.config.cluster_url {
        return Some(RotationEnd::Server {
            before: before.config.cluster_url.to_string(),
            after: after.config.cluster_url.to_string(),
        });
    }
    if before.credentials.subject != after.credentials.subject {
        return Some(RotationEnd::Identity {
            before: before.credentials.subject.clone(),
            after: after.credentials.subject.clone(),
        });
    }
    None
}

/// The stack that requests go through now.
#[derive(Clone, Debug)]
struct Current(Arc<Mutex<HttpService>>);

impl Current {
    fn replace(&self, service: HttpService) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = service;
    }
}

impl Service<Request<Body>> for Current {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(service.oneshot(request))
    }
}

#[cfg(test)]
mod tests;
