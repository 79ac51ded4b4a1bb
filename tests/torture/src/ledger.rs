//! The ledger of a run: what was published and how that was answered, what arrived, and when there
//! was trouble.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_tests::patience::now;

use crate::trouble::Trouble;

/// An event for every subscription whose number has this rest is refused by every receiver.
const REFUSED_REST: u32 = 7;

/// One event of so many is refused.
const REFUSED_EACH: u32 = 50;

/// The fate of an event, as its publisher knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// The request is under way.
    UnderWay,
    /// The request was answered with 200.
    Acknowledged,
    /// The request was answered with a 4xx: no part of it is accepted.
    Refused,
    /// There was no answer, or one of 5xx: it may have been accepted.
    Unknown,
}

/// An event in a request as a receiver read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) event: u32,
    /// Since the epoch.
    pub(crate) at: Duration,
    /// The status of its answer; 0 where there was none.
    pub(crate) status: u16,
    /// The number of the attempt, as its request says.
    pub(crate) attempt: u16,
    /// Whether the answer came later than the subscription waits for it.
    pub(crate) was_late: bool,
    /// Whether it is the event that was published.
    pub(crate) is_whole: bool,
    /// A hash of its `webhook-id`; `None` where it shared the request with others.
    pub(crate) id: Option<u64>,
}

/// A time of trouble.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    pub(crate) trouble: Trouble,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

/// Everything that is known of a run. Threads share it.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Known>);

#[derive(Debug, Default, Clone)]
pub(crate) struct Known {
    /// By the number of the event.
    pub(crate) fates: Vec<Fate>,
    /// When the request of each began, by its number.
    pub(crate) begun: Vec<Duration>,
    /// By subscription.
    pub(crate) arrivals: BTreeMap<&'static str, Vec<Arrival>>,
    pub(crate) times: Vec<Time>,
    /// The faults that are faults whatever else is known.
    pub(crate) faults: Vec<String>,
}

/// Whether every receiver refuses this event, which is then a dead letter.
pub(crate) fn is_refused(event: u32) -> bool {
    event % REFUSED_EACH == REFUSED_REST
}

/// The number of an event by its id.
pub(crate) fn number(id: &str) -> u32 {
    id.parse().expect("an id is a number")
}

impl Ledger {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers for so many events, whose request is under way now.
    pub(crate) fn begin(&self, events: usize) -> Vec<u32> {
        let mut known = self.lock();
        let first = known.fates.len();
        known.fates.resize(first + events, Fate::UnderWay);
        known.begun.resize(first + events, now());
        let number = |at| u32::try_from(at).expect("a run has fewer events");
        (first..first + events).map(number).collect()
    }

    /// Notes the answer to the request of these events.
    pub(crate) fn end(&self, events: &[u32], fate: Fate) {
        let mut known = self.lock();
        for event in events {
            known.fates[*event as usize] = fate;
        }
    }

    pub(crate) fn arrived(&self, subscription: &'static str, arrivals: Vec<Arrival>) {
        let mut known = self.lock();
        known
            .arrivals
            .entry(subscription)
            .or_default()
            .extend(arrivals);
    }

    /// Notes the time in which something is done to the program.
    pub(crate) fn during<T>(&self, trouble: Trouble, act: impl FnOnce() -> T) -> T {
        let from = now();
        let done = act();
        let time = Time {
            trouble,
            from,
            to: now(),
        };
        self.lock().times.push(time);
        done
    }

    pub(crate) fn fault(&self, fault: String) {
        self.lock().faults.push(fault);
    }
}

/// Returns a digest that two of the same `webhook-id` have in common.
pub(crate) fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
