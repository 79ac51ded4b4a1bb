//! A flood: producers publish several times what the endpoint takes. They are slowed, then refused,
//! for the drain time of their own topic, and what was accepted arrives, all of it. Thresholds and times are small, so that it is over
//! soon; the mechanism is the same.

mod producers;
mod watch;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use posthaste_tests::endpoint::{Answer, Endpoint, Received};
use posthaste_tests::events::subscription;
use posthaste_tests::home::Home;
use posthaste_tests::patience::{rest, wait_until};
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

use self::producers::{Heard, Producers, calm};
use self::watch::{Met, Poll, Watch};

/// Number of producers, each with one request at a time and this rest after it: at most 120 events
/// in a second.
const PRODUCERS: usize = 12;
const BETWEEN_EVENTS: Duration = Duration::from_millis(100);

/// Every event makes a message for each of them.
const SUBSCRIPTIONS: [&str; 3] = ["/a", "/b", "/c"];

/// Time of the slow endpoint for one event: at most ten in a second. So few, because a test that
/// shares its machine with others may publish no more than fifty.
const SLOW: Duration = Duration::from_millis(100);

/// The queue's high threshold below.
const HIGH: u64 = 2000;

/// Most resident bytes that the process may have more at the height of a flood. The memory holds
/// messages that wait, at most a few thousand, and the allocator's reserve; a process that kept
/// every message would not stop there.
const RESIDENT_BYTES_MORE: u64 = 64 << 20;

/// A poll a second, tarpits of 1 to 4 s, and a history of twelve polls. The drain time decides from
/// a backlog of 2 s on.
const SETTINGS: &str = "\
ResourceMonitoringInterval: 00:00:01
SMTPStartThrottlingDelayInterval: 00:00:01
SMTPStepThrottlingDelayInterval: 00:00:01
SMTPMaxThrottlingDelayInterval: 00:00:04
SubmissionQueueNormalThreshold: 200
SubmissionQueueMediumThreshold: 400
SubmissionQueueHighThreshold: 2000
SubmissionQueueHistoryDepth: 12
DrainTimeNormalThreshold: 2
DrainTimeMediumThreshold: 4
DrainTimeHighThreshold: 400
DrainTimeHistoryDepth: 12
";

static IS_SLOW: AtomicBool = AtomicBool::new(true);
static TURN: Mutex<()> = Mutex::new(());

/// One after the other, however many requests come at once.
fn slow(_: &Received) -> u16 {
    if IS_SLOW.load(Ordering::Relaxed) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        rest(SLOW);
    }
    204
}

fn settings_file(folder: &Path) -> PathBuf {
    let file = folder.join("pressure.yaml");
    fs::write(&file, SETTINGS).expect("the folder is writable");
    file
}

