//! Work that is done by the deadline, and bytes that are held until then.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::{
    DEAD_LETTER_OBJECT_BYTES_PREFERRED, DeadLetterReason, DeliveryLogMode, EventPayload, Timestamp,
};
use posthaste_core::stored::HEALTH;
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{Clock, QueueName, ReceivedMessage};
use posthaste_services::{ArrivalTracker, TopicRegistry};
use posthaste_testkit::memory::MemoryQueue;
use posthaste_testkit::{
    CallFault, FaultPlan, Faulty, ManualClock, PortOperation, SeededEntropy, TestPorts,
};

use super::stores::{Seen, Slow};
use super::{letter, message, stored};
use crate::deadlines::LEAVING_TIME;

use crate::missed::BOOK_TIME;
use crate::payloads::READS_PER_OBJECT_MAX;
use crate::{DeadLetterPorts, DeadLetters, WORK_AT_ONCE_MAX};

/// The time that Lambda leaves of the function's minute.
const LEFT: Duration = Duration::from_secs(55);

/// As many events as one message can refer to: fewer bytes each, and the fan-out of a request would
/// hold them.
const STORED_MAX: usize = 115;

/// The bytes of such an event.
const STORED_BYTES: usize = 8_690;

/// True once something moved.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Bench {
    store: Slow,
    function: DeadLetters<TestPorts<Faulty<MemoryQueue>, Slow>>,
}

impl Bench {
    fn new(read_time: fn(&str) -> Duration) -> Self {
        Self::writing(read_time, Duration::from_millis(50))
    }

    fn writing(read_time: fn(&str) -> Duration, write_time: Duration) -> Self {
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let payload = Bytes::from(format!(
            "{{\"a\":\"{}\"}}",
            "x".repeat(STORED_BYTES - r#"{"a":""}"#.len())
        ));
        let store = Slow {
            clock: clock.clone(),
            payload,
            read_time,
            write_time,
            seen: Arc::default(),
        };
        // Putting off never ends.
        let plan = FaultPlan::by(|effect| {
            (effect.operation == PortOperation::Replace).then_some(CallFault::HangBefore)
        });
        let queue = Faulty::new(MemoryQueue::default(), "queue", &plan);
        let function = DeadLetters::new(DeadLetterPorts {
            queue: queue.clone(),
            records: queue.clone(),
            delivery_log: DeliveryLogMode::Off,
            missed_bytes_max: None,
            deliveries: queue,
            source: QueueName::DeadLetters,
            state: store.clone(),
            bucket: store.clone(),
            registry: TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO),
            book: ArrivalTracker::new(store.clone(), clock.clone()),
            clock,
            entropy: SeededEntropy::new(7),
        });
        Self { store, function }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.store.seen.lock().unwrap()
    }

    /// One invocation with so much time. Answers the messages that failed, and the time it took.
    fn handle(&self, batch: Vec<ReceivedMessage>, left: Duration) -> (Vec<String>, Duration) {
        let clock = &self.store.clock;
        let began = clock.monotonic();
        let mut handled = pin!(self.function.handle(batch, began + left));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let response = loop {
            let polled = handled.as_mut().poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(response) = polled {
                break response;
            }
            // Time goes on when nothing moves any more.
            if !woken.0.swap(false, Ordering::SeqCst) {
                assert!(clock.advance_to_next().is_some(), "it waits for nothing");
            }
        };
        (
            response
                .failures
                .into_iter()
                .map(|id| id.0.to_string())
                .collect(),
            clock.monotonic().saturating_sub(began),
        )
    }
}

fn large(id: &str) -> ReceivedMessage {
    message(
        id,
        (0..STORED_MAX)
            .map(|n| stored(&format!("payloads/{id}-{n}"), STORED_BYTES))
            .collect(),
    )
}

fn small(id: &str) -> ReceivedMessage {
    message(id, vec![EventPayload::Inline(Bytes::from_static(b"{}"))])
}

/// An event that a disabled subscription misses.
fn missed(id: &str) -> ReceivedMessage {
    let mut missed = letter(id, vec![EventPayload::Inline(Bytes::from_static(b"{}"))]);
    missed.dead.reason = DeadLetterReason::SubscriptionDisabled;
    ReceivedMessage {
        body: render_dead_letter(&missed.dead),
        ..missed.message
    }
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:03}")).collect()
}

