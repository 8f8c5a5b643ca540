use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A managed cluster that keeps what is written, and the second in which it was.
#[derive(Clone, Default)]
struct Member(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    leases: Vec<(u64, Value)>,
    refusing: bool,
}

impl Member {
    fn client(&self, start: Instant) -> Client {
        let member = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let member = member.clone();
            async move {
                let path = request.uri().path().to_owned();
                let query = request.uri().query().unwrap_or_default().to_owned();
                let body = request.into_body().collect_bytes().await.unwrap();
                let mut kept = member.0.lock().unwrap();
                let answer = |code: u16, body: Value| {
                    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
                };
                if kept.refusing {
                    let status = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
                    return Ok::<_, Infallible>(answer(403, status));
                }
                if path == "/api/v1/namespaces/addon/serviceaccounts/tenant-records-agent" {
                    let metadata = json!({"name": "tenant-records-agent", "namespace": "addon", "uid": "u-1"});
                    return Ok(answer(200, json!({"metadata": metadata})));
                }
                assert_eq!(path, "/apis/coordination.k8s.io/v1/namespaces/addon/leases/tenant-records");
                assert!(query.contains("fieldManager=tenant-records-agent"), "{query}");
                let lease: Value = serde_json::from_slice(&body).unwrap();
                kept.leases.push((start.elapsed().as_secs(), lease.clone()));
                Ok(answer(200, lease))
            }
        });
        Client::new(service, "addon")
    }

    fn times(&self) -> Vec<u64> {
        self.0.lock().unwrap().leases.iter().map(|(second, _)| *second).collect()
    }
}

fn start(member: &Member) -> (tenant_records_runtime::Check, Metrics) {
    let fit = Checks::new();
    let hub = fit.add("hub");
    let metrics = Metrics::default();
    let heartbeat = Heartbeat::new(member.client(Instant::now()), "addon".to_owned(), fit, metrics.clone());
    tokio::spawn(heartbeat.run());
    (hub, metrics)
}

#[test]
fn the_lease_is_what_ocm_reads() {
    let owner = OwnerReference { name: AGENT.to_owned(), uid: "u-1".to_owned(), ..OwnerReference::default() };
    let lease = serde_json::to_value(lease(owner, Timestamp::from_second(1_800_000_000).unwrap())).unwrap();
    assert_eq!(lease["metadata"]["name"], "tenant-records");
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], "u-1");
    let spec = json!({"leaseDurationSeconds": 60, "renewTime": "2027-01-15T08:00:00.000000Z"});
    assert_eq!(lease["spec"], spec);
}

#[tokio::test(start_paused = true)]
async fn renews_at_once_and_within_each_minute() {
    let member = Member::default();
    let (hub, metrics) = start(&member);
    hub.pass();
    sleep(600 * SECOND).await;
    let times = member.times();
    assert!(times[0] <= 1, "{times:?}");
    assert!(times.windows(2).all(|pair| (48..=60).contains(&(pair[1] - pair[0]))), "{times:?}");
    assert!((10..=13).contains(&times.len()), "{times:?}");
    assert_eq!(metrics.lease_renewals.get(), times.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn renews_only_while_fit() {
    let member = Member::default();
    let (hub, _) = start(&member);
    sleep(300 * SECOND).await;
    assert_eq!(member.times(), [] as [u64; 0]);
    hub.pass();
    sleep(2 * SECOND).await;
    assert_eq!(member.times().len(), 1);
    hub.fail("not heard for 90 s");
    sleep(300 * SECOND).await;
    assert_eq!(member.times().len(), 1);
    hub.pass();
    sleep(2 * SECOND).await;
    assert_eq!(member.times().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tries_again_after_a_refusal() {
    let member = Member::default();
    member.0.lock().unwrap().refusing = true;
    let (hub, _) = start(&member);
    hub.pass();
    sleep(120 * SECOND).await;
    member.0.lock().unwrap().refusing = false;
    sleep(16 * SECOND).await;
    assert_eq!(member.times().len(), 1);
}
