//! What is still known of subscriptions that are gone, that left the link, or whose name another one
//! has now. manage forgets it with the write that made it so; where its process died, this does.

use std::sync::Arc;

use posthaste_core::circuit::{Condition, Shard, Target};
use posthaste_core::model::{EndpointUrl, Topic};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinksError, RegistryError};

use crate::ports::WakePorts;

/// Forgets it.
pub(super) async fn forget_former<P: Ports>(
    ports: &WakePorts<P>,
    shards: &[(usize, Arc<Shard>)],
) -> Result<(), LinksError> {
    for (index, shard) in shards {
        let mut former = Vec::new();
        for (target, condition) in shard.conditions() {
            match is_former(ports, &target, condition).await {
                Ok(true) => former.push(target),
                Ok(false) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(link = %target.link(), error, "health kept: its topic cannot be read");
                }
            }
        }
        if !former.is_empty() {
            let targets = former.len();
            ports
                .links
                .change(*index, |shard| shard.forget(&former))
                .await?;
            tracing::info!(targets, "health of former subscriptions forgotten");
        }
    }
    Ok(())
}

/// Whether a condition is of no subscription that is there now. What a cache says is asked for again.
async fn is_former<P: Ports>(
    ports: &WakePorts<P>,
    target: &Target,
    condition: &Condition,
) -> Result<bool, RegistryError> {
    let Target::Subscription { topic, .. } = target else {
        return Ok(false);
    };
    let asked_after = ports.clock.monotonic();
    let known = ports.registry.topic(topic).await?;
    if is_there(known.as_deref(), target, condition) {
        return Ok(false);
    }
    let found = ports.registry.topic_asked_after(topic, asked_after).await?;
    Ok(!is_there(found.as_deref(), target, condition))
}

/// Whether a topic has the subscription of a target on its link, since before the condition began.
fn is_there(topic: Option<&Topic>, target: &Target, condition: &Condition) -> bool {
    let Target::Subscription { link, name, .. } = target else {
        return true;
    };
    let Some(subscription) = topic.and_then(|topic| topic.subscription(name)) else {
        return false;
    };
    let created_at = subscription.created.subscription.and_then(|it| it.at);
    subscription
        .endpoints()
        .map(EndpointUrl::link)
        .any(|it| it == *link)
        && created_at.is_none_or(|at| condition.since >= at)
}
