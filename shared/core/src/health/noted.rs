//! Tries, one by one, as long as they are few: so those of a quiet subscription are known exactly,
//! however they are cut into parts.

use super::seen::{SeenTry, TryResult};
use crate::model::Timestamp;

/// Tries that are kept one by one. More are more than an event's fault, and are added up.
const NOTED_MAX: usize = 32;

/// A try, as it was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NotedTry {
    key: String,
    accepted_at: Timestamp,
    at: Timestamp,
    is_first: bool,
    result: TryResult,
}

/// Tries in the order in which they were noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NotedTries {
    tries: Vec<NotedTry>,
    /// Whether there were more than are kept.
    are_many: bool,
}

impl NotedTries {
    /// Notes a try.
    pub(super) fn add_try(&mut self, seen: &SeenTry<'_>) {
        if self.tries.len() >= NOTED_MAX {
            self.forget_order();
        }
        if self.are_many {
            return;
        }
        self.tries.push(NotedTry {
            key: seen.key.to_owned(),
            accepted_at: seen.accepted_at,
            at: seen.at,
            is_first: seen.is_first,
            result: seen.result,
        });
    }

    /// Forgets them, because they are many.
    pub(super) fn forget_order(&mut self) {
        self.tries.clear();
        self.are_many = true;
    }

    /// All tries; `None` where they were many.
    pub(super) fn all_tries(&self) -> Option<impl Iterator<Item = SeenTry<'_>>> {
        (!self.are_many).then(|| self.tries.iter().map(NotedTry::as_seen_try))
    }
}

impl NotedTry {
    fn as_seen_try(&self) -> SeenTry<'_> {
        SeenTry {
            key: &self.key,
            accepted_at: self.accepted_at,
            at: self.at,
            is_first: self.is_first,
            result: self.result,
        }
    }
}
