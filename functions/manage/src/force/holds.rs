//! What becomes of what is known of subscriptions and their links when an operator acts: holds that end, and what nobody
//! has to know any more. Each part of it is changed once, however many subscriptions are meant.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{EndpointSettings, LinkView};
use posthaste_core::circuit::{Observation, Shard, Target, shard_index};
use posthaste_core::model::endpoint::{EndpointUrl, Link};
use posthaste_core::model::identity::Identity;
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::topic::Subscription;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, PutCondition};

use super::links_problem;
use crate::answer::store_problem;
use crate::{Manage, Store, Webhooks};

/// How long this may take after a write. The write is done and its answer waits, and a hold ends by itself.
const AFTER_WRITE_MAX: Duration = Duration::from_secs(5);

/// Parts, or marks, that are written at once. One takes S3 some 50 ms, so that those of a thousand subscriptions are
/// written in the time that there is after a write.
const WRITES_AT_ONCE: usize = 32;

/// What is to become of what is known.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    parts: BTreeMap<usize, Part>,
    /// Subscriptions that wake is to release, each with the creation that is meant.
    marks: BTreeMap<String, Option<Identity>>,
}

#[derive(Debug, Default)]
struct Part {
    ended: BTreeSet<Target>,
    forgotten: BTreeSet<Target>,
}

/// Where a subscription's events may go. What cannot be read is nowhere.
pub(crate) fn links(endpoint: &EndpointSettings) -> BTreeSet<Link> {
    let urls = [Some(&endpoint.url), endpoint.fallback_url.as_ref()];
    urls.into_iter().flatten().filter_map(|url| EndpointUrl::parse(url).ok()).map(|url| url.link()).collect()
}

impl Holds {
    /// Ends the holds of a subscription, of its links and so of what waits for it.
    pub(crate) fn end(&mut self, subscription: &Subscription) {
        for link in subscription.endpoints().map(EndpointUrl::link) {
            let ended = &mut self.part(&link).ended;
            ended.insert(Target::on(link.clone(), subscription));
            ended.insert(Target::Link(link));
        }
        let mark = layout::forcing(&subscription.topic, &subscription.name);
        self.marks.insert(mark, subscription.created.identity());
    }

    /// Forgets what is known of a subscription alone on these links: it left them, or is another one by now.
    pub(crate) fn forget(
        &mut self,
        topic: &TopicName,
        name: &SubscriptionName,
        links: impl IntoIterator<Item = Link>,
    ) {
        for link in links {
            let (topic, name) = (topic.clone(), name.clone());
            self.part(&link).forgotten.insert(Target::Subscription { link, topic, name });
        }
    }

    fn part(&mut self, link: &Link) -> &mut Part {
        self.parts.entry(shard_index(link)).or_default()
    }
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// Does it, and answers the holds that ended, as they stood. What fails keeps nothing else from being done.
    pub(super) async fn settle(&self, holds: &Holds) -> Result<Vec<LinkView>, Problem> {
        // Gathered first: the compiler finds no bound for a closure over references that is kept while others wait.
        let parts: Vec<_> = holds.parts.iter().map(|(index, part)| self.settle_part(*index, part)).collect();
        let parts: Vec<_> = stream::iter(parts).buffered(WRITES_AT_ONCE).collect().await;
        let marks: Vec<_> = holds.marks.iter().map(|(mark, identity)| self.mark(mark, *identity)).collect();
        let marks: Vec<_> = stream::iter(marks).buffered(WRITES_AT_ONCE).collect().await;
        let ended: Vec<Vec<_>> = parts.into_iter().collect::<Result<_, _>>()?;
        marks.into_iter().collect::<Result<(), _>>()?;
        Ok(ended.into_iter().flatten().collect())
    }

    /// The same after a write, until a time of [`Clock::monotonic`] and as far as it can be done: what cannot is left to the
    /// end of the holds.
    pub(crate) async fn settle_after_write(&self, topic: &TopicName, holds: &Holds, until: Duration) {
        if holds.parts.is_empty() {
            return;
        }
        let problem = tokio::select! {
            biased;
            settled = self.settle(holds) => settled.err().map(|problem| problem.kind),
            () = self.clock.sleep(self.rest(until).min(AFTER_WRITE_MAX)) => Some(ProblemKind::Unavailable),
        };
        if let Some(problem) = problem {
            tracing::warn!(%topic, ?problem, "holds not ended or forgotten; they end by themselves");
        }
    }

    /// Changes a part, and answers the holds that ended, as they stood.
    async fn settle_part(&self, index: usize, part: &Part) -> Result<Vec<LinkView>, Problem> {
        let (mut ended, now, settings) = (Vec::new(), self.clock.now(), self.links.settings());
        let change = |shard: &mut Shard| {
            // It is asked again where somebody else was faster, or where what is remembered may be too old.
            ended.clear();
            for target in &part.ended {
                let before = shard.condition(target).map(|condition| LinkView::of(target, condition));
                if shard.observe(target, &Observation::Forced, now, settings) {
                    ended.extend(before);
                }
            }
            shard.forget(&part.forgotten) || !ended.is_empty()
        };
        self.links.change(index, change).await.map_err(|error| links_problem(&error))?;
        Ok(ended)
    }

    async fn mark(&self, mark: &str, identity: Option<Identity>) -> Result<(), Problem> {
        let object = identity.map_or_else(|| "{}".to_owned(), |it| format!(r#"{{"identity":"{it}"}}"#));
        let marked = self.state.put(mark, Bytes::from(object), PutCondition::Always).await;
        marked.map(drop).map_err(|error| store_problem(&error))
    }
}
