//! The test's own account of every event and subscription: what was accepted, what the endpoints
//! took, and what the records of the delivery log say.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::IsoTimestamp;
use posthaste_core::model::Timestamp;
use serde_json::Value;

use super::endpoints;

/// An event towards a subscription: the subscription's name, and the event's id.
pub(super) type Pair = (String, String);

/// The state of a pair. It has exactly one. That of an event is the least of its pairs'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Pending,
    Held,
    Waiting,
    DeadLettered,
    Delivered,
}

impl State {
    /// The word of every surface.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Delivered => "delivered",
            Self::DeadLettered => "dead-lettered",
        }
    }

    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Waiting | Self::Held)
    }
}

/// The account.
#[derive(Default)]
pub(super) struct Book {
    /// The ids of all events, in the order of their acceptance.
    pub(super) ids: Vec<String>,
    /// Every pair of an event and a subscription that it matched.
    states: BTreeMap<Pair, State>,
    /// The time of the next attempt of each pair that waits for its time.
    next_attempts: BTreeMap<Pair, Timestamp>,
    /// The deliveries that the endpoints took.
    pub(super) taken: BTreeSet<Pair>,
    /// Attempts that failed, by subscription.
    pub(super) failed: BTreeMap<String, u64>,
    records: BTreeMap<String, Value>,
}

/// The place of a record in the order in which things happened: by time, by attempt, and in one
/// attempt an event is handed back, tried and held.
pub(super) fn place(record: &Value) -> (String, u64, usize) {
    let kinds = ["accepted", "waiting", "attempt"];
    let kind = kinds.iter().position(|kind| record["kind"] == *kind);
    let time = record["time"].as_str().unwrap().to_owned();
    let attempt = record["attempt"].as_u64().unwrap();
    (time, attempt, kind.unwrap_or(kinds.len()))
}

/// The time that a member has, if it is there.
pub(super) fn time(of: &Value, member: &str) -> Option<Timestamp> {
    let time: IsoTimestamp = serde_json::from_value(of.get(member)?.clone()).unwrap();
    Some(time.0)
}

impl Book {
    /// Notes events that were accepted. The subscription whose endpoint is gone may be disabled.
    pub(super) fn accept(&mut self, ids: &[String]) {
        for endpoint in endpoints::all() {
            for id in ids {
                let pair = (endpoint.name.to_owned(), id.clone());
                self.states.insert(pair, State::Pending);
            }
        }
        self.ids.extend_from_slice(ids);
    }

    /// Notes a record of the log, once.
    pub(super) fn note(&mut self, record: &Value) {
        let text = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
        let known = self.records.insert(text("recordId"), record.clone());
        if known.is_some() || text("kind") == "accepted" {
            return;
        }
        let pair = (text("subscription"), text("id"));
        let next = match &*text("result") {
            "delivered" => State::Delivered,
            "dead-lettered" => State::DeadLettered,
            "retry" => State::Waiting,
            "held" => State::Held,
            _ => panic!("a state that no event should have: {record}"),
        };
        if text("kind") == "attempt" && next != State::Delivered {
            *self.failed.entry(pair.0.clone()).or_default() += 1;
        }
        let state = self.states.get_mut(&pair);
        let state = state.unwrap_or_else(|| panic!("nobody accepted it: {record}"));
        let is_same_end = *state == next && text("kind") == "dead-lettered";
        assert!(state.is_open() || is_same_end, "after its end: {record}");
        *state = next;
        if next == State::Waiting {
            self.next_attempts
                .insert(pair, time(record, "nextAttemptAt").unwrap());
        } else {
            self.next_attempts.remove(&pair);
        }
    }

    /// The time for which a pair waits.
    pub(super) fn next_attempt(&self, pair: &Pair) -> Option<Timestamp> {
        self.next_attempts.get(pair).copied()
    }

    /// The times for which the pairs of a subscription wait.
    pub(super) fn next_attempts(&self, of: &str) -> impl Iterator<Item = Timestamp> {
        let all = self.next_attempts.iter();
        all.filter(move |((name, _), _)| name == of)
            .map(|(_, at)| *at)
    }

    pub(super) fn state(&self, pair: &Pair) -> Option<State> {
        self.states.get(pair).copied()
    }

    /// The number of pairs of a subscription in these states.
    pub(super) fn count(&self, of: &str, is_meant: impl Fn(State) -> bool) -> u64 {
        let states = self.states.iter();
        let meant = states.filter(|((name, _), state)| name == of && is_meant(**state));
        meant.count() as u64
    }

    pub(super) fn pairs(&self) -> usize {
        self.states.len()
    }

    /// The states of an event's pairs, by subscription.
    pub(super) fn states_of(&self, id: &str) -> BTreeMap<String, State> {
        let states = self.states.iter();
        let of_event = states.filter(|((_, of), _)| of == id);
        of_event
            .map(|((name, _), state)| (name.clone(), *state))
            .collect()
    }

    /// The records of an event, to be shown where a test fails.
    pub(super) fn records_of(&self, id: &str) -> Vec<&Value> {
        let records = self.records.values();
        records.filter(|record| record["id"] == id).collect()
    }

    /// Whether every subscription that an event matched has taken it.
    pub(super) fn is_taken_by_all(&self, id: &str) -> bool {
        let names = self.states_of(id).into_keys();
        names
            .map(|name| (name, id.to_owned()))
            .all(|pair| self.taken.contains(&pair))
    }
}
