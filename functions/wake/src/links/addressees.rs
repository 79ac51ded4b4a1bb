//! Who is told of a change: the topic of the whole program, and those that the topics with a subscription there name.

use std::collections::BTreeSet;
use std::error::Error;

use futures_util::{StreamExt, stream};
use posthaste_core::endpoint::Link;
use posthaste_core::health::Target;
use posthaste_core::layout;
use posthaste_core::name::TopicName;
use posthaste_core::topic::Topic;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender, RegistryError};

use super::{Addressees, Change, TellError};
use crate::{PAGE_MAX, Wake};

/// Topics that are read at once. One read takes S3 some 20 ms, so that ten thousand are read in seconds.
const READS_AT_ONCE: usize = 32;

/// A topic's part in what is told.
#[derive(Debug)]
struct Concerned {
    topic: TopicName,
    notices_topic: TopicName,
    links: BTreeSet<Link>,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Who is told of each of these. Topics are looked at only where a link is among them, whose subscriptions may be on
    /// any.
    pub(super) async fn addressees(&self, changes: &[Change]) -> Result<Vec<Addressees>, TellError> {
        let mut topics = BTreeSet::new();
        for change in changes {
            match &change.target {
                Target::Subscription { topic, .. } => drop(topics.insert(topic.folded())),
                Target::Link(_) => {
                    topics = self.all_topics().await?;
                    break;
                }
            }
        }
        let concerned = self.concerned(topics).await?;
        Ok(changes.iter().map(|change| self.told(change, &concerned)).collect())
    }

    fn told(&self, change: &Change, concerned: &[Concerned]) -> Addressees {
        let is_concerned = |it: &&Concerned| match &change.target {
            Target::Link(link) => it.links.contains(link),
            Target::Subscription { topic, .. } => it.topic.folded() == topic.folded(),
        };
        let named = concerned.iter().filter(is_concerned).map(|it| &it.notices_topic);
        named.chain(&self.notices_topic).map(|name| (name.folded(), name.clone())).collect()
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

    /// Those of these topics that name one for notices. One whose record is broken names none, because waiting does not mend
    /// it; where the store fails, nobody is told in this run.
    async fn concerned(&self, names: BTreeSet<String>) -> Result<Vec<Concerned>, RegistryError> {
        let read = |name: String| async move {
            let Ok(name) = TopicName::parse(&name) else { return Ok(None) };
            match self.ports.registry.topic(&name).await {
                Err(RegistryError::Record(error)) => {
                    tracing::error!(topic = %name, error = &error as &dyn Error, "the topic's record says nothing of notices");
                    Ok(None)
                }
                found => Ok(found?.and_then(|topic| concerned(&topic))),
            }
        };
        let mut reads = stream::iter(names).map(read).buffer_unordered(READS_AT_ONCE);
        let mut concerned = Vec::new();
        while let Some(found) = reads.next().await {
            concerned.extend(found?);
        }
        Ok(concerned)
    }
}

fn concerned(topic: &Topic) -> Option<Concerned> {
    let notices_topic = topic.notices_topic.clone()?;
    let endpoints =
        topic.subscriptions.values().flat_map(|it| [Some(&it.endpoint), it.fallback.as_ref()]).flatten();
    let links = endpoints.map(posthaste_core::endpoint::EndpointUrl::link).collect();
    Some(Concerned { topic: topic.name.clone(), notices_topic, links })
}
