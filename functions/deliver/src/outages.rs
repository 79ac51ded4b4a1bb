//! Outages: since when the endpoint of events that are given up has not been well. Only such events
//! cost a look, and only where their subscription recovers by itself.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::attempt::DeadLetterReason;
use posthaste_core::circuit::Target;
use posthaste_core::model::{DeadLetter, Delivery, Subscription, Timestamp};
use posthaste_core::release::recovery::may_be_of_outage;
use posthaste_ports::{Clock, Ports};
use posthaste_services::stop_at;

use crate::circuit::Circuit;
use crate::invocation::Invocation;

/// The longest look. If it takes longer, what was known before stands.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// Looks outages up.
pub(crate) struct Outages<P: Ports> {
    circuit: Arc<Circuit<P>>,
}

impl<P: Ports> Outages<P> {
    /// Looks outages up in this circuit's knowledge of links.
    pub(crate) fn of(circuit: &Arc<Circuit<P>>) -> Self {
        Self {
            circuit: Arc::clone(circuit),
        }
    }

    /// Notes in dead letters of a subscription since when its endpoint has not been well.
    pub(crate) async fn note(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
        letters: &mut [DeadLetter],
    ) {
        if !subscription.recovery.enabled || !letters.iter().any(may_be_of_outage) {
            return;
        }
        let clock = &self.circuit.clock;
        let storing = invocation.deadlines.storing();
        let end = storing.min(clock.monotonic() + LOOK_TIME);
        let look = Box::pin(self.look(subscription));
        if stop_at(clock, end, look).await.is_none() {
            tracing::warn!(
                topic = %subscription.topic, subscription = %subscription.name,
                "state of an endpoint not read in time, what was known of it decides on recovery"
            );
        }
        let since = self.since(subscription);
        for letter in letters.iter_mut().filter(|letter| may_be_of_outage(letter)) {
            letter.outage_since = since.or_else(|| remembered(letter));
        }
    }

    /// Notes the same in deliveries whose attempt failed, as far as it is known: one of them may
    /// expire before its next attempt, and its endpoint be well by then.
    pub(crate) fn remember(
        &self,
        subscription: &Subscription,
        before: &Delivery,
        again: &mut [Delivery],
    ) {
        if !subscription.recovery.enabled {
            return;
        }
        let since = self.since(subscription);
        let tried = again.iter_mut().filter(|it| it.attempts > before.attempts);
        for entry in tried.filter_map(|delivery| delivery.events.first_mut()) {
            entry.marks.outage_since = since;
        }
    }

    /// Reads the states of the endpoints, unless they were read a moment ago.
    async fn look(&self, subscription: &Subscription) {
        for endpoint in subscription.endpoints() {
            let target = Target::on(endpoint.link(), subscription);
            self.circuit.links.decide(&target, true).await;
        }
    }

    /// The first time since which an endpoint, or its link, has not been well, as far as is known.
    fn since(&self, subscription: &Subscription) -> Option<Timestamp> {
        let endpoints = subscription.endpoints();
        let targets = endpoints.flat_map(|endpoint| {
            let link = endpoint.link();
            [Target::Link(link.clone()), Target::on(link, subscription)]
        });
        let conditions = targets.filter_map(|target| self.circuit.links.condition(&target));
        conditions.map(|condition| condition.failing_since).min()
    }
}

/// The outage in which the last attempt of an event failed that has expired since.
fn remembered(letter: &DeadLetter) -> Option<Timestamp> {
    let events = letter.delivery.events.iter();
    let since = events.filter_map(|entry| entry.marks.outage_since).min();
    since.filter(|_| letter.reason == DeadLetterReason::TimeToLiveExceeded)
}

#[cfg(test)]
mod tests {
    use posthaste_core::attempt::OutcomeName;
    use posthaste_core::circuit::{Failure, Observation};
    use posthaste_testkit::Operation;
    use serde_json::json;