/// A full batch of stored payloads is written in time and within the bounds of memory.
#[test]
fn full_batch_of_stored_payloads_stays_in_time_and_bounds() {
    let bench = Bench::new(|_| Duration::from_millis(100));
    let batch = ids(100).iter().map(|id| large(id)).collect();
    let (failures, took) = bench.handle(batch, LEFT);
    assert_eq!(failures, [""; 0]);
    assert!(took < Duration::from_secs(25), "{took:?}");
    let seen = bench.seen();
    assert_eq!(seen.reads, [0, WORK_AT_ONCE_MAX * READS_PER_OBJECT_MAX]);
    assert!(
        seen.held[1] <= WORK_AT_ONCE_MAX * DEAD_LETTER_OBJECT_BYTES_PREFERRED,
        "{:?}",
        seen.held
    );
    assert!(
        seen.written
            .values()
            .all(|object| object.len() <= DEAD_LETTER_OBJECT_BYTES_PREFERRED)
    );
    let records = |object: &Bytes| {
        serde_json::from_slice::<Vec<serde_json::Value>>(object)
            .unwrap()
            .len()
    };
    assert_eq!(
        seen.written.values().map(records).sum::<usize>(),
        100 * STORED_MAX
    );
}

#[test]
fn however_slow_the_bucket_is_a_letter_is_finished_every_time() {
    let bench = Bench::new(|_| Duration::from_secs(2));
    let mut waiting = ids(9);
    let mut invocations = 0;
    while !waiting.is_empty() {
        let (failures, took) = bench.handle(waiting.iter().map(|id| large(id)).collect(), LEFT);
        assert!(
            failures.len() < waiting.len() && took <= LEFT,
            "{failures:?} {took:?}"
        );
        waiting = failures;
        invocations += 1;
    }
    assert!(invocations > 1, "nothing was slow");
}

#[test]
fn a_payload_that_never_comes_delays_its_own_letter_only() {
    let hangs = |key: &str| {
        if key.contains("hung") {
            Duration::MAX / 4
        } else {
            Duration::ZERO
        }
    };
    let bench = Bench::new(hangs);
    let hung = message("hung", vec![stored("payloads/hung", STORED_BYTES)]);
    let (failures, took) = bench.handle(vec![small("a"), hung, small("b")], LEFT);
    assert_eq!(failures, ["hung"]);
    assert!(took < LEFT, "{took:?}");
}

#[test]
fn a_write_that_never_ends_is_left_at_the_deadline() {
    let bench = Bench::writing(|_| Duration::ZERO, Duration::MAX / 4);
    let raw = ReceivedMessage {
        body: Bytes::from_static(b"not ours"),
        ..small("raw")
    };
    let (mut failures, took) = bench.handle(vec![small("a"), raw, small("b")], LEFT);
    failures.sort();
    assert_eq!(
        (failures, took),
        (vec!["a".to_owned(), "b".to_owned(), "raw".to_owned()], LEFT)
    );
}

/// Otherwise the letters come again, and are written a second time.
#[test]
fn book_that_hangs_takes_no_time_of_the_letters() {
    let hangs = |key: &str| {
        if key == HEALTH {
            Duration::MAX / 4
        } else {
            Duration::ZERO
        }
    };
    let bench = Bench::writing(hangs, Duration::ZERO);
    // One look for the room, and one for the count.
    let (failures, took) = bench.handle(vec![missed("a"), missed("b")], LEFT);
    assert_eq!((failures, took), (Vec::new(), 2 * BOOK_TIME));
    assert_eq!(bench.seen().written.len(), 1);
    // With the least time there is some left to finish.
    let least = Duration::from_secs(25);
    let (failures, took) = bench.handle(vec![missed("c")], least);
    assert_eq!((failures, took), (Vec::new(), 2 * BOOK_TIME));
    assert!(took <= least.saturating_sub(LEAVING_TIME));
}

#[test]
fn without_time_for_it_nothing_is_begun() {
    let check = |left, expected: &[&str]| {
        let bench = Bench::new(|_| Duration::ZERO);
        let newer = ReceivedMessage {
            body: Bytes::from_static(br#"{"v":4}"#),
            ..small("newer")
        };
        let raw = ReceivedMessage {
            body: Bytes::from_static(b"not ours"),
            ..small("raw")
        };
        let (mut failures, _) = bench.handle(vec![small("a"), raw, newer], left);
        failures.sort();
        assert_eq!(failures, expected, "{left:?}");
    };
    // The queue never takes the newer message's successor.
    check(Duration::from_secs(25), &["newer"]);
    for left in [Duration::from_millis(24_999), Duration::ZERO] {
        check(left, &["a", "newer", "raw"]);
    }
}

#[test]
fn most_received_messages_are_begun_first() {
    let bench = Bench::new(|_| Duration::from_secs(2));
    let often = |mut message: ReceivedMessage, receive_count| {
        message.receive_count = receive_count;
        message
    };
    let batch = ids(20)
        .iter()
        .map(|id| often(large(id), id.parse().unwrap()))
        .collect();
    let (failures, _) = bench.handle(batch, LEFT);
    assert!(
        failures.contains(&"000".to_owned()) && !failures.contains(&"019".to_owned()),
        "{failures:?}"
    );
}
