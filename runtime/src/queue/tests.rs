use std::sync::Arc;

use futures::FutureExt;
use tokio::time::{advance, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> Queue<&'static str> {
    Queue::new(QueueConfig { back_off: BackOff { base: SECOND, cap: 300 * SECOND } })
}

fn ready(queue: &Queue<&'static str>) -> Option<&'static str> {
    queue.next().now_or_never()
}

#[tokio::test(start_paused = true)]
async fn hands_out_each_key_once_in_order() {
    let queue = queue();
    for key in ["a", "b", "a", "c", "b"] {
        queue.add(key);
    }
    assert_eq!(queue.depth(), 3);
    assert_eq!([ready(&queue), ready(&queue), ready(&queue)], [Some("a"), Some("b"), Some("c")]);
    assert_eq!(ready(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn never_hands_out_a_key_that_is_at_work() {
    let queue = queue();
    queue.add("a");
    assert_eq!(ready(&queue), Some("a"));
    queue.add("a");
    queue.add("a");
    assert_eq!(ready(&queue), None);
    queue.done(&"a");
    assert_eq!(ready(&queue), Some("a"));
    queue.done(&"a");
    assert_eq!(ready(&queue), None);
    assert!(queue.state().keys.is_empty(), "a finished key is forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_earliest_delay_counts() {
    let queue = queue();
    queue.add_after("a", 10 * SECOND);
    queue.add_after("a", 60 * SECOND);
    queue.add_after("b", 5 * SECOND);
    queue.add_after("b", SECOND);
    assert_eq!(queue.depth(), 0);
    let start = Instant::now();
    assert_eq!(queue.next().await, "b");
    assert_eq!(start.elapsed().as_secs(), 1);
    assert_eq!(queue.next().await, "a");
    assert_eq!(start.elapsed().as_secs(), 10);
    queue.done(&"a");
    queue.done(&"b");
    assert!(timeout(100 * SECOND, queue.next()).await.is_err());
    assert!(queue.state().keys.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_addition_overtakes_a_delay_and_leaves_it_standing() {
    let queue = queue();
    queue.add_after("a", 10 * SECOND);
    queue.add("a");
    assert_eq!(ready(&queue), Some("a"));
    queue.done(&"a");
    assert_eq!(ready(&queue), None);
    assert_eq!(timeout(11 * SECOND, queue.next()).await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn backs_off_until_success() {
    let queue = queue();
    queue.add("a");
    let mut delays = Vec::new();
    for _ in 0..12 {
        let key = queue.next().await;
        let delay = queue.retry(&key);
        assert_eq!(ready(&queue), None);
        delays.push(delay);
    }
    assert!(delays.iter().zip(&delays[1..]).take(7).all(|(a, b)| a < b), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= 300 * SECOND));
    let key = queue.next().await;
    queue.done(&key);
    queue.add("a");
    assert_eq!(ready(&queue), Some("a"));
    assert!(queue.retry(&"a") <= SECOND, "success forgets failures");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changed_while_it_failed_comes_at_once() {
    let queue = queue();
    queue.add("a");
    assert_eq!(ready(&queue), Some("a"));
    queue.add("a");
    assert_eq!(queue.retry(&"a"), Duration::ZERO);
    assert_eq!(ready(&queue), Some("a"));
    assert!(queue.retry(&"a") >= SECOND, "the failure before is remembered");
}

#[tokio::test(start_paused = true)]
async fn giving_back_what_was_not_taken_does_nothing() {
    let queue = queue();
    queue.add("a");
    queue.done(&"a");
    queue.retry(&"b");
    assert_eq!(ready(&queue), Some("a"));
    assert_eq!(ready(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn no_worker_sleeps_through_a_timer() {
    let queue = Arc::new(queue());
    queue.add_after("late", 60 * SECOND);
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let key = queue.next().await;
                (key, Instant::now())
            })
        })
        .collect();
    advance(Duration::from_millis(1)).await;
    let start = Instant::now();
    queue.add_after("soon", 10 * SECOND);
    advance(Duration::from_millis(1)).await;
    queue.add("now");
    let mut taken = futures::future::join_all(workers).await.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    taken.sort_by_key(|(_, at)| *at);
    assert_eq!(taken.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["now", "soon"]);
    assert_eq!(taken[1].1.duration_since(start).as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn many_workers_share_the_keys() {
    let queue = Arc::new(Queue::new(QueueConfig::default()));
    let counts: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut count = 0;
                while let Ok(key) = timeout(SECOND, queue.next()).await {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    queue.done(&key);
                    count += 1;
                }
                count
            })
        })
        .collect();
    for key in 0..100 {
        queue.add(key);
    }
    let counts = futures::future::join_all(counts).await.into_iter().map(Result::unwrap).collect::<Vec<i32>>();
    assert_eq!(counts.iter().sum::<i32>(), 100);
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
}