#[test]
fn flood_is_slowed_then_refused_and_loses_nothing_accepted() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let beside = tempfile::tempdir().unwrap();
    let subscribe = |path: &&str| {
        endpoint.script(path, [Answer::Judge(slow)]);
        (path.replace('/', ""), subscription(&endpoint.url(path)))
    };
    let subscriptions: Map<String, Value> = SUBSCRIPTIONS.iter().map(subscribe).collect();
    let file = settings_file(beside.path());
    let server = Server::start(
        home.path(),
        &[
            "--pressure-settings",
            file.to_str().expect("a path is text"),
        ],
    );
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": subscriptions }));
    let producers = Producers::new(topic);
    producers.publish_calmly();
    let resident_bytes = server.resident_bytes_max();

    let watch = Watch::start(server.api());
    flood_until(&producers, "a refusal", || {
        producers.heard().iter().any(Heard::is_refused) && watch.has_seen(|met| met == Met::Refusal)
    });
    wait_until("Normal after the flood", || calm(&server).then_some(()));
    let polls = watch.stop();
    // Slowed longer and longer, then refused, then at once as if nothing had been.
    let slowed: Vec<_> = polls
        .iter()
        .take_while(|poll| poll.met != Met::Refusal)
        .cloned()
        .collect();
    assert!(
        slowed.is_sorted_by_key(|poll| poll.met) && slowed.len() < polls.len(),
        "{polls:?}"
    );
    check_steps(&slowed);
    assert_eq!(
        polls.last().map(|poll| poll.met),
        Some(Met::Wait(0)),
        "{polls:?}"
    );
    let queue_max = polls.iter().map(|poll| poll.queue).max().unwrap_or(0);
    assert!(
        queue_max <= HIGH + (PRODUCERS * SUBSCRIPTIONS.len()) as u64,
        "{queue_max} waited"
    );
    let more = server.resident_bytes_max() - resident_bytes;
    assert!(
        more <= RESIDENT_BYTES_MORE,
        "{more} bytes more are resident"
    );
    check_heard(&producers.heard());
    producers.publish_calmly();

    // Again, but the endpoint becomes fast before anybody is refused: the tarpit goes down as it
    // went up.
    IS_SLOW.store(true, Ordering::Relaxed);
    let watch = Watch::start(server.api());
    flood_until(&producers, "a tarpit of two seconds", || {
        watch.has_seen(|met| met >= Met::Wait(2))
    });
    wait_until("the tarpit to go down", || calm(&server).then_some(()));
    let polls = watch.stop();
    check_steps(&polls);
    assert_eq!(
        polls.last().map(|poll| poll.met),
        Some(Met::Wait(0)),
        "{polls:?}"
    );
    producers.publish_calmly();

    for path in SUBSCRIPTIONS {
        wait_until("every accepted event to arrive", || {
            let ids = |request: Received| request.ids();
            let arrived: HashSet<String> =
                endpoint.received(path).into_iter().flat_map(ids).collect();
            producers
                .accepted()
                .iter()
                .all(|id| arrived.contains(id))
                .then_some(())
        });
    }
    server.stop();
}

/// Lets all producers publish until it is enough, and all of them have their last answer. Then the
/// endpoint becomes fast.
fn flood_until(producers: &Producers, what: &str, is_enough: impl Fn() -> bool) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| producers.publish_until(&is_over, BETWEEN_EVENTS));
        }
        wait_until(what, || is_enough().then_some(()));
        is_over.store(true, Ordering::Relaxed);
        IS_SLOW.store(false, Ordering::Relaxed);
    });
}

/// No producer is refused, and the tarpit goes up and down by a step with each poll. Steps between
/// two polls may have been missed, so only the time between the polls limits their number.
fn check_steps(polls: &[Poll]) {
    for (before, after) in polls.iter().zip(polls.iter().skip(1)) {
        let (Met::Wait(before_secs), Met::Wait(after_secs)) = (before.met, after.met) else {
            panic!("refused: {polls:?}");
        };
        assert!(
            after_secs.abs_diff(before_secs) <= after.steps_since(before),
            "{polls:?}"
        );
    }
}

/// The answers to the producers in a flood that ended in refusals.
fn check_heard(heard: &[Heard]) {
    let first = |is: fn(&Heard) -> bool| heard.iter().position(is).expect("it was heard");
    assert!(first(|heard| heard.delay_secs() >= Some(1)) < first(Heard::is_refused));
    for heard in heard {
        match heard.status {
            200 => assert!(heard.delay_secs().is_none_or(|secs| secs <= 4), "{heard:?}"),
            503 => {
                assert_eq!(heard.retry_after.as_deref(), Some("30"), "{heard:?}");
                assert!(
                    heard
                        .problem
                        .as_deref()
                        .is_some_and(|kind| kind.ends_with("back-pressure")),
                    "{heard:?}"
                );
                assert!(
                    heard
                        .pressure
                        .as_deref()
                        .is_some_and(|told| told.contains("; resource=drain-time; subscription=")),
                    "{heard:?}"
                );
            }
            _ => panic!("{heard:?}"),
        }
    }
}
