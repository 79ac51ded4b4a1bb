//! The objects that are held, counted by their folders, and the subscriptions they are held for.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use posthaste_core::api::HELD_OBJECTS_SHOWN_MAX;
use posthaste_core::api::problem::ProblemKind;
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ObjectStore, Ports};

use super::rows::{Owner, Unreadable};
use crate::error::ApiError;
use crate::manage::Manage;

/// Most pages of held objects that are listed. One takes S3 some 50 ms; a subscription with a thousand
/// objects needs a page of its own, others share one.
const PAGES_MAX: usize = 100;

/// Objects on one page.
const PAGE_OBJECTS: usize = 1000;

/// Topics that are read at once.
const READS_AT_ONCE: usize = 16;

impl<P: Ports> Manage<P> {
    /// How many objects are held in each folder, and whether these are all folders. A folder that has more
    /// than are shown is not counted to its end.
    pub(super) async fn held(&self) -> Result<(BTreeMap<String, u32>, bool), ApiError> {
        let (mut counts, mut after) = (BTreeMap::<String, u32>::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.state.list(layout::HELD, after.as_deref(), PAGE_OBJECTS).await?;
            let folders = page.objects.iter().filter_map(|object| layout::held_folder(&object.key));
            for folder in folders {
                let count = counts.entry(folder.to_owned()).or_default();
                *count = count.saturating_add(1);
            }
            let Some(next) = page.next_after else { return Ok((counts, true)) };
            // The folder that is listed last is not the last one by its name: `a.b-c/` is listed before
            // `a.b/`.
            let last = page.objects.last().and_then(|object| layout::held_folder(&object.key));
            let is_full = |folder: &&str| counts.get(*folder).is_some_and(|it| *it >= HELD_OBJECTS_SHOWN_MAX);
            after = Some(last.filter(is_full).map_or(next, layout::held_past));
        }
        Ok((counts, false))
    }

    /// The owners of these folders, by their prefix. A folder that can have no owner is left out: wake
    /// releases its objects.
    pub(super) async fn owners(
        &self,
        held: BTreeMap<String, u32>,
    ) -> Result<BTreeMap<String, Owner>, ApiError> {
        let mut by_topic = BTreeMap::<String, (TopicName, Vec<(SubscriptionName, u32)>)>::new();
        for (folder, objects) in held {
            let Some((topic, name)) = layout::folder_owner(&folder) else { continue };
            by_topic.entry(topic.folded()).or_insert_with(|| (topic, Vec::new())).1.push((name, objects));
        }
        let reads = by_topic.into_values().map(|(topic, names)| self.owners_of(topic, names));
        let mut reads = stream::iter(reads).buffer_unordered(READS_AT_ONCE);
        let mut owners = BTreeMap::new();
        while let Some(owned) = reads.next().await {
            owners.extend(owned?);
        }
        Ok(owners)
    }

    async fn owners_of(
        &self,
        topic: TopicName,
        names: Vec<(SubscriptionName, u32)>,
    ) -> Result<Vec<(String, Owner)>, ApiError> {
        let record = match self.load(&topic).await {
            // That is logged, and must not hide the others.
            Err(error) if error.0.kind == ProblemKind::Internal => Err(Unreadable),
            loaded => Ok(loaded?),
        };
        let (record, now) = (record.as_ref().map(Option::as_ref).map_err(|error| *error), self.clock.now());
        let owner = |(name, objects): (SubscriptionName, u32)| {
            (layout::held_of(&topic, &name), Owner::of(record, topic.clone(), name, objects, now))
        };
        Ok(names.into_iter().map(owner).collect())
    }
}
