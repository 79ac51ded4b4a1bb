//! Outages: since when the endpoint of events that are given up has not been well. Only such events
//! cost a look, and only where their subscription recovers by itself.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::{DeadLetter, DeadLetterReason, Delivery, Subscription, Timestamp};
use posthaste_core::release::recovery::may_be_of_outage;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinkHealth, stop_at};

use crate::invocation::Invocation;

/// The longest look. If it takes longer, what was known before stands.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// Looks outages up.
pub(crate) struct OutageLookup<P: Ports> {
    links: Arc<LinkHealth<P::Store, P::Clock>>,
    clock: P::Clock,
}

impl<P: Ports> OutageLookup<P> {
    /// Looks outages up in this knowledge about links.
    pub(crate) fn new(links: Arc<LinkHealth<P::Store, P::Clock>>, clock: P::Clock) -> Self {
        Self { links, clock }
    }

    /// Notes in dead letters of a subscription, made of this delivery, since when its endpoint has not
    /// been well.
    pub(crate) async fn note_in_letters(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
        before: &Delivery,
        letters: &mut [DeadLetter],
    ) {
        if !subscription.recovery.enabled || !letters.iter().any(may_be_of_outage) {
            return;
        }
        let clock = &self.clock;
        let storing = invocation.deadlines.storing_end();
        let end = storing.min(clock.monotonic() + LOOK_TIME);
        let look = Box::pin(self.refresh_states(subscription));
        if stop_at(clock, end, look).await.is_none() {
            tracing::warn!(
                topic = %subscription.topic, subscription = %subscription.name,
                "state of an endpoint not read in time, what was known of it decides on recovery"
            );
        }
        let since = self.unhealthy_since(subscription);
        let remembered = remembered_outage(before);
        for letter in letters.iter_mut().filter(|letter| may_be_of_outage(letter)) {
            let has_expired = letter.reason == DeadLetterReason::TimeToLiveExceeded;
            letter.outage_since = since.or(remembered.filter(|_| has_expired));
        }
    }

    /// Notes the same in deliveries that wait, as far as it is known: one of them may expire before
    /// its next attempt, and its endpoint be well by then. What was not tried since its endpoint was
    /// not well goes on saying so: only an attempt shows that it is well.
    pub(crate) fn note_in_waiting<'a>(
        &self,
        subscription: &Subscription,
        before: &Delivery,
        waiting: impl Iterator<Item = &'a mut Delivery>,
    ) {
        if !subscription.recovery.enabled {
            return;
        }
        let since = self.unhealthy_since(subscription);
        let remembered = remembered_outage(before);
        for delivery in waiting {
            let was_tried = delivery.attempts > before.attempts;
            if let Some(entry) = delivery.events.first_mut() {
                entry.marks.outage_since = since.or(remembered.filter(|_| !was_tried));
            }
        }
    }

    /// Reads the states of the endpoints, unless they were read a moment ago.
    async fn refresh_states(&self, subscription: &Subscription) {
        for endpoint in subscription.endpoints() {
            let target = DeliveryTarget::on_link(endpoint.link(), subscription);
            self.links.decide(&target, true).await;
        }
    }

    /// The first time since which an endpoint, or its link, has not been well, as far as is known.
    fn unhealthy_since(&self, subscription: &Subscription) -> Option<Timestamp> {
        let endpoints = subscription.endpoints();
        let targets = endpoints.flat_map(|endpoint| {
            let link = endpoint.link();
            [
                DeliveryTarget::Link(link.clone()),
                DeliveryTarget::on_link(link, subscription),
            ]
        });
        let conditions = targets.filter_map(|target| self.links.condition(&target));
        conditions.map(|condition| condition.failing_since).min()
    }
}

/// The outage in which the last attempt of a delivery failed, or in which it was put off.
fn remembered_outage(delivery: &Delivery) -> Option<Timestamp> {
    let events = delivery.events.iter();
    events.filter_map(|entry| entry.marks.outage_since).min()
}

#[cfg(test)]
mod tests {
    use posthaste_core::circuit::{Observation, RequestFailure};
    use posthaste_core::model::OutcomeName;
    use posthaste_testkit::PortOperation;
    use serde_json::json;

    use super::*;
    use crate::testing::{START, TestPorts, World, delivery, subscription};

    fn letters() -> Vec<DeadLetter> {
        let letter = |reason| DeadLetter::new(reason, delivery(1));
        [
            DeadLetterReason::TimeToLiveExceeded,
            DeadLetterReason::EndpointGone,
        ]
        .map(letter)
        .into()
    }

    /// A look-up by a worker that knows nothing yet.
    fn lookup(world: &World) -> OutageLookup<TestPorts> {
        OutageLookup::new(world.links(), world.clock.clone())
    }

