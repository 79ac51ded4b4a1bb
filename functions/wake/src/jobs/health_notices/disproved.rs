//! Holds that an arrival disproves. On AWS a worker that knows of no failure sends without a look,
//! and its success is no news to it. The worker that wrote the hold may get nothing more for the
//! endpoint, once all that failed was given up. So wake ends such a hold by the book of tries.

use std::collections::BTreeMap;

use posthaste_core::circuit::{DeliveryTarget, Observation, TargetCondition, shard_index};
use posthaste_core::health::{HealthBook, HealthFacts};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Ports};

use super::error::HealthJobError;
use super::facts::{is_broken, parse_book_key};
use crate::ports::WakePorts;

/// Ends each hold that is over by time, that nobody probes, and after which an event arrived at
/// its target.
pub(super) async fn end_disproved_holds<P: Ports>(
    ports: &WakePorts<P>,
    book: &HealthBook,
    facts: &BTreeMap<String, HealthFacts>,
) -> Result<(), HealthJobError> {
    let now = ports.clock.now();
    for (key, facts) in facts {
        let health = book.subscription(key);
        let Some(arrived_at) = health.and_then(|it| it.tries.last_arrived_at()) else {
            continue;
        };
        let conditions = [&facts.own, &facts.of_link];
        let mut conditions = conditions.into_iter().flatten();
        if conditions.any(|it| is_disproved(it, arrived_at, now)) {
            end_holds(ports, key, arrived_at, now).await?;
        }
    }
    Ok(())
}

/// Whether a target took an event after the end of its hold.
fn is_disproved(condition: &TargetCondition, arrived_at: Timestamp, now: Timestamp) -> bool {
    condition.is_due(now) && arrived_at > condition.until
}

/// Ends the holds of a subscription and of its link that this arrival disproves. Where there is a
/// fallback, it may have been the fallback that took the event.
async fn end_holds<P: Ports>(
    ports: &WakePorts<P>,
    key: &str,
    arrived_at: Timestamp,
    now: Timestamp,
) -> Result<(), HealthJobError> {
    let Some((topic, name)) = parse_book_key(key) else {
        return Ok(());
    };
    let topic = match ports.registry.topic(&topic).await {
        Ok(topic) => topic,
        Err(error) if is_broken(&error) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let subscription = topic
        .as_ref()
        .and_then(|topic| topic.find_subscription(&name))
        .filter(|it| it.fallback.is_none());
    let Some(subscription) = subscription else {
        return Ok(());
    };
    let link = subscription.endpoint.link();
    let targets = [
        DeliveryTarget::Link(link.clone()),
        DeliveryTarget::for_subscription(subscription),
    ];
    let settings = ports.links.settings();
    let change = ports.links.change_shard(shard_index(&link), |shard| {
        let mut has_changed = false;
        for target in &targets {
            let condition = shard.condition(target);
            if condition.is_some_and(|it| is_disproved(it, arrived_at, now)) {
                has_changed |=
                    shard.apply_observation(target, &Observation::Succeeded, now, settings);
            }
        }
        has_changed
    });
    if change.await? {
        tracing::info!(%link, subscription = key, "hold ended, an event arrived after it");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
