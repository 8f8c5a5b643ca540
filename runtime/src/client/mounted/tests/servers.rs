//! An API server and a proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SerialNumber};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

pub(super) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(super) fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub(super) struct Issued {
    pub(super) certificate: rcgen::Certificate,
    pub(super) key: KeyPair,
}

pub(super) fn issue(authority: &Authority, name: &str, serial: u64) -> Issued {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(serial));
    let key = KeyPair::generate().unwrap();
    Issued { certificate: params.signed_by(&key, authority).unwrap(), key }
}

fn acceptor(authority: &Authority, clients: Arc<dyn ClientCertVerifier>) -> TlsAcceptor {
    let own = issue(authority, "server", 1);
    let key = PrivateKeyDer::try_from(own.key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![own.certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Answers each request with the serial number of the client's certificate; to `/watch`, again and again.
pub(super) async fn serve(authority: &Authority) -> SocketAddr {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
    let acceptor = acceptor(authority, clients);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(acceptor.clone(), stream));
        }
    });
    address
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let serial = {
        let (_, session) = stream.get_ref();
        let certificate = &session.peer_certificates().unwrap()[0];
        X509Certificate::from_der(certificate).unwrap().1.serial.to_string()
    };
    let mut request = [0; 4096];
    loop {
        let read = stream.read(&mut request).await?;
        if read == 0 {
            return Ok(());
        }
        let head = if request.starts_with(b"GET /watch") {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()
        } else {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{serial}", serial.len())
        };
        stream.write_all(head.as_bytes()).await?;
        while request.starts_with(b"GET /watch") {
            let line = format!("{serial}\n");
            stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await?;
            stream.flush().await?;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A proxy that tells what it is asked for; spoken to by TLS if it has an authority.
pub(super) async fn proxy(authority: Option<&Authority>) -> (SocketAddr, mpsc::Receiver<String>) {
    let acceptor = authority.map(|authority| acceptor(authority, WebPkiClientVerifier::no_client_auth()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, requests) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, asked) = (acceptor.clone(), asked.clone());
            tokio::spawn(async move {
                match acceptor {
                    Some(acceptor) => relay(acceptor.accept(stream).await?, asked).await,
                    None => relay(stream, asked).await,
                }
            });
        }
    });
    (address, requests)
}

async fn relay(mut client: impl AsyncRead + AsyncWrite + Unpin, asked: mpsc::Sender<String>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut server = TcpStream::connect(head.split(' ').nth(1).unwrap()).await?;
    asked.send(head).await.unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