    async fn noted(
        world: &World,
        outages: &OutageLookup<TestPorts>,
        settings: serde_json::Value,
    ) -> Vec<Option<Timestamp>> {
        let invocation = world.invocation_of(&[]);
        let mut letters = letters();
        let subscription = subscription(settings);
        outages
            .note_in_letters(&invocation, &subscription, &delivery(1), &mut letters)
            .await;
        letters.iter().map(|letter| letter.outage_since).collect()
    }

    async fn fail(outages: &OutageLookup<TestPorts>, subscription: &Subscription) {
        let failing = Observation::Failing {
            failures: 10,
            last: RequestFailure {
                outcome: OutcomeName::SocketError,
                status: None,
            },
            began: START,
        };
        let observed = [(DeliveryTarget::for_subscription(subscription), failing)];
        outages.links.observe(&observed).await.unwrap();
    }

    /// The outages that a delivery says, and the letters of its end after an attempt and after none.
    async fn said(world: &World, outages: &OutageLookup<TestPorts>, waits: &Delivery) -> [bool; 3] {
        let subscription = subscription(json!({}));
        let letter = |reason| DeadLetter::new(reason, waits.clone());
        let mut letters = [
            DeadLetterReason::TimeToLiveExceeded,
            DeadLetterReason::MaxDeliveryAttemptsExceeded,
        ]
        .map(letter);
        let invocation = world.invocation_of(&[]);
        outages
            .note_in_letters(&invocation, &subscription, waits, &mut letters)
            .await;
        let [expired, used_up] = letters.map(|letter| letter.outage_since.is_some());
        [remembered_outage(waits).is_some(), expired, used_up]
    }

    /// An event that failed or was put off in an outage, and expired when the endpoint was well
    /// again, is a letter of it.
    #[tokio::test]
    async fn letter_that_expired_after_the_outage_says_it() {
        let world = World::new();
        let ill = lookup(&world);
        let subscription = subscription(json!({}));
        fail(&ill, &subscription).await;
        let before = delivery(2);
        let mut tried = before.clone();
        tried.attempts += 1;
        let mut waiting = [tried, before.clone()];
        ill.note_in_waiting(&subscription, &before, waiting.iter_mut());
        // Another worker, of another link: it knows of no outage.
        let elsewhere = World::new();
        let well = lookup(&elsewhere);
        for waits in &waiting {
            assert_eq!(said(&elsewhere, &well, waits).await, [true, true, false]);
        }
        // It waits for its turn once more, its events apart: only an attempt ends the outage.
        let [waits, _] = waiting;
        let [first, second] = [0, 1].map(|at| waits.with_events(vec![waits.events[at].clone()]));
        let mut tried = first.clone();
        tried.attempts += 1;
        let mut again = [first, second, tried];
        well.note_in_waiting(&subscription, &waits, again.iter_mut());
        let said: Vec<_> = again
            .iter()
            .map(|it| remembered_outage(it).is_some())
            .collect();
        assert_eq!(said, [true, true, false]);
    }

    #[tokio::test]
    async fn waiting_for_a_healthy_endpoint_records_no_outage() {
        let world = World::new();
        let outages = lookup(&world);
        let before = delivery(1);
        let mut waiting = [before.clone()];
        outages.note_in_waiting(&subscription(json!({})), &before, waiting.iter_mut());
        assert_eq!(waiting, std::slice::from_ref(&before));
        fail(&outages, &subscription(json!({}))).await;
        let off = subscription(json!({ "recovery": { "enabled": false } }));
        outages.note_in_waiting(&off, &before, waiting.iter_mut());
        assert_eq!(waiting, [before]);
    }

    /// A letter that an outage does not explain says nothing of it.
    #[tokio::test]
    async fn letter_says_since_when_its_endpoint_was_not_well() {
        let world = World::new();
        let outages = lookup(&world);
        assert_eq!(noted(&world, &outages, json!({})).await, [None; 2]);
        fail(&outages, &subscription(json!({}))).await;
        let since = outages
            .links
            .condition(&DeliveryTarget::for_subscription(&subscription(json!({}))));
        let since = since.map(|condition| condition.failing_since);
        assert!(since.is_some());
        assert_eq!(noted(&world, &outages, json!({})).await, [since, None]);
        let off = json!({ "recovery": { "enabled": false } });
        assert_eq!(noted(&world, &outages, off).await, [None; 2]);
    }

    #[tokio::test]
    async fn letter_that_no_outage_explains_costs_no_look() {
        let world = World::new();
        let outages = lookup(&world);
        let before = world.calls.count(PortOperation::Get);
        let invocation = world.invocation_of(&[]);
        let mut refused = letters();
        refused.remove(0);
        let subscription = subscription(json!({}));
        outages
            .note_in_letters(&invocation, &subscription, &delivery(1), &mut refused)
            .await;
        assert_eq!(world.calls.count(PortOperation::Get), before);
    }
}
