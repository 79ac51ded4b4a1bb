//! Who is told of a change: the topic of the whole program, and those that the topics with a subscription there name.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use futures_util::{StreamExt, stream};
use posthaste_core::circuit::Target;
use posthaste_core::model::endpoint::{EndpointUrl, Link};
use posthaste_core::model::name::TopicName;
use posthaste_core::model::topic::Topic;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};
use posthaste_services::RegistryError;

use super::{Change, TellError};
use crate::{PAGE_MAX, Wake};

/// Topics that are read at once. One read takes S3 some 20 ms, so that ten thousand are read in seconds.
const READS_AT_ONCE: usize = 32;

/// Whom a change is told, by folded name, so that nobody is told twice.
pub(super) type Addressees = BTreeMap<String, TopicName>;

/// A change, and whom it is told.
#[derive(Debug)]
pub(super) struct Addressed {
    pub(super) change: Change,
    pub(super) to: Addressees,
    /// Whether it is of a subscription that is not there any more: nobody is told, and it is forgotten.
    pub(super) is_gone: bool,
}

/// What a topic has to do with a change.
#[derive(Debug)]
struct Concern {
    /// The change's place among all.
    change: usize,
    /// The change's subscription, in the spelling of who made it.
    own: Option<Target>,
    notices_topic: Option<TopicName>,
}

/// Where to look for changes, by what topics have.
#[derive(Debug)]
struct Places<'a> {
    changes: &'a [Change],
    links: BTreeMap<&'a Link, usize>,
    /// By folded name.
    topics: BTreeMap<String, Vec<usize>>,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Who is told of each of these. All topics are looked at only where a link is among them, whose subscriptions may be on
    /// any.
    pub(super) async fn address(&self, changes: Vec<Change>) -> Result<Vec<Addressed>, TellError> {
        let concerns = self.concerns(&Places::of(&changes)).await?;
        let addressed = |change: Change| {
            let is_gone = matches!(change.target, Target::Subscription { .. });
            let to = self.notices_topic.iter().map(|name| (name.folded(), name.clone()));
            Addressed { to: to.collect(), change, is_gone }
        };
        let mut addressed: Vec<_> = changes.into_iter().map(addressed).collect();
        for Concern { change, own, notices_topic } in concerns {
            let Some(it) = addressed.get_mut(change) else { continue };
            it.is_gone = false;
            it.change.target = own.unwrap_or_else(|| it.change.target.clone());
            it.to.extend(notices_topic.map(|name| (name.folded(), name)));
        }
        addressed.iter_mut().filter(|it| it.is_gone).for_each(|it| it.to.clear());
        Ok(addressed)
    }

    async fn concerns(&self, places: &Places<'_>) -> Result<Vec<Concern>, TellError> {
        let names = if places.links.is_empty() {
            places.topics.keys().cloned().collect()
        } else {
            self.all_topics().await?
        };
        let read = |name: String| async move {
            let Ok(name) = TopicName::parse(&name) else { return Ok(Vec::new()) };
            match self.ports.registry.topic(&name).await {
                // Waiting does not mend it, and what becomes of its subscriptions is not known.
                Err(RegistryError::Record(error)) => {
                    tracing::error!(topic = %name, error = &error as &dyn Error, "the topic's record says nothing of notices");
                    Ok(places.unread(&name))
                }
                Ok(found) => Ok(found.map(|topic| places.concerns(&topic)).unwrap_or_default()),
                Err(error) => Err(error),
            }
        };
        let mut reads = stream::iter(names).map(read).buffer_unordered(READS_AT_ONCE);
        let mut concerns = Vec::new();
        while let Some(found) = reads.next().await {
            concerns.extend(found?);
        }
        Ok(concerns)
    }

    /// The folded names of all topics.
    async fn all_topics(&self) -> Result<BTreeSet<String>, PortError> {
        let (mut names, mut after) = (BTreeSet::new(), None);
        loop {
            let page = self.ports.state.list(layout::TOPICS, after.as_deref(), PAGE_MAX).await?;
            let name = |key: &str| Some(key.strip_prefix(layout::TOPICS)?.strip_suffix(".json")?.to_owned());
            names.extend(page.objects.iter().filter_map(|object| name(&object.key)));
            match page.next_after {
                Some(next) => after = Some(next),
                None => return Ok(names),
            }
        }
    }
}

impl<'a> Places<'a> {
    fn of(changes: &'a [Change]) -> Self {
        let mut places = Self { changes, links: BTreeMap::new(), topics: BTreeMap::new() };
        for (place, change) in changes.iter().enumerate() {
            match &change.target {
                Target::Link(link) => drop(places.links.insert(link, place)),
                Target::Subscription { topic, .. } => {
                    places.topics.entry(topic.folded()).or_default().push(place);
                }
            }
        }
        places
    }

    /// What concerns a topic: the links that its subscriptions are on, and these subscriptions.
    fn concerns(&self, topic: &Topic) -> Vec<Concern> {
        let endpoints = topic.subscriptions.values().flat_map(|it| it.endpoints());
        let links: BTreeSet<_> = endpoints.map(EndpointUrl::link).collect();
        let links = links.iter().filter_map(|link| Some((*self.links.get(link)?, None)));
        let own =
            self.own(&topic.name).filter_map(|(place, target)| Some((place, Some(spelled(topic, target)?))));
        let notices_topic = &topic.notices_topic;
        let concern = |(change, own)| Concern { change, own, notices_topic: notices_topic.clone() };
        links.chain(own).map(concern).collect()
    }

    /// The same of a topic that cannot be read: its subscriptions may be there.
    fn unread(&self, topic: &TopicName) -> Vec<Concern> {
        self.own(topic).map(|(change, _)| Concern { change, own: None, notices_topic: None }).collect()
    }

    fn own(&self, topic: &TopicName) -> impl Iterator<Item = (usize, &'a Target)> {
        let places = self.topics.get(&topic.folded()).into_iter().flatten();
        places.filter_map(|place| Some((*place, &self.changes.get(*place)?.target)))
    }
}

/// A subscription's target as its topic's record spells it; `None` if it is not there, or on other links.
fn spelled(topic: &Topic, target: &Target) -> Option<Target> {
    let Target::Subscription { link, name, .. } = target else { return None };
    let subscription = topic.subscription(name)?;
    let is_there = subscription.endpoints().any(|endpoint| endpoint.link() == *link);
    is_there.then(|| Target::on(link.clone(), subscription))
}