    use super::*;
    use crate::testing::{START, TestPorts, World, delivery, subscription};

    fn letters() -> Vec<DeadLetter> {
        let letter = |reason| DeadLetter {
            reason,
            delivery: delivery(1),
            storage: None,
            object: None,
            dropped: false,
            outage_since: None,
        };
        [
            DeadLetterReason::TimeToLiveExceeded,
            DeadLetterReason::EndpointGone,
        ]
        .map(letter)
        .into()
    }

    async fn noted(
        world: &World,
        circuit: &Arc<Circuit<TestPorts>>,
        settings: serde_json::Value,
    ) -> Vec<Option<Timestamp>> {
        let invocation = world.invocation_of(&[]);
        let mut letters = letters();
        let subscription = subscription(settings);
        Outages::of(circuit)
            .note(&invocation, &subscription, &mut letters)
            .await;
        letters.iter().map(|letter| letter.outage_since).collect()
    }

    /// What failed in an outage, and expired when the endpoint was well again, is a letter of it.
    #[tokio::test]
    async fn letter_that_expired_after_the_outage_says_it() {
        let world = World::new();
        let circuit = Arc::new(world.circuit());
        let outages = Outages::of(&circuit);
        let subscription = subscription(json!({}));
        let target = Target::of(&subscription);
        let failing = Observation::Failing {
            failures: 10,
            last: Failure {
                outcome: OutcomeName::SocketError,
                status: None,
            },
            began: START,
        };
        circuit.links.observe(&[(target, failing)]).await.unwrap();
        let since = outages.since(&subscription);
        assert!(since.is_some());
        let before = delivery(1);
        let untried = before.clone();
        let mut tried = before.clone();
        tried.attempts += 1;
        let mut again = [tried, untried];
        outages.remember(&subscription, &before, &mut again);
        let letter = |delivery, reason| DeadLetter {
            reason,
            delivery,
            storage: None,
            object: None,
            dropped: false,
            outage_since: None,
        };
        let [tried, untried] = again;
        let expired = DeadLetterReason::TimeToLiveExceeded;
        let used_up = DeadLetterReason::MaxDeliveryAttemptsExceeded;
        assert_eq!(remembered(&letter(tried.clone(), expired)), since);
        assert_eq!(remembered(&letter(tried, used_up)), None);
        assert_eq!(remembered(&letter(untried, expired)), None);
    }

    /// What an outage does not explain says nothing of it.
    #[tokio::test]
    async fn letter_says_since_when_its_endpoint_was_not_well() {
        let world = World::new();
        let circuit = Arc::new(world.circuit());
        assert_eq!(noted(&world, &circuit, json!({})).await, [None; 2]);
        let target = Target::of(&subscription(json!({})));
        let failing = Observation::Failing {
            failures: 10,
            last: Failure {
                outcome: OutcomeName::SocketError,
                status: None,
            },
            began: START,
        };
        circuit.links.observe(&[(target, failing)]).await.unwrap();
        let since = circuit
            .links
            .condition(&Target::of(&subscription(json!({}))));
        let since = since.map(|condition| condition.failing_since);
        assert!(since.is_some());
        assert_eq!(noted(&world, &circuit, json!({})).await, [since, None]);
        let off = json!({ "recovery": { "enabled": false } });
        assert_eq!(noted(&world, &circuit, off).await, [None; 2]);
    }

    #[tokio::test]
    async fn letter_that_no_outage_explains_costs_no_look() {
        let world = World::new();
        let circuit = Arc::new(world.circuit());
        let before = world.calls.count(Operation::Get);
        let invocation = world.invocation_of(&[]);
        let mut refused = letters();
        refused.remove(0);
        let subscription = subscription(json!({}));
        Outages::of(&circuit)
            .note(&invocation, &subscription, &mut refused)
            .await;
        assert_eq!(world.calls.count(Operation::Get), before);
    }
}
