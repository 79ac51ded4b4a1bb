//! The events that wait: one count for everything that shows one.
//!
//! Events wait in the queue, which counts them itself where it can, and in parked and held objects,
//! whose keys say how many events they carry. The embedded store counts those too. Where a store
//! does not, they are listed. Where the queue cannot be asked, as SQS cannot, the records of the
//! delivery log say what waits ([`book`]): for another attempt, or since it was handed back. Events
//! that were not received yet are not among them, so that their number is exact only while that
//! queue is empty.

pub mod book;
pub mod numbers;

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::time::Duration;

use futures_util::{Stream, TryStreamExt};
use posthaste_core::api::WaitingCount;
use posthaste_core::delivery_log::waiting_key;
use posthaste_core::model::{
    SQS_GROUP_ID_CHARS_MAX, SubscriptionName, Timestamp, TopicName, message_group_id,
};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, GroupCount, ListPage, ObjectStore, PortError, QueueReceiver};

use self::numbers::WaitingNumbers;
use crate::list_pages;

/// Longest time for listing parked and held objects. A list that begins just before its end still
/// ends before a request's time limit.
const LISTING_TIME: Duration = Duration::from_secs(2);

/// Minutes before the present one from which parked objects are listed where the bucket keeps the
/// marks of deleted ones, which a list would have to pass over. Older objects were slowed by
/// pressure.
const PARKED_BEFORE_MINUTES: u64 = 60;

/// The places in which events wait.
#[derive(Debug)]
pub struct WaitingEvents<'a, Q, S, C> {
    /// The delivery queue.
    pub deliveries: &'a Q,
    /// The delivery queue of the slow lane, where there is one.
    pub slow_deliveries: Option<&'a Q>,
    /// The state bucket.
    pub state: &'a S,
    /// The time.
    pub clock: &'a C,
    /// The time up to which records are counted. `None` embedded, where the queue is asked.
    pub recorded_until: Option<Timestamp>,
}

/// The counts of all subscriptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllWaiting {
    /// The count of each subscription that has waiting events, by [`message_group_id`]:
    /// `topic.subscription` in lower case.
    pub by_group: BTreeMap<String, WaitingCount>,
    /// Whether there was no time to list all of it.
    pub is_cut: bool,
    /// The count of a subscription without waiting events.
    nothing: WaitingCount,
}

impl AllWaiting {
    /// The sum of all.
    pub fn total(&self) -> WaitingCount {
        let mut sum = self.nothing;
        self.by_group.values().for_each(|count| sum.add(count));
        sum
    }

    /// The count of a subscription.
    pub fn for_subscription(&self, topic: &TopicName, name: &SubscriptionName) -> WaitingCount {
        let mut count = self.nothing;
        if let Some(found) = self.by_group.get(&message_group_id(topic, name)) {
            count.add(found);
        }
        count
    }
}

/// The counts to which objects are added, by the folder of their subscription. `None` for a folder
/// that was not asked for.
trait FolderCounts {
    fn count_of_folder(&mut self, folder: &str) -> Option<&mut WaitingCount>;
}

/// The counts of some subscriptions.
struct ChosenCounts<'a> {
    places: HashMap<&'a str, usize>,
    counts: &'a mut [WaitingCount],
}

impl FolderCounts for ChosenCounts<'_> {
    fn count_of_folder(&mut self, folder: &str) -> Option<&mut WaitingCount> {
        let place = *self.places.get(folder)?;
        self.counts.get_mut(place)
    }
}

/// The counts of all folders.
#[derive(Default)]
struct ByFolder(BTreeMap<String, WaitingCount>);

impl FolderCounts for ByFolder {
    fn count_of_folder(&mut self, folder: &str) -> Option<&mut WaitingCount> {
        Some(self.0.entry(folder.to_owned()).or_default())
    }
}

impl FolderCounts for AllWaiting {
    fn count_of_folder(&mut self, folder: &str) -> Option<&mut WaitingCount> {
        let group = folder.get(..SQS_GROUP_ID_CHARS_MAX).unwrap_or(folder);
        Some(self.by_group.entry(group.to_owned()).or_default())
    }
}

