//! The findings at the end of a run.

use std::collections::BTreeSet;

use posthaste_core::model::{LetterPlace, Timestamp};
use serde_json::Value;

/// The state of an event of a subscription, as the API tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) reason: String,
    pub(crate) attempts: usize,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) place: LetterPlace,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) reason: String,
    /// The end of the hour in which it was written.
    pub(crate) hour_end: Timestamp,
    pub(crate) is_resolved: bool,
}

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Audited {
    pub(crate) action: String,
    pub(crate) name: String,
    pub(crate) outcome: String,
    pub(crate) actor: String,
}

/// The findings at the end of a run.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// The events that still wait, in words.
    pub(crate) waits: Vec<String>,
    /// The events that the API was asked for.
    pub(crate) asked: BTreeSet<String>,
    pub(crate) told: Vec<Told>,
    pub(crate) letters: Vec<Letter>,
    /// The subscriptions by their numbers, as the API shows them.
    pub(crate) shown: Vec<(u8, Value)>,
    pub(crate) audit: Vec<Audited>,
    /// Subscriptions that should have gone by themselves many days later.
    pub(crate) idle: Vec<String>,
    /// Objects that are there many days later, and should not be.
    pub(crate) left: Vec<String>,
}
