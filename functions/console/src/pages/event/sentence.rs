//! The sentence about an event: what became of it at all of its subscriptions.

use maud::{Markup, html};
use posthaste_core::api::events::DeliveryView;
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::Timestamp;

use super::by_subscription::SubscriptionDeliveries;
use crate::display::{foreign_cut, relative_time};

/// Most different answers of endpoints that gave an event up which the sentence names.
const ANSWERS_MAX: usize = 3;

/// Most characters of a reason in the sentence.
const REASON_CHARS_MAX: usize = 40;

/// The counts of the sentence: subscriptions, by the state of their newest delivery.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EventSentence {
    delivered: usize,
    waiting: usize,
    /// The earliest attempt of those that wait.
    next: Option<Timestamp>,
    given_up: usize,
    /// The different last answers, or reasons, of those that were given up.
    answers: Vec<String>,
    dropped: usize,
    unknown: usize,
    /// Deliveries before the newest of their subscription.
    earlier: usize,
}

impl EventSentence {
    /// Counts all subscriptions of an event.
    pub(super) fn from_subscriptions(all: &[SubscriptionDeliveries<'_>]) -> Self {
        let mut counted = Self::default();
        for subscription in all {
            counted.add(subscription.newest);
            counted.earlier += subscription.earlier.len();
        }
        counted
    }

    fn add(&mut self, it: &DeliveryView) {
        match it.state {
            DeliveryState::Delivered => self.delivered += 1,
            DeliveryState::Pending | DeliveryState::Waiting | DeliveryState::Held => {
                self.waiting += 1;
                let next = it.next_attempt_at.map(|next| next.0);
                self.next = self.next.into_iter().chain(next).min();
            }
            DeliveryState::DeadLettered => {
                self.given_up += 1;
                self.add_answer(it);
            }
            DeliveryState::Dropped => self.dropped += 1,
            DeliveryState::Unmatched | DeliveryState::Unknown => self.unknown += 1,
        }
    }

    fn add_answer(&mut self, it: &DeliveryView) {
        let status = it.attempts.last().and_then(|attempt| attempt.status);
        let answer = status.map(|status| status.to_string());
        let answer = answer.or_else(|| it.reason.clone());
        self.answers
            .extend(answer.filter(|answer| !self.answers.contains(answer)));
    }

    /// The sentence; nothing if there is no delivery.
    pub(super) fn render(&self, now: Timestamp) -> Markup {
        let parts = [
            count_part(self.delivered, "delivered", &html! {}),
            count_part(self.waiting, "waiting", &self.next_text(now)),
            count_part(self.given_up, "given up", &self.answers_text()),
            count_part(self.dropped, "dropped", &html! {}),
            count_part(self.unknown, "in an unknown state", &html! {}),
        ];
        html! {
            @for (at, part) in parts.into_iter().flatten().enumerate() {
                @if at > 0 { ", " }
                (part)
            }
            @if self.earlier > 0 {
                ". " (self.earlier)
                @if self.earlier == 1 { " earlier delivery" } @else { " earlier deliveries" }
                " of this id"
            }
        }
    }

    fn next_text(&self, now: Timestamp) -> Markup {
        html! {
            @match self.next {
                Some(next) if next > now => { " (next " (relative_time(next, now)) ")" }
                Some(_) => " (due)",
                None => {}
            }
        }
    }

    fn answers_text(&self) -> Markup {
        html! {
            @if !self.answers.is_empty() {
                " ("
                @for (at, answer) in self.answers.iter().take(ANSWERS_MAX).enumerate() {
                    @if at > 0 { ", " }
                    (foreign_cut(answer, REASON_CHARS_MAX))
                }
                @if self.answers.len() > ANSWERS_MAX { ", …" }
                ")"
            }
        }
    }
}

/// A part of the sentence, if it counts any.
fn count_part(count: usize, word: &str, more: &Markup) -> Option<Markup> {
    (count > 0).then(|| html! { (count) " " (word) (more) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::api::IsoTimestamp;
    use posthaste_core::api::events::AttemptView;
    use posthaste_core::delivery_log::AttemptOrigin;

    use super::super::by_subscription::group_by_subscription;
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    /// A delivery to a subscription, whose last attempt had this status.
    fn delivery(subscription: &str, state: DeliveryState, status: Option<u16>) -> DeliveryView {
        let attempt = AttemptView {
            number: 1,
            at: IsoTimestamp(NOW),
            duration_ms: None,
            status,
            outcome: "Busy".to_owned(),
            error: None,
            answer: None,
            answer_type: None,
            webhook_id: None,
            origin: AttemptOrigin::First,
            run_id: None,
            recovery: None,
            endpoint: None,
        };
        DeliveryView {
            key: "k-0".to_owned(),
            subscription: subscription.to_owned(),
            state,
            reason: (state == DeliveryState::DeadLettered).then(|| "TimeToLiveExceeded".to_owned()),
            source: None,
            event_type: None,
            subject: None,
            accepted_at: IsoTimestamp(NOW),
            expires_at: None,
            next_attempt_at: None,
            dead_letter_object: None,
            resendable_until: None,
            payload: None,
            attempts: vec![attempt],
        }
    }

    fn waiting(subscription: &str, next_in_secs: u64) -> DeliveryView {
        let next = NOW + Duration::from_secs(next_in_secs);
        DeliveryView {
            next_attempt_at: Some(IsoTimestamp(next)),
            ..delivery(subscription, DeliveryState::Waiting, Some(503))
        }
    }

    fn given_up(subscription: &str, status: u16) -> DeliveryView {
        delivery(subscription, DeliveryState::DeadLettered, Some(status))
    }

    /// The text of the sentence without its tags, and without exact times.
    fn sentence(deliveries: &[DeliveryView]) -> String {
        let groups = group_by_subscription(deliveries);
        let page = EventSentence::from_subscriptions(&groups)
            .render(NOW)
            .into_string();
        let mut text = String::new();
        let mut is_time = false;
        for part in page.split('<') {
            let (tag, shown) = part.split_once('>').unwrap_or(("", part));
            is_time = tag.starts_with("time") || (is_time && !tag.starts_with("/time"));
            if !is_time {
                text.push_str(shown);
            }
        }
        text
    }

    #[test]
    fn the_sentence_counts_subscriptions_by_their_states() {
        use DeliveryState::{DeadLettered, Delivered, Dropped, Held, Pending, Unknown};
        let check = |deliveries: &[DeliveryView], expected: &str| {
            assert_eq!(sentence(deliveries), expected);
        };
        check(&[], "");
        check(&[delivery("a", Delivered, Some(200))], "1 delivered");
        check(
            &[
                delivery("a", Delivered, Some(200)),
                delivery("b", Delivered, Some(204)),
                waiting("c", 600),
                waiting("d", 240),
                given_up("e", 410),
            ],
            "2 delivered, 2 waiting (next in 4 min ), 1 given up (410)",
        );
        check(&[waiting("a", 0)], "1 waiting (due)");
        check(
            &[delivery("a", Held, None), delivery("b", Pending, None)],
            "2 waiting",
        );
        check(&[delivery("a", Dropped, None)], "1 dropped");
        check(&[delivery("a", Unknown, None)], "1 in an unknown state");
        check(
            &[given_up("a", 410), given_up("b", 410), given_up("c", 503)],
            "3 given up (410, 503)",
        );
        check(
            &[400, 401, 403, 404].map(|status| given_up(&status.to_string(), status)),
            "4 given up (400, 401, 403, …)",
        );
        check(
            &[delivery("a", DeadLettered, None)],
            "1 given up (TimeToLiveExceeded)",
        );
    }

    /// Only the newest delivery to a subscription counts, whatever became of those before.
    #[test]
    fn earlier_deliveries_are_counted_apart() {
        use DeliveryState::{DeadLettered, Delivered};
        let newest = delivery("Billing", Delivered, Some(200));
        let earlier = delivery("billing", DeadLettered, Some(410));
        let both = [newest, earlier.clone()];
        assert_eq!(
            sentence(&both),
            "1 delivered. 1 earlier delivery of this id"
        );
        let [newest, _] = both;
        assert_eq!(
            sentence(&[newest, earlier.clone(), earlier]),
            "1 delivered. 2 earlier deliveries of this id"
        );
    }

    #[test]
    fn a_reason_of_another_program_is_text() {
        let hostile = DeliveryView {
            reason: Some("<script>".repeat(20)),
            ..delivery("a", DeliveryState::DeadLettered, None)
        };
        let deliveries = [hostile];
        let groups = group_by_subscription(&deliveries);
        let page = EventSentence::from_subscriptions(&groups)
            .render(NOW)
            .into_string();
        assert!(!page.contains("<script>") && page.len() < 400, "{page}");
    }
}