impl<Q: QueueReceiver, S: ObjectStore, C: Clock> WaitingEvents<'_, Q, S, C> {
    /// Counts the waiting events of these subscriptions of a topic, in their order.
    pub async fn count_for(
        &self,
        topic: &TopicName,
        names: &[SubscriptionName],
    ) -> Result<Vec<WaitingCount>, PortError> {
        let until = self.clock.monotonic() + LISTING_TIME;
        let groups: Vec<_> = names
            .iter()
            .map(|name| message_group_id(topic, name))
            .collect();
        let queued = self.deliveries.waiting_counts(&groups).await?;
        let is_without_queue = queued.is_none();
        let mut counts: Vec<_> = match queued {
            Some(queued) => queued.iter().map(count_in_queue).collect(),
            None => vec![count_without_queue(); names.len()],
        };
        let folders: Vec<_> = names
            .iter()
            .map(|name| layout::subscription_folder(topic, name))
            .collect();
        let mut chosen = ChosenCounts {
            places: folders.iter().map(String::as_str).zip(0..).collect(),
            counts: &mut counts,
        };
        if self.add_counted(Some(&folders), &mut chosen) {
            return Ok(counts);
        }
        let held = match names {
            [only] => layout::held_of(topic, only),
            _ => layout::held_of_topic(topic),
        };
        let is_whole = self
            .add_objects(&held, is_without_queue, &mut chosen, until)
            .await?;
        let keys: Vec<_> = names.iter().map(|name| waiting_key(topic, name)).collect();
        let numbers = if is_without_queue {
            WaitingNumbers::for_keys(self.state, &keys, self.clock.now()).await
        } else {
            None
        };
        let are_queues_empty = numbers.is_some() && self.are_queues_empty().await;
        for (count, key) in counts.iter_mut().zip(&keys) {
            count.is_partial |= !is_whole;
            if let Some(numbers) = &numbers {
                count.is_partial |= !are_queues_empty || !numbers.is_exact(key);
                count.set_recorded(numbers.waiting_events(key), self.recorded_until);
            }
        }
        Ok(counts)
    }

    /// Counts the waiting events of every subscription that has any.
    pub async fn count_all(&self) -> Result<AllWaiting, PortError> {
        self.count_all_within(LISTING_TIME).await
    }

    /// The same, with the time for listing parked and held objects. A list that begins just before
    /// its end still ends.
    pub async fn count_all_within(&self, listing: Duration) -> Result<AllWaiting, PortError> {
        let until = self.clock.monotonic() + listing;
        let queued = self.deliveries.waiting_by_group().await?;
        let mut all = AllWaiting::default();
        all.nothing.is_without_queue = queued.is_none();
        for (group, count) in queued.unwrap_or_default() {
            all.by_group
                .insert(group.to_string(), count_in_queue(&count));
        }
        if self.add_counted(None, &mut all) {
            return Ok(all);
        }
        let is_without_queue = all.nothing.is_without_queue;
        let is_whole = self
            .add_objects(layout::HELD, is_without_queue, &mut all, until)
            .await?;
        all.nothing.is_partial = !is_whole;
        all.is_cut = !is_whole;
        if is_without_queue {
            self.add_recorded(&mut all).await;
        }
        Ok(all)
    }

    /// The parked and held events of every subscription, as they are listed, without those that
    /// were published for later. `None` if there was no time for all of them, or if an object does
    /// not say how many it carries.
    pub(crate) async fn count_listed(&self) -> Result<Option<BTreeMap<String, u64>>, PortError> {
        let until = self.clock.monotonic() + LISTING_TIME;
        let mut by_folder = ByFolder::default();
        let is_whole = self
            .add_objects(layout::HELD, false, &mut by_folder, until)
            .await?;
        if !is_whole || by_folder.0.values().any(|count| count.is_partial) {
            return Ok(None);
        }
        let counts = by_folder.0.into_iter();
        Ok(Some(
            counts
                .map(|(key, count)| (key, count.recorded_in_objects()))
                .collect(),
        ))
    }

    /// Adds the numbers that records give for every subscription.
    async fn add_recorded(&self, all: &mut AllWaiting) {
        let Some(numbers) = WaitingNumbers::read_all(self.state, self.clock.now()).await else {
            return;
        };
        let mut by_group = BTreeMap::<_, u64>::new();
        for (key, events) in numbers.counts_by_key() {
            let group = key.get(..SQS_GROUP_ID_CHARS_MAX).unwrap_or(key);
            *by_group.entry(group.to_owned()).or_default() += events;
        }
        for group in by_group.keys() {
            all.by_group.entry(group.clone()).or_default();
        }
        all.nothing.is_partial |= !numbers.are_exact() || !self.are_queues_empty().await;
        all.nothing.set_recorded(0, self.recorded_until);
        for (group, count) in &mut all.by_group {
            let events = by_group.get(group).copied().unwrap_or_default();
            count.set_recorded(events, self.recorded_until);
        }
    }

    /// Whether nothing is in the delivery queues, which may hold events of which no record tells.
    async fn are_queues_empty(&self) -> bool {
        for queue in [self.deliveries].into_iter().chain(self.slow_deliveries) {
            let counts = queue.counts().await.inspect_err(|error| {
                let error = error as &dyn Error;
                tracing::warn!(
                    error,
                    "what waits is a lower bound, a delivery queue not counted"
                );
            });
            if counts.map_or(true, |counts| counts.total() > 0) {
                return false;
            }
        }
        true
    }

    /// Adds the objects of these folders, or of all, if the store has counted them.
    fn add_counted(&self, folders: Option<&[String]>, counts: &mut impl FolderCounts) -> bool {
        let Some(found) = self.state.waiting_objects(folders) else {
            return false;
        };
        for (folder, more) in found {
            if let Some(count) = counts.count_of_folder(&folder) {
                count.add(&more);
            }
        }
        true
    }

    /// Adds the parked events, and those that are held under a prefix. Returns whether there was
    /// time for all of them.
    async fn add_objects(
        &self,
        held: &str,
        has_marks: bool,
        counts: &mut impl FolderCounts,
        until: Duration,
    ) -> Result<bool, PortError> {
        let minute = self.clock.now().minute_rounded_down();
        let after =
            has_marks.then(|| layout::parked_before(minute.saturating_sub(PARKED_BEFORE_MINUTES)));
        // Held ones first, by which an endpoint that fails is known where there is no time for all.
        let held = list_pages(self.state, held, None);
        let held = self.add_listed(held, counts, add_held, until).await?;
        let parked = list_pages(self.state, layout::PARKED, after);
        let parked = self.add_listed(parked, counts, add_parked, until).await?;
        Ok(parked && held)
    }

    async fn add_listed<T: FolderCounts>(
        &self,
        pages: impl Stream<Item = Result<ListPage, PortError>> + Send,
        counts: &mut T,
        add: impl Fn(&mut T, &str) -> Option<()>,
        until: Duration,
    ) -> Result<bool, PortError> {
        let mut pages = std::pin::pin!(pages);
        while let Some(page) = pages.try_next().await? {
            for object in &page.objects {
                add(counts, &object.key);
            }
            if self.clock.monotonic() >= until && page.next_after.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn add_parked(counts: &mut impl FolderCounts, key: &str) -> Option<()> {
    let count = counts.count_of_folder(layout::parked_folder(key)?)?;
    let due = layout::parked_due_minute(key).map(layout::start_of_minute);
    let carried = layout::carried_of_key(key);
    if layout::is_scheduled(key) {
        count.add_scheduled(carried, due);
    } else {
        count.add_parked(carried, due);
    }
    Some(())
}

fn add_held(counts: &mut impl FolderCounts, key: &str) -> Option<()> {
    let count = counts.count_of_folder(layout::held_folder(key)?)?;
    count.add_held(layout::carried_of_key(key));
    Some(())
}

fn count_in_queue(of: &GroupCount) -> WaitingCount {
    WaitingCount {
        due: of.due,
        delayed: of.delayed,
        under_way: of.in_flight,
        oldest: of.oldest,
        next_due: of.next_due,
        ..WaitingCount::default()
    }
}

fn count_without_queue() -> WaitingCount {
    WaitingCount {
        is_without_queue: true,
        ..WaitingCount::default()
    }
}

#[cfg(test)]
mod tests;
