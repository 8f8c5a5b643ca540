//! What a mounted kubeconfig directory holds.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kube::Config;
use kube::config::{Cluster, Kubeconfig};
use x509_parser::pem::Pem;

use super::ClientError;
use super::proxy::{Proxy, ProxyEnvironment};
use super::transport::{self, HttpService, Protocol};

/// Who a client is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The subject of its certificate; empty for a token.
    pub subject: String,
    /// When its certificate ends.
    pub expires: Option<Timestamp>,
}

/// A directory's contents at one time.
#[derive(Debug)]
pub(super) struct Loaded {
    /// All files that count, to tell whether something changed.
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
    pub(super) config: Config,
    pub(super) proxy: Option<Proxy>,
    pub(super) credentials: Credentials,
}

impl Loaded {
    pub(super) fn connect(&self, protocol: Protocol) -> Result<HttpService, ClientError> {
        transport::connect(&self.config, self.proxy.as_ref(), protocol)
    }
}

/// Reads a directory. It blocks, which for a few small files in memory costs less than handing them to another thread.
pub(super) fn load(directory: &Path, proxy_authorities: Option<&Path>) -> Result<Loaded, ClientError> {
    let directory = &generation(directory);
    let path = directory.join("kubeconfig");
    let mut files = vec![(PathBuf::from("kubeconfig"), read(&path)?)];
    let mut kubeconfig = Kubeconfig::read_from(&path)?;
    for named in named_files(&kubeconfig) {
        let path = Path::new(named);
        files.push((path.strip_prefix(directory).unwrap_or(path).to_owned(), read(path)?));
    }
    // Taken out, because kube compares NO_PROXY with the proxy instead of the server.
    let proxy_url = current_cluster(&mut kubeconfig).and_then(|cluster| cluster.proxy_url.take());
    let config = Config::try_from(kubeconfig)?;
    let mut proxy = Proxy::choose(&config.cluster_url, proxy_url.as_deref(), &ProxyEnvironment::read())?;
    if let (Some(proxy), Some(path)) = (&mut proxy, proxy_authorities) {
        let pem = read(path)?;
        proxy.authorities = certificates(&pem)?.into_iter().map(|block| block.contents).collect();
        files.push((path.to_owned(), pem));
    }
    let credentials = match &config.auth_info.client_certificate {
        Some(certificate) => credentials(&read(Path::new(certificate))?)?,
        None => Credentials::default(),
    };
    Ok(Loaded { files, config, proxy, credentials })
}

/// The directory behind kubelet's symbolic link: it never changes, so that certificate and key read from it belong together.
fn generation(directory: &Path) -> PathBuf {
    fs::canonicalize(directory.join("..data")).unwrap_or_else(|_| directory.to_owned())
}

fn named_files(kubeconfig: &Kubeconfig) -> Vec<&String> {
    let users = kubeconfig.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
    let clusters = kubeconfig.clusters.iter().filter_map(|cluster| cluster.cluster.as_ref());
    let of_users = users.flat_map(|user| [&user.client_certificate, &user.client_key, &user.token_file]);
    of_users.chain(clusters.map(|cluster| &cluster.certificate_authority)).flatten().collect()
}

fn current_cluster(kubeconfig: &mut Kubeconfig) -> Option<&mut Cluster> {
    let current = kubeconfig.current_context.as_ref()?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == *current)?.context.as_ref()?;
    kubeconfig.clusters.iter_mut().find(|cluster| cluster.name == context.cluster)?.cluster.as_mut()
}

fn credentials(pem: &[u8]) -> Result<Credentials, ClientError> {
    let blocks = certificates(pem)?;
    let own = blocks.first().ok_or_else(|| ClientError::Certificate("there is none".to_owned()))?;
    let certificate = own.parse_x509().map_err(|error| ClientError::Certificate(error.to_string()))?;
    let expires = Timestamp::from_second(certificate.validity().not_after.timestamp()).ok();
    Ok(Credentials { subject: certificate.subject().to_string(), expires })
}

fn certificates(pem: &[u8]) -> Result<Vec<Pem>, ClientError> {
    Pem::iter_from_buffer(pem)
        .filter(|block| block.as_ref().map_or(true, |block| block.label == "CERTIFICATE"))
        .collect::<Result<_, _>>()
        .map_err(|error| ClientError::Certificate(error.to_string()))
}

fn read(path: &Path) -> Result<Vec<u8>, ClientError> {
    fs::read(path).map_err(|source| ClientError::Read { path: path.display().to_string(), source })
}
