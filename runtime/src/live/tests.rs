use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::body::Body as Answer;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// One answer of the API server.
enum Step {
    List {
        names: &'static [&'static str],
        version: &'static str,
    },
    Refuse(u16),
    /// Lines, each after its delay; at the end the stream ends, or is silent for ever.
    Watch {
        from: &'static str,
        lines: Vec<(Duration, Value)>,
        ends: bool,
    },
}

fn object(name: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns", "resourceVersion": version}})
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

fn bookmark(version: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": version}});
    event("BOOKMARK", object)
}

fn expired() -> Value {
    let status = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
    event("ERROR", status)
}

fn answer(step: Step, query: &str) -> Response<Answer> {
    let response = |code: u16, body: Answer| Response::builder().status(code).body(body).unwrap();
    match step {
        Step::List { names, version } => {
            assert!(!query.contains("watch="), "a list, not {query}");
            let items: Vec<_> = names.iter().map(|name| object(name, version)).collect();
            let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items});
            response(200, list.to_string().into())
        }
        Step::Refuse(code) => {
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": "", "message": "no"});
            response(code, status.to_string().into())
        }
        Step::Watch { from, lines, ends } => {
            assert!(query.contains("watch=true") && query.contains("allowWatchBookmarks=true"), "{query}");
            assert!(query.ends_with(&format!("resourceVersion={from}")), "from {from}, not {query}");
            let lines = stream::iter(lines).then(|(delay, line)| async move {
                sleep(delay).await;
                Ok::<_, Infallible>(format!("{line}\n"))
            });
            let rest = if ends { stream::empty().boxed() } else { stream::pending().boxed() };
            response(200, Answer::from_stream(lines.chain(rest)))
        }
    }
}

/// What a watch of that server tells, each with the seconds since the start.
async fn signals(script: Vec<Step>, count: usize) -> Vec<String> {
    let script = Arc::new(Mutex::new(VecDeque::from(script)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let step = script.lock().unwrap().pop_front();
        async move {
            let Some(step) = step else { return std::future::pending().await };
            Ok::<_, Infallible>(answer(step, request.uri().query().unwrap_or_default()))
        }
    });
    let api = Api::<ConfigMap>::namespaced(Client::new(service, "ns"), "ns");
    let start = Instant::now();
    let tell = |signal: Signal<ConfigMap>| {
        let what = match signal {
            Signal::Alive => "alive".to_owned(),
            Signal::Update(Update::Restarted) => "restarted".to_owned(),
            Signal::Update(Update::Applied(object)) => format!("applied {}", object.metadata.name.unwrap()),
            Signal::Update(Update::Deleted(key)) => format!("deleted {key}"),
            Signal::Update(Update::Synced) => "synced".to_owned(),
            Signal::Update(Update::Failed(failure)) => format!("failed {:?}", failure.code),
            Signal::Update(Update::Undecodable(object)) => format!("undecodable {object}"),
        };
        format!("{} {what}", start.elapsed().as_secs())
    };
    timeout(3600 * SECOND, live_watch(api).take(count).map(tell).collect()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn tells_what_is_there_what_changes_and_that_it_hears() {
    let lines = vec![
        (5 * SECOND, event("ADDED", object("b", "11"))),
        (SECOND, event("MODIFIED", object("a", "12"))),
        (60 * SECOND, bookmark("20")),
        (SECOND, event("DELETED", object("b", "21"))),
    ];
    let script = vec![
        Step::List { names: &["a"], version: "10" },
        Step::Watch { from: "10", lines, ends: true },
        Step::Watch { from: "21", lines: vec![(Duration::ZERO, bookmark("30"))], ends: false },
    ];
    let told = signals(script, 8).await;
    let expected = ["restarted", "applied a", "synced"].map(|what| format!("0 {what}"));
    assert_eq!(told[..3], expected);
    assert_eq!(told[3..7], ["5 applied b", "6 applied a", "66 alive", "67 deleted ns/b"]);
    assert!(told[7].ends_with(" alive"), "goes on where it was: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn silence_leads_to_a_list() {
    let script = vec![
        Step::List { names: &[], version: "10" },
        Step::Watch { from: "10", lines: vec![(60 * SECOND, bookmark("11"))], ends: false },
        Step::List { names: &[], version: "12" },
        Step::Watch { from: "12", lines: vec![], ends: false },
    ];
    let told = signals(script, 5).await;
    assert_eq!(told, ["0 restarted", "0 synced", "60 alive", "135 restarted", "135 synced"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_leads_to_a_list() {
    let script = vec![
        Step::List { names: &[], version: "10" },
        Step::Watch { from: "10", lines: vec![(SECOND, expired())], ends: true },
        Step::List { names: &["a"], version: "50" },
        Step::Refuse(410),
        Step::List { names: &["a"], version: "60" },
    ];
    let told = signals(script, 8).await;
    let names: Vec<_> = told.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    let again = ["restarted", "applied a", "synced"];
    assert_eq!(names, [["restarted", "synced"].as_slice(), &again, &again].concat());
}

#[tokio::test(start_paused = true)]
async fn backs_off_while_nothing_is_heard() {
    let refusals = (0..10).map(|_| Step::Refuse(403));
    let told = signals(refusals.chain([Step::List { names: &[], version: "1" }]).collect(), 12).await;
    let times: Vec<u64> = told.iter().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect();
    assert!(told[..10].iter().all(|line| line.ends_with("failed Some(403)")), "{told:?}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= 31), "never more than the cap: {times:?}");
    assert!(times[9] > 60, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_not_hammered() {
    let ended = |_| Step::Watch { from: "10", lines: vec![], ends: true };
    let mut script = vec![Step::List { names: &[], version: "10" }];
    script.extend((0..10).map(ended));
    script.push(Step::Watch { from: "10", lines: vec![(Duration::ZERO, bookmark("11"))], ends: false });
    let told = signals(script, 3).await;
    let last: u64 = told[2].split_once(' ').unwrap().0.parse().unwrap();
    assert!(last > 60, "{told:?}");
}
