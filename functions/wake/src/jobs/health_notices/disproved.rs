//! Holds that an arrival disproves. On AWS a worker that knows of no failure sends without a look,
//! and its success is no news to it. The worker that wrote the hold may get nothing more for the
//! endpoint, once all that failed was given up. So wake ends such a hold by the book of tries.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, Observation, TargetCondition, shard_index};
use posthaste_core::health::{HealthBook, HealthFacts, LastFailure};
use posthaste_core::model::{EndpointUrl, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::LinksError;

use super::facts::parse_book_key;
use crate::ports::WakePorts;
use crate::run::WakeRun;

/// The time for which a worker may send to an endpoint that was changed, and say so: a topic is kept
/// for a minute, and an invocation of Lambda lasts up to 15 minutes.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>
const FORMER_ENDPOINT_USED_FOR: Duration = Duration::from_mins(16);

/// Reasons for which a hold is left as it is.
#[derive(Debug, thiserror::Error)]
enum DisproveError {
    #[error("failed to read a topic")]
    Topic(#[from] PortError),
    #[error("failed to read or write what is known of links")]
    Links(#[from] LinksError),
}

/// A subscription that took an event, and when it did.
struct ArrivalProof<'a> {
    topic: TopicName,
    name: SubscriptionName,
    facts: &'a HealthFacts,
    at: Timestamp,
    /// Whether nothing else on the link has failed without an answer since.
    is_of_link: bool,
}

/// The last failures without an answer on links that have a condition: an answer of one
/// subscription's endpoint says nothing against its link.
type LinkFailures<'a> = BTreeMap<&'a str, Timestamp>;

/// The record of the topic that was read last, of which several subscriptions may be looked at in
/// a row.
#[derive(Default)]
struct LastTopic(Option<(TopicName, Option<TopicRecord>)>);

/// Ends each hold that is over by time, that nobody probes, and after which an event arrived at
/// its target. What fails is left to the next run, and keeps nothing else.
pub(super) async fn end_disproved_holds<P: Ports>(
    run: WakeRun<'_, P>,
    book: &HealthBook,
    facts: &BTreeMap<String, HealthFacts>,
) {
    let failures = link_failures(book, facts);
    let mut last_topic = LastTopic::default();
    for (key, facts) in facts {
        if !run.may_begin() {
            return;
        }
        let Some(proof) = find_proof(book, key, facts, &failures) else {
            continue;
        };
        if let Err(error) = end_holds(run.ports, &proof, &mut last_topic).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                subscription = key,
                error,
                "hold not ended, an event arrived after it"
            );
        }
    }
}

fn link_failures<'a>(
    book: &HealthBook,
    facts: &'a BTreeMap<String, HealthFacts>,
) -> LinkFailures<'a> {
    let mut failures = LinkFailures::new();
    for (key, facts) in facts {
        let failure = book
            .subscription(key)
            .and_then(|it| it.tries.last_failure());
        if let Some(LastFailure {
            at, status: None, ..
        }) = failure
            && facts.of_link.is_some()
        {
            let last = failures.entry(&facts.link).or_insert(at);
            *last = at.max(*last);
        }
    }
    failures
}

/// The last arrival of a subscription, if no failure of it is known since then.
fn find_proof<'a>(
    book: &HealthBook,
    key: &str,
    facts: &'a HealthFacts,
    failures: &LinkFailures<'_>,
) -> Option<ArrivalProof<'a>> {
    if facts.own.is_none() && facts.of_link.is_none() {
        return None;
    }
    let tries = &book.subscription(key)?.tries;
    let at = tries.last_arrived_at()?;
    if tries.last_failure().is_some_and(|failure| failure.at >= at) {
        return None;
    }
    let (topic, name) = parse_book_key(key)?;
    let link_failed_at = failures.get(facts.link.as_str());
    Some(ArrivalProof {
        topic,
        name,
        facts,
        at,
        is_of_link: link_failed_at.is_none_or(|failed_at| *failed_at < at),
    })
}

