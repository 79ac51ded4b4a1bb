//! The addressees of a change: the topic of the whole program, and those that the topics with a
//! subscription there name.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use futures_util::{StreamExt, stream};
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::{EndpointUrl, Link, Topic, TopicName};
use posthaste_ports::{PortError, Ports};
use posthaste_services::RegistryError;
use posthaste_services::topics::topic_names;

use super::state_change::{AddressedChange, TargetChange};
use crate::ports::WakePorts;

/// Topics that are read at once. S3 takes some 20 ms for a read, so that ten thousand are read in
/// seconds.
const READS_AT_ONCE: usize = 32;

/// Why the addressees are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressError {
    #[error("failed to list the topics")]
    Topics(#[from] PortError),
    #[error("failed to read the topics")]
    Topic(#[from] RegistryError),
}

/// A topic's part in a change.
#[derive(Debug)]
struct TopicConcern {
    /// The change's place among all.
    change: usize,
    /// The change's subscription, by the name under which it is stored.
    own: Option<DeliveryTarget>,
    notices_topic: Option<TopicName>,
}

/// The changes by what topics have.
#[derive(Debug)]
struct ChangesByTarget<'a> {
    changes: &'a [TargetChange],
    links: BTreeMap<&'a Link, usize>,
    /// By folded name.
    topics: BTreeMap<String, Vec<usize>>,
}

/// Changes with their addressees; the topic `notices_topic` is notified of every change. All topics
/// are looked at only where a link is among the changes, whose subscriptions may be on any topic.
pub(super) async fn find_addressees<P: Ports>(
    ports: &WakePorts<P>,
    notices_topic: Option<&TopicName>,
    changes: Vec<TargetChange>,
) -> Result<Vec<AddressedChange>, AddressError> {
    let concerns = find_concerns(ports, &ChangesByTarget::from_changes(&changes)).await?;
    let mut addressed: Vec<_> = changes
        .into_iter()
        .map(|change| address_change(change, notices_topic))
        .collect();
    for TopicConcern {
        change,
        own,
        notices_topic,
    } in concerns
    {
        let Some(it) = addressed.get_mut(change) else {
            continue;
        };
        it.is_gone = false;
        it.change.target = own.unwrap_or_else(|| it.change.target.clone());
        it.to
            .extend(notices_topic.map(|name| (name.folded(), name)));
    }
    addressed
        .iter_mut()
        .filter(|it| it.is_gone)
        .for_each(|it| it.to.clear());
    Ok(addressed)
}

/// A change that is addressed to the topic of all notices. A subscription counts as gone until its
/// topic is found to have it.
fn address_change(change: TargetChange, notices_topic: Option<&TopicName>) -> AddressedChange {
    let is_gone = matches!(change.target, DeliveryTarget::Subscription { .. });
    let to = notices_topic
        .iter()
        .map(|name| (name.folded(), (*name).clone()));
    AddressedChange {
        to: to.collect(),
        change,
        is_gone,
    }
}

async fn find_concerns<P: Ports>(
    ports: &WakePorts<P>,
    places: &ChangesByTarget<'_>,
) -> Result<Vec<TopicConcern>, AddressError> {
    let names = if places.links.is_empty() {
        places.topics.keys().cloned().collect()
    } else {
        topic_names(&ports.state).await?
    };
    let mut reads = stream::iter(names)
        .map(|name| read_concerns(ports, name, places))
        .buffer_unordered(READS_AT_ONCE);
    let mut concerns = Vec::new();
    while let Some(found) = reads.next().await {
        concerns.extend(found?);
    }
    Ok(concerns)
}

/// The concerns of one topic.
async fn read_concerns<P: Ports>(
    ports: &WakePorts<P>,
    name: String,
    places: &ChangesByTarget<'_>,
) -> Result<Vec<TopicConcern>, RegistryError> {
    let Ok(name) = TopicName::parse(&name) else {
        return Ok(Vec::new());
    };
    match ports.registry.topic(&name).await {
        // Waiting does not mend the record, and whether its subscriptions are there is not known.
        Err(RegistryError::Record(error)) => {
            let error = &error as &dyn Error;
            tracing::error!(topic = %name, error, "no notices are sent: the topic's record cannot be used");
            Ok(places.concerns_of_unread(&name))
        }
        Ok(found) => Ok(found
            .map(|topic| places.concerns_of_topic(&topic))
            .unwrap_or_default()),
        Err(error) => Err(error),
    }
}

impl<'a> ChangesByTarget<'a> {
    fn from_changes(changes: &'a [TargetChange]) -> Self {
        let mut places = Self {
            changes,
            links: BTreeMap::new(),
            topics: BTreeMap::new(),
        };
        for (place, change) in changes.iter().enumerate() {
            match &change.target {
                DeliveryTarget::Link(link) => drop(places.links.insert(link, place)),
                DeliveryTarget::Subscription { topic, .. } => {
                    places.topics.entry(topic.folded()).or_default().push(place);
                }
            }
        }
        places
    }

