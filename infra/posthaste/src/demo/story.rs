//! The course of the demo, compared with the expected one.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::DeadLetterView;
use serde::Serialize;

use super::plan::{DemoSubscription, ROLES};
use super::subscriber::ReceivedWebhook;

/// The requests of all subscribers, and the dead letters.
#[derive(Debug, Default)]
pub(super) struct DemoStory {
    /// Every request, in order.
    pub seen: Vec<ReceivedWebhook>,
    /// Dead letters by subscription.
    pub dead: BTreeMap<&'static str, Vec<DeadLetterView>>,
    /// The event of the last dead letter, with its delivery data.
    pub last_dead_event: String,
}

/// Result of a role.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionEnding {
    pub topic: &'static str,
    pub subscription: &'static str,
    /// Requests that its endpoint got.
    pub attempts: usize,
    /// Events that were answered 200.
    pub delivered: usize,
    /// Attempts beyond the first of each event.
    pub retried: usize,
    /// Events that are dead letters.
    pub dead_lettered: usize,
}

impl DemoStory {
    /// The dead letters of all roles.
    pub(super) fn dead_letters(&self) -> Vec<&DeadLetterView> {
        let letters = ROLES.iter().map(|role| self.dead_letters_of(role));
        letters.flatten().collect()
    }

    /// True once every expected request was made.
    pub(super) fn is_all_seen(&self) -> bool {
        ROLES
            .iter()
            .all(|role| self.requests_to(role).count() >= role.request_count())
    }

    /// Result of a role.
    pub(super) fn ending_for(&self, role: &DemoSubscription) -> SubscriptionEnding {
        let attempts = self.requests_to(role).count();
        SubscriptionEnding {
            topic: role.topic,
            subscription: role.subscription,
            attempts,
            delivered: self.delivered_count(role),
            retried: attempts - self.event_count(role),
            dead_lettered: self.dead_letters_of(role).len(),
        }
    }

    /// Deviations from the plan for a role.
    pub(super) fn find_faults(&self, role: &DemoSubscription) -> Vec<String> {
        let dead = self.dead_letters_of(role);
        let unsigned = self.requests_to(role).filter(|seen| !seen.is_signed);
        let other_reason = dead
            .iter()
            .filter(|dead| dead.reason.as_deref() != role.dead_letter_reason);
        let (delivered, dead_lettered) = match role.dead_letter_reason {
            Some(_) => (0, role.events),
            None => (role.events, 0),
        };
        let found = [
            ("events", role.events, self.event_count(role)),
            (
                "requests",
                role.request_count(),
                self.requests_to(role).count(),
            ),
            ("requests with a wrong signature", 0, unsigned.count()),
            ("dead letters", dead_lettered, dead.len()),
            ("dead letters with another reason", 0, other_reason.count()),
            ("delivered events", delivered, self.delivered_count(role)),
        ];
        found
            .into_iter()
            .filter(|(_, expected, found)| expected != found)
            .map(|(what, expected, found)| {
                format!("{}: {found} {what}, expected {expected}", role.subscription)
            })
            .collect()
    }

    fn dead_letters_of(&self, role: &DemoSubscription) -> &[DeadLetterView] {
        self.dead
            .get(role.subscription)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn requests_to<'a>(
        &'a self,
        role: &DemoSubscription,
    ) -> impl Iterator<Item = &'a ReceivedWebhook> {
        let subscription = role.subscription;
        self.seen
            .iter()
            .filter(move |seen| seen.subscription == subscription)
    }

    fn event_count(&self, role: &DemoSubscription) -> usize {
        let events: BTreeSet<_> = self.requests_to(role).map(|seen| &seen.event).collect();
        events.len()
    }

    fn delivered_count(&self, role: &DemoSubscription) -> usize {
        self.requests_to(role)
            .filter(|seen| seen.answer == 200)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(event: &str, attempt: u32, answer: u16) -> ReceivedWebhook {
        let event = event.to_owned();
        let event_type = "com.example.order.shipped".to_owned();
        ReceivedWebhook {
            subscription: "warehouse",
            event,
            event_type,
            attempt,
            answer,
            is_signed: true,
        }
    }

    fn story(attempts: u32, reasons: &[&str]) -> DemoStory {
        let mut story = DemoStory::default();
        (1..=attempts).for_each(|attempt| story.seen.push(seen("e", attempt, 503)));
        let dead = |reason: &&str| {
            let letter = json!({
                "object": "K", "index": 0, "topic": "shop", "subscription": "warehouse",
                "reason": reason, "writtenAt": "2026-11-21T10:00:00Z",
            });
            serde_json::from_value(letter).unwrap()
        };
        story
            .dead
            .insert("warehouse", reasons.iter().map(dead).collect());
        story
    }

    /// Event that used up its attempts and is a dead letter ended as planned.
    #[test]
    fn dead_letter_after_the_last_attempt_is_no_fault() {
        let story = story(3, &["MaxDeliveryAttemptsExceeded"]);
        let expected = SubscriptionEnding {
            topic: "shop",
            subscription: "warehouse",
            attempts: 3,
            delivered: 0,
            retried: 2,
            dead_lettered: 1,
        };
        assert_eq!(story.ending_for(&ROLES[3]), expected);
        assert!(story.find_faults(&ROLES[3]).is_empty());
    }

    #[test]
    fn deviation_from_the_plan_is_a_fault() {
        let fault = |attempts, reasons: &[&str]| story(attempts, reasons).find_faults(&ROLES[3]);
        assert_eq!(
            fault(2, &["MaxDeliveryAttemptsExceeded"]),
            ["warehouse: 2 requests, expected 3"]
        );
        assert_eq!(fault(3, &[]), ["warehouse: 0 dead letters, expected 1"]);
        let other = "warehouse: 1 dead letters with another reason, expected 0";
        assert_eq!(fault(3, &["TimeToLiveExceeded"]), [other]);
    }
}
