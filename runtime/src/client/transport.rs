//! The HTTP stack beneath a client.

use std::path::Path;
use std::time::Duration;

use http::header::{HeaderName, USER_AGENT};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt};
use kube::config::AuthInfo;
use tower::timeout::TimeoutLayer;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use super::ClientError;
use super::proxy::Proxy;

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: a connection for every watch and for every request at a time. Best for few watches.
    Http1,
    /// HTTP/2 where the server has it: watches and requests share a connection.
    Http2,
}

pub(super) type HttpService = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// An API server gives up on its own after 60 s; only a watch goes on after its first byte.
const ANSWER_WITHIN: Duration = Duration::from_secs(65);
/// A peer that vanished without a word is noticed after at most a minute, also under a silent watch.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
/// The same for a peer that doesn't acknowledge what was sent.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// A stack for that configuration. It retries nothing by itself: its users do, with a back-off of their own.
pub(super) fn connect(config: &Config, proxy: Option<&Proxy>, protocol: Protocol) -> Result<HttpService, ClientError> {
    let mut config = config.clone();
    config.headers.extend(user_agent());
    let config = &config;
    let Some(proxy) = proxy else { return stack(config, tcp(), protocol) };
    match proxy.uri().scheme_str() {
        Some("socks5") => {
            let mut socks = SocksV5::new(proxy.uri().clone(), tcp());
            if let Some((user, password)) = proxy.user_and_password() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            stack(config, socks, protocol)
        }
        Some("https") => {
            // Our credentials are for the API server alone.
            let mut anonymous = config.clone();
            anonymous.auth_info = AuthInfo::default();
            if !proxy.authorities.is_empty() {
                anonymous.root_cert.get_or_insert_default().extend_from_slice(&proxy.authorities);
            }
            let tls = anonymous.rustls_client_config()?;
            let connector =
                HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().wrap_connector(tcp());
            stack(config, tunnel(proxy, connector), protocol)
        }
        _ => stack(config, tunnel(proxy, tcp()), protocol),
    }
}

/// The program's name and version, for the API server's audit log.
fn user_agent() -> Option<(HeaderName, HeaderValue)> {
    let program = std::env::args().next()?;
    let name = Path::new(&program).file_name()?.to_str()?;
    let value = HeaderValue::try_from(format!("{name}/{}", env!("CARGO_PKG_VERSION"))).ok()?;
    Some((USER_AGENT, value))
}

fn tunnel<C>(proxy: &Proxy, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    }
}

fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.set_keepalive(Some(KEEPALIVE_AFTER));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    connector
}

fn stack<C>(config: &Config, connector: C, protocol: Protocol) -> Result<HttpService, ClientError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(Some(KEEPALIVE_AFTER))
        .build(https(config, connector, protocol)?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(TimeoutLayer::new(ANSWER_WITHIN))
        .service(client)
        .map_err(BoxError::from);
    Ok(BoxCloneSyncService::new(service))
}

fn https<C>(config: &Config, connector: C, protocol: Protocol) -> Result<HttpsConnector<C>, ClientError> {
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let server = name.clone().try_into().map_err(|_| ClientError::ServerName(name.clone()))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(server));
    }
    Ok(match protocol {
        Protocol::Http1 => builder.enable_http1().wrap_connector(connector),
        Protocol::Http2 => builder.enable_all_versions().wrap_connector(connector),
    })
}
