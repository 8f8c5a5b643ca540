//! Rotation, against a server that tells each client the serial number of its certificate.

mod mount;
mod servers;

use futures::{AsyncBufReadExt, StreamExt};
use tempfile::NamedTempFile;
use tokio::time::timeout;

use super::*;
use mount::{Mount, kubeconfig};
use servers::{Issued, authority, issue, proxy, serve};

const MOMENT: Duration = Duration::from_secs(10);
/// As long as OCM's names are: longer than X.509 foresees.
const AGENT: &str = "system:open-cluster-management:cluster:cluster1:addon:tenant-records:agent:tenant-records-agent";

async fn serial(client: &Client) -> String {
    client.request_text(Request::get("/").body(vec![]).unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_watches_go_on() {
    let authority = authority();
    let server = format!("https://{}", serve(&authority).await);
    let mut mount = Mount::new();
    mount.replace(&server, &authority, &issue(&authority, AGENT, 7));
    let (client, rotation) = mount.source().connect().await;
    assert_eq!(client.default_namespace(), "configuration");
    let mut credentials = rotation.credentials();
    assert_eq!(credentials.borrow().subject, format!("CN={AGENT}"));
    assert!(credentials.borrow().expires.is_some());
    let rotating = tokio::spawn(rotation.run());

    let watch = client.request_stream(Request::get("/watch").body(vec![]).unwrap()).await.unwrap();
    let mut lines = Box::pin(watch.lines());
    assert_eq!(lines.next().await.unwrap().unwrap(), "7");
    assert_eq!(serial(&client).await, "7");

    mount.replace(&server, &authority, &issue(&authority, AGENT, 8));
    timeout(MOMENT, credentials.changed()).await.unwrap().unwrap();
    assert_eq!(serial(&client).await, "8", "no pooled connection of the old certificate is used");
    for _ in 0..10 {
        assert_eq!(timeout(MOMENT, lines.next()).await.unwrap().unwrap().unwrap(), "7", "the watch goes on");
    }

    mount.replace(&server, &authority, &issue(&authority, "somebody else", 9));
    let end = RotationEnd::Identity { before: format!("CN={AGENT}"), after: "CN=somebody else".into() };
    assert_eq!(timeout(MOMENT, rotating).await.unwrap().unwrap(), end);
    assert_eq!(serial(&client).await, "8");
}

#[tokio::test]
async fn another_server_ends_the_rotation() {
    let authority = authority();
    let mut mount = Mount::new();
    let client = issue(&authority, AGENT, 7);
    mount.replace("https://127.0.0.1:1", &authority, &client);
    let (_client, rotation) = mount.source().connect().await;
    let rotating = tokio::spawn(rotation.run());
    mount.replace("https://127.0.0.1:2", &authority, &client);
    let end = timeout(MOMENT, rotating).await.unwrap().unwrap();
    assert!(matches!(end, RotationEnd::Server { .. }), "{end}");
}

#[tokio::test]
async fn what_cannot_be_used_leaves_things_as_they_are() {
    let authority = authority();
    let server = format!("https://{}", serve(&authority).await);
    let mut mount = Mount::new();
    let (one, two) = (issue(&authority, AGENT, 7), issue(&authority, AGENT, 8));
    mount.replace(&server, &authority, &one);
    let (client, mut rotation) = mount.source().connect().await;

    let mismatched = Issued { certificate: two.certificate, key: one.key };
    mount.replace(&server, &authority, &mismatched);
    assert!(rotation.reload().is_err(), "certificate and key don't belong together");
    mount.write(&[]);
    assert!(rotation.reload().is_err(), "the files are gone");
    assert_eq!(serial(&client).await, "7");

    mount.replace(&server, &authority, &Issued { certificate: mismatched.certificate, key: two.key });
    assert_eq!(rotation.reload().unwrap(), None);
    assert_eq!(serial(&client).await, "8");
}

#[tokio::test]
async fn waits_for_the_kubeconfig_and_follows_its_token() {
    let authority = authority();
    let mut mount = Mount::new();
    let source = mount.source();
    let connecting = tokio::spawn(async move { source.connect().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!connecting.is_finished());
    let kubeconfig = kubeconfig("https://127.0.0.1:1", "{tokenFile: token}");
    mount.write(&[("kubeconfig", &kubeconfig), ("ca.crt", &authority.pem()), ("token", "first")]);
    let (_client, mut rotation) = timeout(MOMENT, connecting).await.unwrap().unwrap();
    assert_eq!(*rotation.credentials().borrow(), Credentials::default());
    assert_eq!(rotation.reload().unwrap(), None);
    let files = rotation.loaded.files.clone();
    mount.write(&[("kubeconfig", &kubeconfig), ("ca.crt", &authority.pem()), ("token", "second")]);
    assert_eq!(rotation.reload().unwrap(), None);
    assert_ne!(rotation.loaded.files, files);
}

#[tokio::test]
async fn goes_through_the_proxy_of_the_kubeconfig() {
    let of_proxy = authority();
    let authority = authority();
    let server = serve(&authority).await;
    let of_proxy_file = NamedTempFile::new().unwrap();
    std::fs::write(of_proxy_file.path(), of_proxy.pem()).unwrap();
    for (scheme, authority_of_proxy) in [("http", None), ("https", Some(&of_proxy))] {
        let (proxy, mut requests) = proxy(authority_of_proxy).await;
        let kubeconfig = kubeconfig(&format!("https://{server}"), "{client-certificate: tls.crt, client-key: tls.key}");
        let with_proxy = format!("proxy-url: '{scheme}://user:secret@{proxy}', certificate-authority");
        let mut mount = Mount::new();
        let client = issue(&authority, AGENT, 7);
        mount.replace_kubeconfig(&kubeconfig.replace("certificate-authority", &with_proxy), &authority, &client);
        let source = mount.source().with_proxy_authorities(Some(of_proxy_file.path().to_owned()));
        let (client, _rotation) = source.connect().await;
        assert_eq!(serial(&client).await, "7", "the client's certificate is shown to the server");
        let asked = requests.recv().await.unwrap().to_lowercase();
        assert!(asked.starts_with(&format!("connect {server} ")), "{asked}");
        assert!(asked.contains("proxy-authorization: basic"), "{asked}");
    }
}
