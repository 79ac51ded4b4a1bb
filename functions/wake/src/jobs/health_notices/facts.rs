//! Facts about the subscriptions in the book, from records and links.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::health::{
    HealthBook, HealthFacts, MissedFacts, RecordedStatus, SubscriptionHealth,
};
use posthaste_core::model::{
    Subscription, SubscriptionName, SubscriptionStatus, Timestamp, TopicName,
};
use posthaste_ports::{Clock, ErrorKind, Ports};
use posthaste_services::RegistryError;

use crate::ports::WakePorts;

/// Topics that are read at once.
const READS_AT_ONCE: usize = 32;

/// The facts of each subscription in the book, by its key.
pub(super) async fn load_facts<P: Ports>(
    ports: &WakePorts<P>,
    book: &HealthBook,
) -> Result<BTreeMap<String, HealthFacts>, RegistryError> {
    let reads: Vec<_> = book
        .subscriptions()
        .map(|(key, health)| facts_of(ports, key, health))
        .collect();
    let mut reads = stream::iter(reads).buffer_unordered(READS_AT_ONCE);
    let mut facts = BTreeMap::new();
    while let Some(found) = reads.next().await {
        let (key, found) = found?;
        facts.insert(key, found);
    }
    Ok(facts)
}

/// Facts from records about the subscriptions that miss events which are kept, by their keys.
/// Nothing of one whose record cannot be read.
pub(super) async fn load_missed_facts<P: Ports>(
    ports: &WakePorts<P>,
    book: &HealthBook,
) -> Result<BTreeMap<String, MissedFacts>, RegistryError> {
    let reads: Vec<_> = book
        .missing_subscriptions()
        .map(|key| async move { (key.to_owned(), missed_facts_of(ports, key).await) })
        .collect();
    let mut reads = stream::iter(reads).buffer_unordered(READS_AT_ONCE);
    let mut facts = BTreeMap::new();
    while let Some((key, found)) = reads.next().await {
        facts.extend(found?.map(|found| (key, found)));
    }
    Ok(facts)
}

async fn missed_facts_of<P: Ports>(
    ports: &WakePorts<P>,
    key: &str,
) -> Result<Option<MissedFacts>, RegistryError> {
    let Some((topic, name)) = parse_book_key(key) else {
        return Ok(Some(MissedFacts::Other));
    };
    let topic = match ports.registry.topic(&topic).await {
        Ok(topic) => topic,
        // Waiting does not mend it.
        Err(error) if is_broken(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let subscription = topic
        .as_ref()
        .and_then(|topic| topic.find_subscription(&name))
        .map(|subscription| &**subscription);
    Ok(Some(MissedFacts::for_subscription(
        subscription,
        ports.clock.now(),
    )))
}

/// The names that a key of the book is made of.
pub(super) fn parse_book_key(key: &str) -> Option<(TopicName, SubscriptionName)> {
    let (topic, subscription) = key.split_once('.')?;
    let topic = TopicName::parse(topic).ok()?;
    Some((topic, SubscriptionName::parse(subscription).ok()?))
}

/// Whether a topic's record cannot be used: what is known of the others does not wait for it.
pub(super) fn is_broken(error: &RegistryError) -> bool {
    match error {
        RegistryError::Record(_) => true,
        RegistryError::Store(error) => error.kind == ErrorKind::Damaged,
    }
}

async fn facts_of<P: Ports>(
    ports: &WakePorts<P>,
    key: &str,
    health: &SubscriptionHealth,
) -> Result<(String, HealthFacts), RegistryError> {
    let Some((topic, name)) = parse_book_key(key) else {
        return Ok((key.to_owned(), unknown_facts(RecordedStatus::Stopped)));
    };
    let topic = match ports.registry.topic(&topic).await {
        Ok(topic) => topic,
        // Waiting does not mend it.
        Err(error) if is_broken(&error) => {
            return Ok((key.to_owned(), unknown_facts(RecordedStatus::Unknown)));
        }
        Err(error) => return Err(error),
    };
    let subscription = topic
        .as_ref()
        .and_then(|topic| topic.subscriptions.get(&name.folded()));
    let now = ports.clock.now();
    let Some(subscription) = subscription.filter(|it| is_meant(it, health, now)) else {
        return Ok((key.to_owned(), unknown_facts(RecordedStatus::Stopped)));
    };
    let link = subscription.endpoint.link();
    let facts = HealthFacts {
        standing: RecordedStatus::Active,
        link: link.to_string(),
        own: ports
            .links
            .condition(&DeliveryTarget::for_subscription(subscription)),
        of_link: ports.links.condition(&DeliveryTarget::Link(link)),
    };
    Ok((key.to_owned(), facts))
}

/// The facts of a subscription of which nothing but its status is known.
fn unknown_facts(standing: RecordedStatus) -> HealthFacts {
    HealthFacts {
        standing,
        link: String::new(),
        own: None,
        of_link: None,
    }
}

/// Whether the book is about this subscription, which is active: not about an earlier one of its
/// name.
fn is_meant(subscription: &Subscription, health: &SubscriptionHealth, now: Timestamp) -> bool {
    let created_at = subscription.created.subscription.and_then(|it| it.at);
    let tries = &health.tries;
    let last_at = tries.last_failure().map(|failure| failure.at);
    let is_former = created_at.is_some_and(|created_at| {
        created_at <= now && last_at.is_some_and(|last_at| last_at < created_at)
    });
    subscription.status_at(now) == SubscriptionStatus::Active && !is_former
}
