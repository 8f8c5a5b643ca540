//! Elections over a Lease in memory that behaves as an API server does.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use kube::client::Body;
use serde_json::json;
use tokio::time::{advance, sleep, timeout};

use super::*;
use crate::shutdown::Shutdown;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Lease>,
    version: u64,
    cut_off: Vec<&'static str>,
}

impl Server {
    fn client(&self, of: &'static str) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let method = request.method().clone();
                let body = request.into_body().collect_bytes().await?;
                if server.0.lock().unwrap().cut_off.contains(&of) {
                    std::future::pending::<()>().await;
                }
                Ok::<_, tower::BoxError>(server.answer(&method, &body))
            }
        });
        Client::new(service, "ns")
    }

    fn answer(&self, method: &Method, body: &[u8]) -> Response<Body> {
        let mut stored = self.0.lock().unwrap();
        let answer = |code: u16, body: Vec<u8>| Response::builder().status(code).body(Body::from(body)).unwrap();
        let refuse = |code: u16| {
            let reason = if code == 404 { "NotFound" } else { "Conflict" };
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": ""});
            answer(code, status.to_string().into_bytes())
        };
        if *method != Method::GET {
            let mut sent: Lease = serde_json::from_slice(body).unwrap();
            let current = stored.lease.as_ref().map(|lease| lease.metadata.resource_version.clone());
            match current {
                None if *method == Method::PUT => return refuse(404),
                Some(_) if *method == Method::POST => return refuse(409),
                Some(version) if version != sent.metadata.resource_version => return refuse(409),
                _ => {}
            }
            stored.version += 1;
            sent.metadata.resource_version = Some(stored.version.to_string());
            stored.lease = Some(sent);
        }
        match &stored.lease {
            Some(lease) => answer(200, serde_json::to_vec(lease).unwrap()),
            None => refuse(404),
        }
    }

    fn holder(&self) -> Option<String> {
        self.0.lock().unwrap().lease.as_ref()?.spec.as_ref()?.holder_identity.clone()
    }

    fn write(&self, change: impl FnOnce(&mut Stored)) {
        change(&mut self.0.lock().unwrap());
    }
}

struct Replica {
    leadership: Leadership,
    shutdown: Shutdown,
    task: tokio::task::JoinHandle<Result<(), LeaseLost>>,
}

fn start(server: &Server, name: &'static str) -> Replica {
    let (leadership, election) = elect(server.client(name), ElectionConfig::new("ns", "lease", name));
    let shutdown = Shutdown::new();
    let task = tokio::spawn({
        let shutdown = shutdown.clone();
        async move { election.run(&shutdown).await }
    });
    Replica { leadership, shutdown, task }
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_a_graceful_stop_hands_over_at_once() {
    let server = Server::default();
    let a = start(&server, "a");
    a.leadership.acquired().await;
    let b = start(&server, "b");
    sleep(60 * SECOND).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    a.shutdown.request();
    assert_eq!(a.task.await.unwrap(), Ok(()));
    assert!(!a.leadership.is_leader());
    a.leadership.lost().await;
    timeout(3 * SECOND, b.leadership.acquired()).await.unwrap();
    assert_eq!(server.holder().as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_gives_up_before_another_takes_over() {
    let server = Server::default();
    let a = start(&server, "a");
    a.leadership.acquired().await;
    let b = start(&server, "b");
    sleep(5 * SECOND).await;
    server.write(|stored| stored.cut_off = vec!["a"]);
    let cut = Instant::now();
    a.leadership.lost().await;
    assert!(cut.elapsed() <= 10 * SECOND && !a.leadership.is_leader());
    assert!(!b.leadership.is_leader());
    assert!(matches!(a.task.await.unwrap(), Err(LeaseLost::NotRenewed(_))));
    b.leadership.acquired().await;
    assert!(cut.elapsed() <= 20 * SECOND, "{:?}", cut.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_restarted_container_goes_on_at_once() {
    let server = Server::default();
    let a = start(&server, "a");
    a.leadership.acquired().await;
    a.task.abort();
    sleep(SECOND).await;
    assert!(!a.leadership.is_leader());
    let restarted = start(&server, "a");
    timeout(SECOND, restarted.leadership.acquired()).await.unwrap();
    let transitions = server.0.lock().unwrap().lease.clone().unwrap().spec.unwrap().lease_transitions;
    assert_eq!(transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_leadership() {
    let server = Server::default();
    let a = start(&server, "a");
    a.leadership.acquired().await;
    server.write(|stored| {
        let lease = stored.lease.as_mut().unwrap();
        lease.spec.as_mut().unwrap().holder_identity = Some("thief".into());
        lease.metadata.resource_version = Some("stolen".into());
    });
    assert_eq!(timeout(3 * SECOND, a.task).await.unwrap().unwrap(), Err(LeaseLost::Taken("thief".into())));
    a.leadership.lost().await;
}

#[tokio::test(start_paused = true)]
async fn a_foreign_write_and_a_deletion_do_not_end_leadership() {
    let server = Server::default();
    let a = start(&server, "a");
    a.leadership.acquired().await;
    server.write(|stored| stored.lease.as_mut().unwrap().metadata.resource_version = Some("labelled".into()));
    sleep(5 * SECOND).await;
    assert!(a.leadership.is_leader());
    server.write(|stored| stored.lease = None);
    sleep(20 * SECOND).await;
    assert!(a.leadership.is_leader());
    assert_eq!(server.holder().as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_slept_does_not_believe_that_it_leads() {
    let server = Server::default();
    let a = start(&server, "a");
    a.leadership.acquired().await;
    assert!(a.leadership.is_leader());
    server.write(|stored| stored.cut_off = vec!["a"]);
    advance(11 * SECOND).await;
    assert!(!a.leadership.is_leader(), "before any task could notice");
}

#[tokio::test(start_paused = true)]
async fn without_rivals_leadership_is_for_ever() {
    let leadership = Leadership::always();
    leadership.acquired().await;
    assert!(timeout(86_400 * SECOND, leadership.lost()).await.is_err());
    assert!(leadership.is_leader());
}
