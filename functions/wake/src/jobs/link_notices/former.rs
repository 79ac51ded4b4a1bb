//! The rest that is known of subscriptions that are gone, that left the link, or whose name another
//! one has now, and of links that nobody uses any more. manage forgets it with the write that made
//! it so; where its process died, this does.

use std::collections::BTreeSet;
use std::sync::Arc;

use posthaste_core::circuit::{DeliveryTarget, LinkShard, TargetCondition, shard_index};
use posthaste_core::model::{EndpointUrl, Link, Timestamp, Topic};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinksError, RegistryError, unused_links};

use crate::ports::WakePorts;
use crate::run::WakeRun;

/// Minutes between two looks for links that nobody uses: each reads every topic.
const MINUTES_BETWEEN: u64 = 10;

/// Forgets it, as long as there is time.
pub(super) async fn forget_former<P: Ports>(
    run: WakeRun<'_, P>,
    shards: &[(usize, Arc<LinkShard>)],
) -> Result<(), LinksError> {
    let ports = run.ports;
    for (index, shard) in shards {
        let mut former = Vec::new();
        for (target, condition) in shard.conditions() {
            if !run.may_begin() {
                break;
            }
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
                .change_shard(*index, |shard| shard.forget_targets(&former))
                .await?;
            tracing::info!(targets, "health of former subscriptions forgotten");
        }
    }
    forget_unused(run, shards).await
}

/// Forgets links that no subscription uses. Nobody asked them since they could be asked again.
async fn forget_unused<P: Ports>(
    run: WakeRun<'_, P>,
    shards: &[(usize, Arc<LinkShard>)],
) -> Result<(), LinksError> {
    let ports = run.ports;
    let now = run.ports.clock.now();
    if !now.minute_rounded_down().is_multiple_of(MINUTES_BETWEEN) || !run.may_begin() {
        return Ok(());
    }
    let conditions = shards.iter().flat_map(|(_, shard)| shard.conditions());
    let overdue: BTreeSet<Link> = conditions
        .filter(|(_, condition)| condition.until <= now)
        .filter_map(|(target, _)| match target {
            DeliveryTarget::Link(link) => Some(link),
            DeliveryTarget::Subscription { .. } => None,
        })
        .collect();
    let Some(unused) = run.in_time(unused_links(&ports.state, overdue)).await else {
        return Ok(());
    };
    for link in unused? {
        tracing::info!(%link, "health of a link that no subscription uses forgotten");
        let index = shard_index(&link);
        let target = DeliveryTarget::Link(link);
        ports
            .links
            .change_shard(index, |shard| shard.forget_targets([&target]))
            .await?;
    }
    Ok(())
}

/// Whether a condition is of no subscription that is there now. What a cache says is asked for again.
async fn is_former<P: Ports>(
    ports: &WakePorts<P>,
    target: &DeliveryTarget,
    condition: &TargetCondition,
) -> Result<bool, RegistryError> {
    let DeliveryTarget::Subscription { topic, .. } = target else {
        return Ok(false);
    };
    let asked_after = ports.clock.monotonic();
    let now = ports.clock.now();
    let known = ports.registry.topic(topic).await?;
    if is_there(known.as_deref(), target, condition, now) {
        return Ok(false);
    }
    let found = ports.registry.topic_asked_after(topic, asked_after).await?;
    Ok(!is_there(found.as_deref(), target, condition, now))
}

