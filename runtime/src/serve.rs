//! Health, readiness and metrics over HTTP.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use prometheus_client::registry::Registry;

use crate::checks::Checks;
use crate::shutdown::Shutdown;
use crate::tls::{CertificateError, SelfSigned};

/// What [`serve`] tells.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// What `/readyz` reports.
    pub ready: Checks,
    /// What `/metrics` reports.
    pub metrics: Arc<Registry>,
}

/// How [`serve`] protects its answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Plain HTTP.
    Plain,
    /// TLS with a certificate that the server makes for these DNS names or addresses, and renews before it ends.
    SelfSigned(Vec<String>),
}

/// Why [`serve`] ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Accepting connections failed.
    #[error("serving health and metrics: {0}")]
    Io(#[from] io::Error),
    /// There is no certificate to serve with.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(90 * 86_400);
const RENEW_AFTER: Duration = Duration::from_secs(60 * 86_400);
const RENEWAL_RETRY: Duration = Duration::from_secs(3600);
const STOP_WITHIN: Duration = Duration::from_secs(5);
const FIRST_REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// Answers `/healthz`, `/readyz` and `/metrics` until shutdown is requested.
pub async fn serve(
    listener: TcpListener,
    security: Security,
    endpoints: Endpoints,
    shutdown: &Shutdown,
) -> Result<(), ServeError> {
    let app = router(endpoints).into_make_service();
    let handle = Handle::<SocketAddr>::new();
    let stop = async {
        shutdown.requested().await;
        handle.graceful_shutdown(Some(STOP_WITHIN));
        std::future::pending().await
    };
    let server = axum_server::from_tcp(listener)?
        .handle(handle.clone())
        .http1_only()
        .first_request_timeout(FIRST_REQUEST_WITHIN);
    match security {
        Security::Plain => tokio::select! {
            ended = server.serve(app) => Ok(ended?),
            never = stop => never,
        },
        Security::SelfSigned(names) => {
            let tls = RustlsConfig::from_config(new_certificate(&names)?);
            let acceptor = axum_server::tls_rustls::RustlsAcceptor::new(tls.clone());
            tokio::select! {
                ended = server.acceptor(acceptor).serve(app) => Ok(ended?),
                never = stop => never,
                never = renew(&names, &tls) => never,
            }
        }
    }
}

async fn renew<T>(names: &[String], tls: &RustlsConfig) -> T {
    let mut wait = RENEW_AFTER;
    loop {
        tokio::time::sleep(wait).await;
        wait = match new_certificate(names) {
            Ok(config) => {
                tls.reload_from_config(config);
                tracing::info!("renewed the serving certificate");
                RENEW_AFTER
            }
            Err(error) => {
                tracing::error!(%error, "can't renew the serving certificate");
                RENEWAL_RETRY
            }
        };
    }
}

fn new_certificate(names: &[String]) -> Result<Arc<rustls::ServerConfig>, CertificateError> {
    SelfSigned::generate(names, SystemTime::now(), CERTIFICATE_LIFETIME)?.into_server_config()
}

fn router(endpoints: Endpoints) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(endpoints)
}

async fn ready(State(endpoints): State<Endpoints>) -> (StatusCode, String) {
    let ready = endpoints.ready.failing().is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, endpoints.ready.report())
}

async fn metrics(State(endpoints): State<Endpoints>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &endpoints.metrics) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use rustls::pki_types::ServerName;
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_rustls::TlsConnector;

    use super::*;

    async fn request(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn tls(address: SocketAddr) -> (impl AsyncRead + AsyncWrite + Unpin, Vec<u8>) {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(crate::test_tls::AcceptAll(provider)))
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, TcpStream::connect(address).await.unwrap()).await.unwrap();
        let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
        (stream, certificate)
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn answers_and_stops() {
        let (listener, address) = listener();
        let endpoints_ready = Checks::new();
        let check = endpoints_ready.add("watches");
        let mut registry = Registry::default();
        let counter = Counter::<u64>::default();
        registry.register("reconciles", "Runs", counter.clone());
        counter.inc();
        let endpoints = Endpoints { ready: endpoints_ready, metrics: Arc::new(registry) };
        let shutdown = Shutdown::new();
        let client = async {
            let connect = async || TcpStream::connect(address).await.unwrap();
            assert!(request(connect().await, "/healthz").await.starts_with("HTTP/1.1 200"));
            let answer = request(connect().await, "/readyz").await;
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("[-]watches: not yet"), "{answer}");
            check.pass();
            let answer = request(connect().await, "/readyz").await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[+]watches ok"), "{answer}");
            let answer = request(connect().await, "/metrics").await;
            assert!(answer.contains("reconciles_total 1") && answer.contains("# EOF"), "{answer}");
            shutdown.request();
        };
        let (served, ()) = tokio::join!(serve(listener, Security::Plain, endpoints, &shutdown), client);
        served.unwrap();
    }

    #[tokio::test]
    async fn serves_tls_and_renews_in_flight() {
        let (listener, address) = listener();
        let shutdown = Shutdown::new();
        let security = Security::SelfSigned(vec!["localhost".to_owned()]);
        let client = async {
            let (stream, first) = tls(address).await;
            assert!(request(stream, "/healthz").await.ends_with("ok\n"));
            let (_, again) = tls(address).await;
            assert_eq!(first, again);
            tokio::time::pause();
            tokio::time::advance(RENEW_AFTER + Duration::from_secs(1)).await;
            tokio::time::resume();
            let (stream, renewed) = tls(address).await;
            assert!(request(stream, "/healthz").await.ends_with("ok\n"));
            assert_ne!(first, renewed);
            shutdown.request();
        };
        let (served, ()) = tokio::join!(serve(listener, security, Endpoints::default(), &shutdown), client);
        served.unwrap();
    }
}
