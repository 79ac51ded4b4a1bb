//! The overview of links and subscriptions that are not well, and of what is held.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRef;
use futures_util::{StreamExt, TryStreamExt, stream};
use posthaste_core::api::problem::ProblemKind;
use posthaste_core::api::{HELD_OBJECTS_SHOWN_MAX, LinkState, LinksView, SlowTargetView};
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::lane::SlowTargets;
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore, Ports};
use posthaste_services::{AllWaiting, LinkHealth};

use super::rows::{HeldSubscription, link_rows};
use crate::answer::ApiError;
use crate::log_coverage::LogCoverage;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;
use crate::waiting_counts::WaitingCounts;

/// Most rows of an answer. Lambda could answer ten times as many.
const SHOWN_MAX: usize = 1000;

/// Most pages of held objects that are listed. One takes S3 some 50 ms; a subscription with a
/// thousand objects needs a page of its own, others share one.
const PAGES_MAX: usize = 100;

/// Objects on one page.
const PAGE_OBJECTS: usize = 1000;

/// Most subscriptions with waiting events whose links are looked up.
const WAITING_MAX: usize = 1000;

/// Topics that are read at once.
const READS_AT_ONCE: usize = 16;

/// The overview of what is not well.
pub(crate) struct LinkOverview<P: Ports> {
    links: SharedPort<P, LinkHealth<P::Store, P::Clock>>,
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    waiting: WaitingCounts<P>,
    records: TopicRecords<P>,
    coverage: LogCoverage<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LinkOverview<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            links: SharedPort::new(manage, |it| &it.links),
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            waiting: WaitingCounts::from_ref(manage),
            records: TopicRecords::from_ref(manage),
            coverage: LogCoverage::from_ref(manage),
        }
    }
}

impl<P: Ports> LinkOverview<P> {
    /// The links and subscriptions that are not well.
    pub(super) async fn unhealthy_links(&self) -> Result<LinksView, ApiError> {
        let shards = self.links.read_all().await?;
        let failing: Vec<_> = shards
            .iter()
            .flat_map(|(_, shard)| shard.conditions())
            .collect();
        let (mut held, is_whole) = self.count_held_objects().await?;
        // At first nothing is held for a subscription that fails. It has a row too, under the name that
        // was written.
        let own = failing
            .iter()
            .filter_map(|(target, _)| own_folder(target))
            .take(SHOWN_MAX);
        for folder in own {
            held.entry(folder).or_default();
        }
        // Where nothing fails and nothing is held, there is no row that could show what waits.
        let mut waiting = AllWaiting::default();
        if !held.is_empty() || !failing.is_empty() {
            waiting = self.waiting.waiting_events().count_all().await?;
        }
        for group in waiting.by_group.keys().take(WAITING_MAX) {
            held.entry(group.clone()).or_default();
        }
        let mut links = link_rows(&failing, &self.load_owners(held).await?, &waiting);
        let truncated =
            !is_whole || links.len() > SHOWN_MAX || waiting.by_group.len() > WAITING_MAX;
        links.truncate(SHOWN_MAX);
        let slow = self.slow_targets().await?;
        Ok(LinksView {
            links,
            slow,
            truncated,
        })
    }

    /// The targets that are slow, at most [`SLOW_LINKS_MAX`](posthaste_core::lane::SLOW_LINKS_MAX).
    async fn slow_targets(&self) -> Result<Vec<SlowTargetView>, ApiError> {
        if !self.waiting.has_slow_lane() {
            return Ok(Vec::new());
        }
        let Some(object) = self.state.get(layout::LANES).await? else {
            return Ok(Vec::new());
        };
        // What cannot be read is found out again by deliver.
        let targets = SlowTargets::parse(&object.bytes).unwrap_or_default();
        let slow = targets.slow_at(self.clock.now());
        Ok(slow
            .map(|(target, until)| SlowTargetView::for_target(target, until))
            .collect())
    }

    /// Counts the held objects of each folder; the flag says whether all folders are there. A
    /// folder is not counted to its end if it has more objects than are shown.
    async fn count_held_objects(&self) -> Result<(BTreeMap<String, u32>, bool), ApiError> {
        let mut counts = BTreeMap::<String, u32>::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let page = self
                .state
                .list(layout::HELD, after.as_deref(), PAGE_OBJECTS)
                .await?;
            let folders = page
                .objects
                .iter()
                .filter_map(|object| layout::held_folder(&object.key));
            for folder in folders {
                let count = counts.entry(folder.to_owned()).or_default();
                *count = count.saturating_add(1);
            }
            let Some(next) = page.next_after else {
                return Ok((counts, true));
            };
            // The order of a list is not that of the folders' names: `a.b-c/` comes before `a.b/`.
            let last = page
                .objects
                .last()
                .and_then(|object| layout::held_folder(&object.key));
            let full = last.filter(|folder| {
                let count = counts.get(*folder).copied().unwrap_or_default();
                count >= HELD_OBJECTS_SHOWN_MAX
            });
            after = Some(full.map_or(next, layout::held_past));
        }
        Ok((counts, false))
    }

    /// The owners of these folders, by the prefix of their objects. A folder that cannot have an
    /// owner is left out: wake releases its objects.
    async fn load_owners(
        &self,
        held: BTreeMap<String, u32>,
    ) -> Result<BTreeMap<String, HeldSubscription>, ApiError> {
        let mut by_topic = BTreeMap::<String, (TopicName, Vec<(SubscriptionName, u32)>)>::new();
        for (folder, objects) in held {
            let Some((topic, name)) = layout::folder_owner(&folder) else {
                continue;
            };
            by_topic
                .entry(topic.folded())
                .or_insert_with(|| (topic, Vec::new()))
                .1
                .push((name, objects));
        }
        let reads = by_topic
            .into_values()
            .map(|(topic, names)| self.owners_of(topic, names));
        stream::iter(reads)
            .buffer_unordered(READS_AT_ONCE)
            .try_concat()
            .await
    }

    async fn owners_of(
        &self,
        topic: TopicName,
        names: Vec<(SubscriptionName, u32)>,
    ) -> Result<BTreeMap<String, HeldSubscription>, ApiError> {
        let (record, otherwise) = match self.records.load_record(&topic).await {
            // A record that cannot be read is logged, and must not hide the others.
            Err(error) if error.0.kind == ProblemKind::Internal => (None, LinkState::Unknown),
            loaded => (loaded?, LinkState::Releasing),
        };
        let now = self.clock.now();
        let is_unrecorded = self.coverage.is_off(record.as_ref());
        let mut owners = BTreeMap::new();
        for (name, objects) in names {
            let prefix = layout::held_of(&topic, &name);
            let found = record
                .as_ref()
                .and_then(|record| HeldSubscription::from_record(record, &name, now));
            let owner = found.unwrap_or_else(|| {
                HeldSubscription::without_record(topic.clone(), name, otherwise)
            });
            owners.insert(
                prefix,
                owner.with_objects(objects).unrecorded_if(is_unrecorded),
            );
        }
        Ok(owners)
    }
}

/// The folder of the objects that are held for a target; `None` for a link.
fn own_folder(target: &DeliveryTarget) -> Option<String> {
    let DeliveryTarget::Subscription { topic, name, .. } = target else {
        return None;
    };
    layout::held_folder(&layout::held_of(topic, name)).map(str::to_owned)
}
