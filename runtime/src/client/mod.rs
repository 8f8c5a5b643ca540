//! Kubernetes clients that notice dead connections and follow rotating credentials.

mod files;
mod mounted;
mod proxy;
mod transport;

use kube::{Client, Config};

pub use files::Credentials;
pub use mounted::{MountedKubeconfig, Rotation, RotationEnd};
pub use transport::Protocol;

use proxy::Proxy;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Neither a kubeconfig nor a service account was found.
    #[error(transparent)]
    Infer(#[from] kube::config::InferConfigError),
    /// The kubeconfig is incomplete or names files that can't be read.
    #[error("reading the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A file beside the kubeconfig can't be read.
    #[error("reading {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificate, key or token isn't usable.
    #[error("using the credentials: {0}")]
    Credentials(#[from] kube::Error),
    /// A certificate can't be decoded.
    #[error("decoding a certificate: {0}")]
    Certificate(String),
    /// The proxy's URL isn't usable.
    #[error("proxy {0:?}: give an http, https or socks5 URL with a host")]
    Proxy(String),
    /// The server's name for TLS isn't one.
    #[error("TLS server name {0:?} isn't valid")]
    ServerName(String),
}

/// A client with the credentials that the process has: those of a kubeconfig (`KUBECONFIG` or `~/.kube/config`), else of
/// its service account.
pub async fn infer(protocol: Protocol) -> Result<Client, ClientError> {
    let config = Config::infer().await?;
    let proxy = config.proxy_url.as_ref().map(|url| Proxy::parse(&url.to_string())).transpose()?;
    let namespace = config.default_namespace.clone();
    Ok(Client::new(transport::connect(&config, proxy.as_ref(), protocol)?, namespace))
}
