//! The course of the demo, compared with the expected one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::plan::{DemoSubscription, ROLES};
use super::subscriber::ReceivedWebhook;

/// The requests of all subscribers, and the dead letters.
#[derive(Debug, Default)]
pub(super) struct DemoStory {
    /// Every request, in order.
    pub seen: Vec<ReceivedWebhook>,
    /// Dead letters by subscription.
    pub dead: BTreeMap<&'static str, Vec<DeadLetter>>,
}

/// One event in a dead-letter object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeadLetter {
    /// The key of its object.
    pub key: String,
    pub reason: String,
    /// The event with its delivery data.
    pub text: String,
}

/// Result of a role.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SubscriptionEnding {
    /// Requests that its endpoint got.
    pub attempts: usize,
    /// Events that were answered 200.
    pub delivered: usize,
    /// Attempts beyond the first of each event.
    pub retried: usize,
    /// Events that are dead letters.
    pub dead_lettered: usize,
    /// Deviations from the plan.
    pub faults: Vec<String>,
}

impl DemoStory {
    /// A subscription's dead letters.
    pub(super) fn dead_letters(&self, subscription: &str) -> &[DeadLetter] {
        self.dead
            .get(subscription)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// True once every expected request was made.
    pub(super) fn is_all_seen(&self) -> bool {
        ROLES
            .iter()
            .all(|role| self.requests_to(role).count() >= role.request_count())
    }

    /// Result of a role.
    pub(super) fn ending_for(&self, role: &DemoSubscription) -> SubscriptionEnding {
        let mut by_event: BTreeMap<&str, Vec<&ReceivedWebhook>> = BTreeMap::new();
        for seen in self.requests_to(role) {
            by_event.entry(&seen.event).or_default().push(seen);
        }
        let attempts = self.requests_to(role).count();
        let dead = self.dead_letters(role.subscription);
        SubscriptionEnding {
            attempts,
            delivered: self
                .requests_to(role)
                .filter(|seen| seen.answer == 200)
                .count(),
            retried: attempts - by_event.len(),
            dead_lettered: dead.len(),
            faults: self.find_faults(role, &by_event, dead),
        }
    }

    /// Every request as JSON.
    pub(super) fn attempts_json(&self) -> Value {
        let one = |seen: &ReceivedWebhook| {
            json!({
                "subscription": seen.subscription, "event": seen.event, "type": seen.event_type,
                "attempt": seen.attempt, "answer": seen.answer, "signatureVerified": seen.is_signed,
            })
        };
        self.seen.iter().map(one).collect()
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

    fn find_faults(
        &self,
        role: &DemoSubscription,
        by_event: &BTreeMap<&str, Vec<&ReceivedWebhook>>,
        dead: &[DeadLetter],
    ) -> Vec<String> {
        let mut faults = Vec::new();
        let mut expect = |what: &str, expected: usize, found: usize| {
            if expected != found {
                faults.push(format!(
                    "{}: {found} {what}, expected {expected}",
                    role.subscription
                ));
            }
        };
        expect("events", role.events, by_event.len());
        expect(
            "requests",
            role.request_count(),
            self.requests_to(role).count(),
        );
        let unsigned = self
            .requests_to(role)
            .filter(|seen| !seen.is_signed)
            .count();
        expect("requests with a wrong signature", 0, unsigned);
        let is_dead = role.dead_letter_reason.is_some();
        expect(
            "dead letters",
            if is_dead { role.events } else { 0 },
            dead.len(),
        );
        let other = dead
            .iter()
            .filter(|dead| Some(dead.reason.as_str()) != role.dead_letter_reason)
            .count();
        expect("dead letters with another reason", 0, other);
        let delivered = by_event
            .values()
            .filter(|seen| seen.last().is_some_and(|last| last.answer == 200))
            .count();
        expect(
            "delivered events",
            if is_dead { 0 } else { role.events },
            delivered,
        );
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn ending(attempts: u32, reasons: &[&str]) -> SubscriptionEnding {
        let mut story = DemoStory::default();
        (1..=attempts).for_each(|attempt| story.seen.push(seen("e", attempt, 503)));
        let dead = |reason: &&str| DeadLetter {
            key: "K".to_owned(),
            reason: (*reason).to_owned(),
            text: String::new(),
        };
        story
            .dead
            .insert("warehouse", reasons.iter().map(dead).collect());
        story.ending_for(&ROLES[3])
    }

    /// Event that used up its attempts and is a dead letter ended as planned.
    #[test]
    fn dead_letter_after_the_last_attempt_is_no_fault() {
        let expected = SubscriptionEnding {
            attempts: 3,
            delivered: 0,
            retried: 2,
            dead_lettered: 1,
            faults: vec![],
        };
        assert_eq!(ending(3, &["MaxDeliveryAttemptsExceeded"]), expected);
    }

    #[test]
    fn deviation_from_the_plan_is_a_fault() {
        let fault = |attempts, reasons: &[&str]| ending(attempts, reasons).faults;
        assert_eq!(
            fault(2, &["MaxDeliveryAttemptsExceeded"]),
            ["warehouse: 2 requests, expected 3"]
        );
        assert_eq!(fault(3, &[]), ["warehouse: 0 dead letters, expected 1"]);
        let other = "warehouse: 1 dead letters with another reason, expected 0";
        assert_eq!(fault(3, &["TimeToLiveExceeded"]), [other]);
    }
}
