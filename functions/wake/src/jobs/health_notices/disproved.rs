//! Holds that an arrival disproves. On AWS a worker that knows of no failure sends without a look,
//! and its success is no news to it. The worker that wrote the hold may get nothing more for the
//! endpoint, once all that failed was given up. So wake ends such a hold by the book of tries.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, Observation, TargetCondition, shard_index};
use posthaste_core::health::{HealthBook, HealthFacts};
use posthaste_core::model::{EndpointUrl, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::LinksError;

use super::facts::parse_book_key;
use crate::ports::WakePorts;
use crate::run::WakeRun;

/// The time for which a worker may send to an endpoint that was changed: a topic is kept for a
/// minute, and a request takes up to a minute.
const FORMER_ENDPOINT_USED_FOR: Duration = Duration::from_mins(2);

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
}

/// Ends each hold that is over by time, that nobody probes, and after which an event arrived at
/// its target. What fails is left to the next run, and keeps nothing else.
pub(super) async fn end_disproved_holds<P: Ports>(
    run: WakeRun<'_, P>,
    book: &HealthBook,
    facts: &BTreeMap<String, HealthFacts>,
) {
    for (key, facts) in facts {
        if !run.may_begin() {
            return;
        }
        let Some(proof) = find_proof(book, key, facts) else {
            continue;
        };
        if let Err(error) = end_holds(run.ports, &proof).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                subscription = key,
                error,
                "hold not ended, an event arrived after it"
            );
        }
    }
}

/// The last arrival of a subscription, if no failure of it is known since then.
fn find_proof<'a>(
    book: &HealthBook,
    key: &str,
    facts: &'a HealthFacts,
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
    Some(ArrivalProof {
        topic,
        name,
        facts,
        at,
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
) -> Result<(), DisproveError> {
    let now = ports.clock.now();
    if !is_any_disproved(ports, proof, now) {
        return Ok(());
    }
    let Some(targets) = find_targets(ports, proof).await? else {
        return Ok(());
    };
    let link = targets[0].link();
    let settings = ports.links.settings();
    let change = ports.links.change_shard(shard_index(link), |shard| {
        let mut has_changed = false;
        for target in &targets {
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

/// The link that took the event and the subscription on it; `None` where another endpoint may have
/// taken it: a fallback, or the one before a change.
async fn find_targets<P: Ports>(
    ports: &WakePorts<P>,
    proof: &ArrivalProof<'_>,
) -> Result<Option<[DeliveryTarget; 2]>, PortError> {
    let Some(object) = ports
        .state
        .get(&layout::topic_record_key(&proof.topic))
        .await?
    else {
        return Ok(None);
    };
    let Ok(record) = TopicRecord::parse(&object.bytes) else {
        return Ok(None);
    };
    if proof.at <= record.updated_at + FORMER_ENDPOINT_USED_FOR {
        return Ok(None);
    }
    let found = record.settings.find_subscription(&proof.name);
    let Some((name, settings)) = found.filter(|(_, it)| it.endpoint.fallback_url.is_none()) else {
        return Ok(None);
    };
    let Ok(endpoint) = EndpointUrl::parse(&settings.endpoint.url) else {
        return Ok(None);
    };
    let link = endpoint.link();
    let own = DeliveryTarget::Subscription {
        link: link.clone(),
        topic: record.name.clone(),
        name: name.clone(),
    };
    Ok(Some([DeliveryTarget::Link(link), own]))
}

#[cfg(test)]
mod tests;