/// Whether a target took an event after the end of its hold.
fn is_disproved(condition: &TargetCondition, arrived_at: Timestamp, now: Timestamp) -> bool {
    condition.is_due(now) && arrived_at > condition.until
}

/// Whether the arrival disproves a hold, as far as is known without the topic. Another subscription
/// of the link may have ended that one's a moment ago.
fn is_any_disproved<P: Ports>(
    ports: &WakePorts<P>,
    proof: &ArrivalProof<'_>,
    now: Timestamp,
) -> bool {
    let HealthFacts {
        link, own, of_link, ..
    } = proof.facts;
    let link = DeliveryTarget::parse(link);
    let of_link = of_link
        .as_ref()
        .filter(|_| proof.is_of_link)
        .and(link)
        .and_then(|link| ports.links.condition(&link));
    [own.as_ref(), of_link.as_ref()]
        .into_iter()
        .flatten()
        .any(|it| is_disproved(it, proof.at, now))
}

/// Ends the holds of a subscription and of its link that this arrival disproves.
async fn end_holds<P: Ports>(
    ports: &WakePorts<P>,
    proof: &ArrivalProof<'_>,
    last_topic: &mut LastTopic,
) -> Result<(), DisproveError> {
    let now = ports.clock.now();
    if !is_any_disproved(ports, proof, now) {
        return Ok(());
    }
    let record = last_topic.load(ports, &proof.topic).await?;
    let Some(subscription) = record.and_then(|record| find_taker(record, proof)) else {
        return Ok(());
    };
    let link = DeliveryTarget::Link(subscription.link().clone());
    let targets = [Some(&subscription), proof.is_of_link.then_some(&link)];
    let link = subscription.link();
    let settings = ports.links.settings();
    let change = ports.links.change_shard(shard_index(link), |shard| {
        let mut has_changed = false;
        for target in targets.into_iter().flatten() {
            let condition = shard.condition(target);
            if condition.is_some_and(|it| is_disproved(it, proof.at, now)) {
                has_changed |=
                    shard.apply_observation(target, &Observation::Succeeded, now, settings);
            }
        }
        has_changed
    });
    if change.await? {
        let ArrivalProof { topic, name, .. } = proof;
        tracing::info!(%link, %topic, subscription = %name, "hold ended, an event arrived after it");
    }
    Ok(())
}

impl LastTopic {
    /// The record of a topic; `None` if there is none, or it is damaged.
    async fn load<P: Ports>(
        &mut self,
        ports: &WakePorts<P>,
        topic: &TopicName,
    ) -> Result<Option<&TopicRecord>, PortError> {
        if self.0.as_ref().is_none_or(|(known, _)| known != topic) {
            let key = layout::topic_record_key(topic);
            let object = ports.state.get(&key).await?;
            let record = object.and_then(|object| TopicRecord::parse(&object.bytes).ok());
            self.0 = Some((topic.clone(), record));
        }
        Ok(self.0.as_ref().and_then(|(_, record)| record.as_ref()))
    }
}

/// The subscription on the link that took the event; `None` where another endpoint may have taken
/// it: a fallback, or the one before a change.
fn find_taker(record: &TopicRecord, proof: &ArrivalProof<'_>) -> Option<DeliveryTarget> {
    if proof.at <= record.updated_at + FORMER_ENDPOINT_USED_FOR {
        return None;
    }
    let found = record.settings.find_subscription(&proof.name);
    let (name, settings) = found.filter(|(_, it)| it.endpoint.fallback_url.is_none())?;
    let endpoint = EndpointUrl::parse(&settings.endpoint.url).ok()?;
    Some(DeliveryTarget::Subscription {
        link: endpoint.link(),
        topic: record.name.clone(),
        name: name.clone(),
    })
}

#[cfg(test)]
mod tests;