    /// The concerns of a topic: the links that its subscriptions are on, and these subscriptions.
    fn concerns_of_topic(&self, topic: &Topic) -> Vec<TopicConcern> {
        let endpoints = topic.subscriptions.values().flat_map(|it| it.endpoints());
        let links: BTreeSet<_> = endpoints.map(EndpointUrl::link).collect();
        let links = links
            .iter()
            .filter_map(|link| Some((*self.links.get(link)?, None)));
        let own = self
            .own_changes(&topic.name)
            .filter_map(|(place, target)| Some((place, Some(stored_target(topic, target)?))));
        let notices_topic = &topic.notices_topic;
        let concerns = links.chain(own).map(|(change, own)| TopicConcern {
            change,
            own,
            notices_topic: notices_topic.clone(),
        });
        concerns.collect()
    }

    /// The concerns of a topic that cannot be read: its subscriptions may be there.
    fn concerns_of_unread(&self, topic: &TopicName) -> Vec<TopicConcern> {
        self.own_changes(topic)
            .map(|(change, _)| TopicConcern {
                change,
                own: None,
                notices_topic: None,
            })
            .collect()
    }

    fn own_changes(&self, topic: &TopicName) -> impl Iterator<Item = (usize, &'a DeliveryTarget)> {
        let places = self.topics.get(&topic.folded()).into_iter().flatten();
        places.filter_map(|place| Some((*place, &self.changes.get(*place)?.target)))
    }
}

/// A subscription's target by the name under which it is stored; `None` if it is not there, or on
/// other links.
fn stored_target(topic: &Topic, target: &DeliveryTarget) -> Option<DeliveryTarget> {
    let DeliveryTarget::Subscription { link, name, .. } = target else {
        return None;
    };
    let subscription = topic.find_subscription(name)?;
    let is_there = subscription
        .endpoints()
        .any(|endpoint| endpoint.link() == *link);
    is_there.then(|| DeliveryTarget::on_link(link.clone(), subscription))
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::records::{subscription_name, topic_name};
    use serde_json::json;

    use super::*;
    use crate::testing::{Kit, subscription};

    /// A kit with the topic `orders`, which has the subscription `Billing` at `a.example`.
    fn kit() -> Kit {
        let kit = Kit::new();
        kit.topic(json!({ "noticesTopic": "ops", "subscriptions": { "Billing": subscription(json!({})) } }));
        kit
    }

    fn link(host: &str) -> Link {
        EndpointUrl::parse(&format!("https://{host}/"))
            .unwrap()
            .link()
    }

    fn target(host: &str, topic: &str, name: &str) -> DeliveryTarget {
        let topic = topic_name(topic);
        let name = subscription_name(name);
        DeliveryTarget::Subscription {
            link: link(host),
            topic,
            name,
        }
    }

    /// Checks who is notified of a change, and whether its subscription is gone.
    async fn check(
        kit: &Kit,
        target: DeliveryTarget,
        expected: (&[&str], bool),
    ) -> AddressedChange {
        let all = topic_name("all");
        let changes = vec![TargetChange::down(target)];
        let mut found = find_addressees(&kit.ports, Some(&all), changes)
            .await
            .unwrap();
        let found = found.pop().unwrap();
        let to: Vec<_> = found.to.values().map(TopicName::as_str).collect();
        assert_eq!(
            (to.as_slice(), found.is_gone),
            expected,
            "{:?}",
            found.change.target
        );
        found
    }

    /// Addressees are the program's topic, and topics whose subscriptions on the target are there.
    #[tokio::test]
    async fn notices_go_to_the_program_topic_and_topics_with_subscribers() {
        let kit = kit();
        check(
            &kit,
            DeliveryTarget::Link(link("a.example")),
            (&["all", "ops"], false),
        )
        .await;
        check(
            &kit,
            DeliveryTarget::Link(link("b.example")),
            (&["all"], false),
        )
        .await;
        let found = check(
            &kit,
            target("a.example", "orders", "billing"),
            (&["all", "ops"], false),
        )
        .await;
        // By the name under which it is stored.
        assert_eq!(
            found.change.target,
            target("a.example", "orders", "Billing")
        );
        check(&kit, target("b.example", "orders", "billing"), (&[], true)).await;
        check(&kit, target("a.example", "orders", "other"), (&[], true)).await;
        check(&kit, target("a.example", "gone", "billing"), (&[], true)).await;
    }

    #[tokio::test]
    async fn unreadable_topic_makes_no_subscription_count_as_gone() {
        let kit = kit();
        kit.store.write("topics/orders.json", "{");
        check(
            &kit,
            target("a.example", "orders", "billing"),
            (&["all"], false),
        )
        .await;
    }
}
