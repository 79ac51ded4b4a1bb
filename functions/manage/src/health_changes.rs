//! Changes to the health of links and subscriptions after a write or an operator's action: holds
//! end, and health that is out of date is forgotten, also that of links which nobody uses. Each
//! shard is changed once, however many subscriptions change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use futures_util::{StreamExt, stream};
use posthaste_core::api::LinkView;
use posthaste_core::api::edit::SubscriptionChange;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::circuit::{DeliveryTarget, Observation, shard_index};
use posthaste_core::model::{EndpointUrl, Link, Subscription, SubscriptionName, TopicName};
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinkHealth, timeout, unused_links};

use crate::answer::{ApiError, unusable_record};
use crate::manage::Manage;
use crate::request_clock::time_until;
use crate::shared_port::SharedPort;

/// Longest time for the changes after a write. The answer waits for them, and wake makes those that
/// take longer.
const AFTER_WRITE_MAX: Duration = Duration::from_secs(5);

/// Objects that are written at once. One takes S3 some 50 ms, so a thousand subscriptions fit into
/// [`AFTER_WRITE_MAX`].
const WRITES_AT_ONCE: usize = 32;

/// The changes, grouped by the objects to write.
#[derive(Default)]
pub(crate) struct HealthChanges {
    shards: BTreeMap<usize, ShardChange>,
}

#[derive(Default)]
struct ShardChange {
    ended: BTreeSet<DeliveryTarget>,
    forgotten: BTreeSet<DeliveryTarget>,
}

impl HealthChanges {
    /// Forces these subscriptions: ends their holds and those of their links.
    pub(crate) fn to_force<'a>(
        record: &TopicRecord,
        names: impl IntoIterator<Item = &'a SubscriptionName>,
    ) -> Result<Self, ApiProblem> {
        let topic = record.compile().map_err(|_| unusable_record())?;
        let mut changes = Self::default();
        names
            .into_iter()
            .filter_map(|name| topic.find_subscription(name))
            .for_each(|it| changes.force_subscription(it));
        Ok(changes)
    }

    /// Forces subscriptions whose endpoint was corrected, and forgets the health on links that a
    /// subscription left or joined.
    pub(crate) fn after_write(record: &TopicRecord, written: &[SubscriptionChange]) -> Self {
        let corrected: Vec<_> = written
            .iter()
            .filter(|it| it.is_corrected)
            .map(|it| &it.name)
            .collect();
        let forced = if corrected.is_empty() {
            None
        } else {
            Self::to_force(record, corrected).ok()
        };
        let mut changes = forced.unwrap_or_default();
        for SubscriptionChange {
            name,
            links_changed,
            ..
        } in written
        {
            changes.forget_subscription(&record.name, name, links_changed.iter().cloned());
        }
        changes
    }

    /// Forgets the health of a subscription on these links, because it left them or another one has
    /// its name now.
    pub(crate) fn forget_subscription(
        &mut self,
        topic: &TopicName,
        name: &SubscriptionName,
        links: impl IntoIterator<Item = Link>,
    ) {
        for link in links {
            let topic = topic.clone();
            let name = name.clone();
            self.shard_change(&link)
                .forgotten
                .insert(DeliveryTarget::Subscription { link, topic, name });
        }
    }

    fn force_subscription(&mut self, subscription: &Subscription) {
        for link in subscription.endpoints().map(EndpointUrl::link) {
            let ended = &mut self.shard_change(&link).ended;
            ended.insert(DeliveryTarget::on_link(link.clone(), subscription));
            ended.insert(DeliveryTarget::Link(link));
        }
    }

    fn shard_change(&mut self, link: &Link) -> &mut ShardChange {
        self.shards.entry(shard_index(link)).or_default()
    }
}

/// The writer of link health.
pub(crate) struct HealthWriter<P: Ports> {
    links: SharedPort<P, LinkHealth<P::Store, P::Clock>>,
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for HealthWriter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            links: SharedPort::new(manage, |it| &it.links),
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> HealthWriter<P> {
    /// Applies the changes, and answers the holds that ended, as they were. The other changes are
    /// made even if one fails.
    pub(crate) async fn apply_changes(
        &self,
        changes: &HealthChanges,
    ) -> Result<Vec<LinkView>, ApiError> {
        // The futures are collected first: the compiler refuses a lazy closure over references
        // here.
        let shards: Vec<_> = changes
            .shards
            .iter()
            .map(|(index, it)| self.change_shard(*index, it))
            .collect();
        let shards: Vec<_> = stream::iter(shards)
            .buffered(WRITES_AT_ONCE)
            .collect()
            .await;
        let ended: Vec<Vec<_>> = shards.into_iter().collect::<Result<_, _>>()?;
        Ok(ended.into_iter().flatten().collect())
    }

    /// Applies the changes after a write, until a time of the clock's `monotonic`. wake ends the
    /// holds and forgets the health that this cannot.
    pub(crate) async fn apply_after_write(
        &self,
        topic: &TopicName,
        changes: &HealthChanges,
        until: Duration,
    ) {
        if changes.shards.is_empty() {
            return;
        }
        let length = time_until(&self.clock, until).min(AFTER_WRITE_MAX);
        let apply = async {
            self.apply_changes(changes).await?;
            self.forget_unused(changes).await
        };
        let applied = timeout(&self.clock, length, apply).await;
        let problem = applied.map_or(Some(ProblemKind::Unavailable), |it| {
            it.err().map(|error| error.0.kind)
        });
        if let Some(problem) = problem {
            let problem = problem.title();
            tracing::warn!(%topic, problem, "holds not ended or forgotten yet; wake does it");
        }
    }

    /// Forgets the health of links that subscriptions left, if no other subscription uses them.
    async fn forget_unused(&self, changes: &HealthChanges) -> Result<(), ApiError> {
        let left = changes.shards.values().flat_map(|shard| &shard.forgotten);
        let links = left
            .map(|target| target.link().clone())
            .filter(|link| self.is_failing(link))
            .collect();
        for link in unused_links(&*self.state, links).await? {
            let index = shard_index(&link);
            let target = DeliveryTarget::Link(link);
            self.links
                .change_shard(index, |shard| shard.forget_targets([&target]))
                .await?;
        }
        Ok(())
    }

    fn is_failing(&self, link: &Link) -> bool {
        let target = DeliveryTarget::Link(link.clone());
        self.links.condition(&target).is_some()
    }

    async fn change_shard(
        &self,
        index: usize,
        change: &ShardChange,
    ) -> Result<Vec<LinkView>, ApiError> {
        let mut ended = Vec::new();
        let now = self.clock.now();
        let settings = self.links.settings();
        self.links
            .change_shard(index, |shard| {
                // The closure runs again if another writer was faster, or if the cached shard may
                // be too old.
                ended.clear();
                for target in &change.ended {
                    let before = shard
                        .condition(target)
                        .map(|condition| LinkView::for_target(target, condition));
                    if shard.apply_observation(target, &Observation::Forced, now, settings) {
                        ended.extend(before);
                    }
                }
                shard.forget_targets(&change.forgotten) || !ended.is_empty()
            })
            .await?;
        Ok(ended)
    }
}
