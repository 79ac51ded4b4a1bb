//! Refusals: client errors by which an endpoint refuses events. Many in a row, of different events,
//! speak of the endpoint.

use std::collections::HashMap;

use crate::circuit::DeliveryTarget;
use crate::model::AttemptOutcome;

/// The number of different events whose refusals are a streak: one event that is tried again and
/// again may be at fault itself.
pub const REFUSED_EVENTS_MIN: usize = 3;

/// Most targets that are counted. Beyond that all counts start again from zero.
const TARGETS_MAX: usize = 4096;

/// The subject of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalSubject {
    /// The event, by its status: 400, 413 or 422. Where others arrive, it says nothing about the
    /// endpoint.
    OfEvent,
    /// The endpoint, by any other client error: wrong keys, a wrong path.
    OfEndpoint,
}

/// Reads the refusal of an outcome; `None` if it is none. 408 and 429 are failures.
pub fn refusal_subject(outcome: AttemptOutcome) -> Option<RefusalSubject> {
    let AttemptOutcome::Answered { status, .. } = outcome else {
        return None;
    };
    match status {
        408 | 429 => None,
        400 | 413 | 422 => Some(RefusalSubject::OfEvent),
        401..=499 => Some(RefusalSubject::OfEndpoint),
        _ => None,
    }
}

/// Refusals in a row, by target, counted by one worker for itself.
#[derive(Debug, Default)]
pub struct ConsecutiveRefusals(HashMap<DeliveryTarget, RefusalStreak>);

#[derive(Debug, Default)]
struct RefusalStreak {
    in_a_row: u32,
    /// The keys of the first events, all different.
    events: Vec<Box<str>>,
}

impl ConsecutiveRefusals {
    /// Counts a refused request with these events, and answers how many there are in a row by now:
    /// none, while they are of too few events.
    pub fn count_refusal<'a>(
        &mut self,
        target: &DeliveryTarget,
        events: impl IntoIterator<Item = &'a str>,
    ) -> u32 {
        if self.0.len() >= TARGETS_MAX && !self.0.contains_key(target) {
            self.0.clear();
        }
        let refused = self.0.entry(target.clone()).or_default();
        refused.in_a_row = refused.in_a_row.saturating_add(1);
        for event in events {
            let is_known = refused.events.iter().any(|known| **known == *event);
            if !is_known && refused.events.len() < REFUSED_EVENTS_MIN {
                refused.events.push(event.into());
            }
        }
        if refused.events.len() < REFUSED_EVENTS_MIN {
            0
        } else {
            refused.in_a_row
        }
    }

    /// Counts from the beginning: it succeeded, or its refusals were reported.
    pub fn reset(&mut self, target: &DeliveryTarget) {
        if !self.0.is_empty() {
            self.0.remove(target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SendFailure;

    fn target(name: &str) -> DeliveryTarget {
        DeliveryTarget::parse(&format!("https://a.example:443 orders.{name}")).unwrap()
    }

    #[test]
    fn client_errors_are_refusals_but_for_two() {
        let of = |status| {
            refusal_subject(AttemptOutcome::Answered {
                status,
                retry_after: None,
            })
        };
        for status in 100..=999 {
            let expected = match status {
                408 | 429 => None,
                400 | 413 | 422 => Some(RefusalSubject::OfEvent),
                400..=499 => Some(RefusalSubject::OfEndpoint),
                _ => None,
            };
            assert_eq!(of(status), expected, "{status}");
        }
        assert_eq!(
            refusal_subject(AttemptOutcome::Failed(SendFailure::Refused)),
            None
        );
        assert_eq!(
            refusal_subject(AttemptOutcome::Unacknowledged { status: 200 }),
            None
        );
    }

    #[test]
    fn refusals_count_once_three_events_were_refused() {
        let mut refusals = ConsecutiveRefusals::default();
        let own = target("billing");
        let mut refuse = |event| refusals.count_refusal(&own, [event]);
        assert_eq!(["a", "a", "b", "a"].map(&mut refuse), [0; 4]);
        assert_eq!(["c", "d"].map(&mut refuse), [5, 6]);
        assert_eq!(refusals.count_refusal(&target("audit"), ["a"]), 0);
        refusals.reset(&own);
        assert_eq!(refusals.count_refusal(&own, ["a"]), 0);
        // The events of one request are different events.
        assert_eq!(refusals.count_refusal(&own, ["b", "c", "d"]), 2);
    }

    #[test]
    fn counts_of_refusals_take_bounded_room() {
        let mut refusals = ConsecutiveRefusals::default();
        for index in 0..=TARGETS_MAX {
            refusals.count_refusal(&target(&format!("s{index}")), ["a"]);
        }
        assert_eq!(refusals.0.len(), 1);
    }
}