/// Whether a topic has the subscription of a target on its link, since before the condition began.
/// If the clock was set back since the subscription was created, the times of the two do not say
/// which came first.
fn is_there(
    topic: Option<&Topic>,
    target: &DeliveryTarget,
    condition: &TargetCondition,
    now: Timestamp,
) -> bool {
    let DeliveryTarget::Subscription { link, name, .. } = target else {
        return true;
    };
    let Some(subscription) = topic.and_then(|topic| topic.find_subscription(name)) else {
        return false;
    };
    let created_at = subscription.created.subscription.and_then(|it| it.at);
    subscription
        .endpoints()
        .map(EndpointUrl::link)
        .any(|it| it == *link)
        && created_at.is_none_or(|at| condition.since >= at || now < at)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::circuit::{Observation, RequestFailure};
    use posthaste_core::model::{CREATION_ID_BYTES, CreationId, CreationRecord, OutcomeName};
    use posthaste_testkit::records::{subscription_name, topic_name, topic_record, topic_settings};
    use serde_json::json;

    use super::*;
    use crate::testing::{Kit, subscription};

    const HOUR: Duration = Duration::from_hours(1);

    fn target() -> DeliveryTarget {
        DeliveryTarget::Subscription {
            link: EndpointUrl::parse("https://a.example/").unwrap().link(),
            topic: topic_name("orders"),
            name: subscription_name("Billing"),
        }
    }

    /// A kit whose subscription fails since now, and was created at this time.
    async fn failing(created_at: Timestamp) -> Kit {
        let kit = Kit::new();
        let settings = json!({ "subscriptions": { "Billing": subscription(json!({})) } });
        let mut record = topic_record(
            topic_name("orders"),
            topic_settings(settings),
            Timestamp::EPOCH,
        );
        let creation = CreationRecord {
            id: CreationId::new([2; CREATION_ID_BYTES]),
            at: Some(created_at),
        };
        record
            .creations
            .subscriptions
            .insert(subscription_name("Billing"), creation);
        kit.store.write("topics/orders.json", record.render());
        let began = kit.clock.now();
        let last = RequestFailure {
            outcome: OutcomeName::Busy,
            status: Some(503),
        };
        let failures = 10;
        let observation = Observation::Failing {
            failures,
            last,
            began,
        };
        let links = &kit.ports.links;
        links.observe(&[(target(), observation)]).await.unwrap();
        kit
    }

    async fn known_after_a_run(kit: &Kit) -> usize {
        let shards = kit.ports.links.read_all().await.unwrap();
        forget_former(kit.run(), &shards).await.unwrap();
        let shards = kit.ports.links.read_all().await.unwrap();
        shards
            .iter()
            .map(|(_, shard)| shard.conditions().count())
            .sum()
    }

    /// It was created when the clock showed a later time than now.
    #[tokio::test]
    async fn clock_that_was_set_back_forgets_no_live_subscription() {
        let created_at = Kit::new().clock.now() + HOUR;
        let kit = failing(created_at).await;
        assert_eq!(known_after_a_run(&kit).await, 1);
    }

    #[tokio::test]
    async fn state_from_before_its_creation_is_forgotten() {
        let created_at = Kit::new().clock.now() + HOUR;
        let kit = failing(created_at).await;
        kit.clock.advance(2 * HOUR);
        assert_eq!(known_after_a_run(&kit).await, 0);
    }

    /// Only once in ten minutes, and not before it could be asked again.
    #[tokio::test]
    async fn link_that_no_subscription_uses_is_forgotten() {
        let kit = failing(Timestamp::EPOCH).await;
        let link = |host: &str| {
            let url = format!("https://{host}.example/");
            DeliveryTarget::Link(EndpointUrl::parse(&url).unwrap().link())
        };
        let failures = 10;
        let began = kit.clock.now();
        let last = RequestFailure {
            outcome: OutcomeName::Busy,
            status: Some(503),
        };
        for host in ["a", "b"] {
            let failing = Observation::Failing {
                failures,
                last,
                began,
            };
            let links = &kit.ports.links;
            links.observe(&[(link(host), failing)]).await.unwrap();
        }
        let known = async |minutes| {
            let rest = MINUTES_BETWEEN - kit.clock.now().minute_rounded_down() % MINUTES_BETWEEN;
            kit.clock.advance(Duration::from_mins(rest + minutes));
            known_after_a_run(&kit).await
        };
        assert_eq!(known(1).await, 3, "in another minute");
        assert_eq!(known(0).await, 2);
        assert!(kit.ports.links.condition(&link("a")).is_some());
    }

    #[tokio::test]
    async fn run_that_is_out_of_time_looks_at_no_topic() {
        let created_at = Kit::new().clock.now() + HOUR;
        let kit = failing(created_at).await;
        kit.clock.advance(2 * HOUR);
        kit.stop();
        assert_eq!(known_after_a_run(&kit).await, 1);
    }
}
