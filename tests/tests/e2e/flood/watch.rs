//! Looks at `GET /pressure` all the time and keeps what every poll of the monitor showed of the
//! flooded topic, as far as a look came in time: on a busy machine, one may not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jiff::Timestamp;
use posthaste_tests::api::Api;
use posthaste_tests::patience::rest;
use serde_json::Value;

/// Between two looks: many fit into one poll of the monitor.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Most looks: five minutes, which is more than a test waits.
const LOOKS_MAX: usize = 6000;

/// A thread that looks.
#[derive(Debug)]
pub(super) struct Watch {
    is_over: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<Poll>>>,
    thread: JoinHandle<()>,
}

/// One poll, as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Poll {
    at: Timestamp,
    /// The pressure on the topic's producers.
    pub(super) met: Met,
    /// The number of messages that waited of the topic's middle subscription.
    pub(super) queue: u64,
}

/// The meaning of a poll for producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Met {
    /// Acknowledgements waited for so many seconds.
    Wait(u64),
    Refusal,
}

impl Watch {
    pub(super) fn start(api: &Api) -> Self {
        let (is_over, seen): (Arc<AtomicBool>, Arc<Mutex<Vec<Poll>>>) = Default::default();
        let api = api.clone();
        let is_over_too = Arc::clone(&is_over);
        let seen_too = Arc::clone(&seen);
        let thread = thread::spawn(move || {
            for _ in 0..LOOKS_MAX {
                let shown = api.show("/pressure");
                // A state that is stale says nothing of its poll but that the next one is late.
                if shown["freshness"] == "current" {
                    keep(&mut lock(&seen_too), Poll::of(&shown));
                }
                if is_over_too.load(Ordering::Relaxed) {
                    break;
                }
                rest(BETWEEN_LOOKS);
            }
        });
        Self {
            is_over,
            seen,
            thread,
        }
    }

    /// Whether such a poll was seen.
    pub(super) fn has_seen(&self, is: impl Fn(Met) -> bool) -> bool {
        lock(&self.seen).iter().any(|poll| is(poll.met))
    }

    /// Ends looking, and answers every poll that was seen.
    pub(super) fn stop(self) -> Vec<Poll> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .expect("the server answers whoever looks");
        lock(&self.seen).clone()
    }
}

impl Poll {
    fn of(shown: &Value) -> Self {
        let at = shown["polledAt"]
            .as_str()
            .expect("a current state has its time");
        let topic = &shown["topics"][0];
        Self {
            at: at.parse().expect("it is a time"),
            met: Met::of(topic),
            queue: topic["due"].as_u64().unwrap_or(0),
        }
    }

    /// Most steps of a second that the tarpit can have made since an earlier poll. A poll begins a
    /// second after the one before at the earliest, and says when it had everything read, which
    /// may be later by part of a second.
    pub(super) fn steps_since(&self, earlier: &Self) -> u64 {
        u64::try_from(self.at.duration_since(earlier.at).as_secs()).expect("time goes on") + 1
    }
}

impl Met {
    /// A topic that is not shown is as before the flood.
    fn of(topic: &Value) -> Self {
        if topic.is_null() {
            return Self::Wait(0);
        }
        if topic["refusedTiers"]
            .as_array()
            .is_some_and(|tiers| !tiers.is_empty())
        {
            return Self::Refusal;
        }
        let tarpit = topic["tarpit"]
            .as_str()
            .and_then(|text| text.strip_prefix("PT")?.strip_suffix('S'));
        Self::Wait(
            tarpit
                .and_then(|secs| secs.parse().ok())
                .expect("the tarpit is a number of seconds"),
        )
    }
}

fn keep(polls: &mut Vec<Poll>, poll: Poll) {
    if polls.last().is_none_or(|last| last.at != poll.at) {
        polls.push(poll);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
