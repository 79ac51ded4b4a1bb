//! Metrics and log lines, one per outcome, under the names of SPEC §9.

use std::time::Duration;

use metrics::{counter, histogram};
use posthaste_core::attempt::decide::DeadLetterReason;
use posthaste_core::circuit::{Condition, EXCHANGE_FAILED, LINK_FAILED, Phase, Target};
use posthaste_core::model::delivery::{DeadLetter, Delivery};
use posthaste_core::model::endpoint::EndpointUrl;
use posthaste_core::model::topic::Subscription;

use crate::intake::Planned;
use crate::posted::Posted;

/// One request was answered, or was not. Counts are of events, as Event Grid counts.
pub(crate) fn attempt(
    planned: &Planned,
    endpoint: &EndpointUrl,
    events: usize,
    posted: &Posted,
    took: Duration,
) {
    let subscription = &planned.subscription;
    let labels = [("topic", subscription.topic.to_string()), ("subscription", subscription.name.to_string())];
    histogram!("DestinationProcessingDurationInMs", &labels).record(took.as_secs_f64() * 1000.0);
    let attempt = planned.attempts_before.saturating_add(1);
    let (failed, outcome) = posted.failures(events).unwrap_or((0, posted.outcome));
    let delivered = events - failed;
    if delivered > 0 {
        counter!("DeliverySuccessCount", &labels).increment(delivered as u64);
        tracing::debug!(topic = %subscription.topic, subscription = %subscription.name, events = delivered, attempt, ?took, "delivered");
    }
    if failed == 0 {
        return;
    }
    counter!("DeliveryAttemptFailCount", &labels).increment(failed as u64);
    tracing::info!(
        topic = %subscription.topic, subscription = %subscription.name, ?endpoint,
        events = failed, attempt, ?outcome, ?took, "delivery attempt failed"
    );
}

/// The first single events of a batch were all refused alike, so that the rest of it is judged without being sent.
pub(crate) fn refuses_all(planned: &Planned, posted: &Posted) {
    let subscription = &planned.subscription;
    tracing::info!(
        topic = %subscription.topic, subscription = %subscription.name, status = posted.outcome.status(),
        "the endpoint refuses each event of a batch alike, the rest is not sent one by one"
    );
}

/// A link, or a subscription on it, went from one state to another.
pub(crate) fn turned(target: &Target, condition: &Condition) {
    let Condition { phase, hold, until, failures, failing_since, last, .. } = condition;
    let outcome = last.outcome;
    match (phase, target) {
        (Phase::Recovering, _) if condition.forced => {
            tracing::info!(
                link = %target, %failing_since, failures, ?outcome,
                "what waits is let through, though nothing has succeeded yet"
            );
        }
        (Phase::Recovering, _) => {
            tracing::info!(link = %target, %failing_since, failures, "endpoint answers again, what waits is let through");
        }
        _ if condition.is_pause() => {
            tracing::info!(link = %target, %until, ?outcome, status = last.status, "the endpoint asked for a pause, its subscription waits");
        }
        (Phase::Glitch | Phase::Retry, Target::Link(_)) => tracing::warn!(
            id = LINK_FAILED, link = %target, ?phase, hold, %until, failures, ?outcome,
            "delivery to the link failed, it is left alone"
        ),
        (Phase::Glitch | Phase::Retry, Target::Subscription { .. }) => tracing::warn!(
            id = EXCHANGE_FAILED, link = %target, ?phase, hold, %until, failures, ?outcome, status = last.status,
            "delivery failed after the link was reached, the subscription is left alone"
        ),
    }
}

/// Events arrived whose endpoint answered after its time.
pub(crate) fn late(subscription: &Subscription, events: usize) {
    let labels = [("topic", subscription.topic.to_string()), ("subscription", subscription.name.to_string())];
    counter!("LateDeliverySuccessCount", &labels).increment(events as u64);
    tracing::info!(topic = %subscription.topic, subscription = %subscription.name, events, "delivered late");
}

/// Deliveries went where they wait until their endpoint recovers or an operator resumes.
pub(crate) fn held(delivery: &Delivery, deliveries: usize) {
    let labels = [("topic", delivery.topic.to_string()), ("subscription", delivery.subscription.to_string())];
    counter!("HeldDeliveryCount", &labels).increment(deliveries as u64);
    tracing::debug!(topic = %delivery.topic, subscription = %delivery.subscription, deliveries, "held");
}

/// Events were dropped because their subscription keeps no such dead letters.
pub(crate) fn dropped(letter: &DeadLetter) {
    let (delivery, reason, events) = (&letter.delivery, letter.reason, letter.delivery.events.len());
    let labels = [
        ("topic", delivery.topic.to_string()),
        ("subscription", delivery.subscription.to_string()),
        ("reason", format!("{reason:?}")),
    ];
    counter!("DroppedEventCount", &labels).increment(events as u64);
    tracing::warn!(topic = %delivery.topic, subscription = %delivery.subscription, ?reason, events, "events dropped");
}

/// Events were given up.
pub(crate) fn given_up(delivery: &Delivery, reason: DeadLetterReason) {
    tracing::warn!(
        topic = %delivery.topic, subscription = %delivery.subscription, ?reason,
        events = delivery.events.len(), attempts = delivery.attempts, "events on their way to the dead letters"
    );
}
