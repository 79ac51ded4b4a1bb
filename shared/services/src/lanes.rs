//! The slow targets as a process knows them: read at most every ten seconds, changed by conditional
//! put, and the queue that their deliveries take.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::lane::{
    DeliveryLane, LANES_MAX_AGE, LATE_REQUESTS_MIN, LaneObservation, SlowTargets,
};
use posthaste_core::model::{FormatError, Timestamp, Topic, message_group_id};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ETag, ObjectStore, OutgoingMessage, PortError, StoredObject};
use posthaste_ports::{QueueSender, RevalidatedObject};

use crate::send_all::send_all;
use crate::{ObjectEdit, TopicRegistry, UpdateError, get_newer, update_object};

/// The targets that are slow, as one process knows them. Clones share what is known.
#[derive(Debug)]
pub struct SlowTargetCache<S, C> {
    store: Arc<S>,
    clock: C,
    known: Arc<Mutex<CachedTargets>>,
    /// Held by the task that writes: the others then see what it wrote.
    writing: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct CachedTargets {
    targets: Arc<SlowTargets>,
    /// The version that is known; `None` if it is to be read whole.
    etag: Option<ETag>,
    /// The time of the last look at the store, whether or not it succeeded, by the clock's
    /// `monotonic`.
    looked_at: Option<Duration>,
    /// The time of the last write that failed.
    failed_at: Option<Duration>,
}

impl<S, C: Clock> Clone for SlowTargetCache<S, C> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
            known: Arc::clone(&self.known),
            writing: Arc::clone(&self.writing),
        }
    }
}

impl<S: ObjectStore, C: Clock> SlowTargetCache<S, C> {
    /// A process that knows nothing yet.
    pub fn new(store: Arc<S>, clock: C) -> Self {
        Self {
            store,
            clock,
            known: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// The targets, as they are known without a look at the store.
    pub fn known_targets(&self) -> Arc<SlowTargets> {
        Arc::clone(&self.known.lock().targets)
    }

    /// The targets, read again if the last read is their [`max_age`](SlowTargets::max_age) ago. If
    /// they cannot be read, those that are known stay in use until their time is over.
    pub async fn refreshed_targets(&self) -> Arc<SlowTargets> {
        let etag = {
            let mut known = self.known.lock();
            let now = self.clock.monotonic();
            if known.is_fresh(now) {
                return Arc::clone(&known.targets);
            }
            known.looked_at = Some(now);
            known.etag.clone()
        };
        let read = get_newer(&*self.store, layout::LANES, etag.as_ref()).await;
        let mut known = self.known.lock();
        match read {
            Ok(RevalidatedObject::Unchanged) => {}
            Ok(RevalidatedObject::Missing) => known.replace_targets(SlowTargets::default(), None),
            Ok(RevalidatedObject::Changed(object)) => match SlowTargets::parse(&object.bytes) {
                Ok(targets) => known.replace_targets(targets, Some(object.etag)),
                Err(error) => report_unread(&error),
            },
            Err(error) => report_unread(&error),
        }
        Arc::clone(&known.targets)
    }

    /// Writes an observation of a target down, if that changes anything. No request is made where
    /// the known state is fresh and the observation does not change it, nor for a while after a
    /// request failed.
    pub async fn note_slowness(&self, seen: LaneObservation, target: &DeliveryTarget) {
        let _writing = self.writing.lock().await;
        let now = self.clock.now();
        if !self
            .known
            .lock()
            .is_worth_a_look(seen, target, now, self.clock.monotonic())
        {
            return;
        }
        let update = update_object(&*self.store, layout::LANES, |found| {
            Ok::<_, Infallible>(edit_for_observation(found, seen, target, now))
        });
        match update.await {
            Ok(updated) => {
                if let Some(targets) = updated.answer {
                    report_change(target, &self.known_targets(), &targets, now);
                    let mut known = self.known.lock();
                    known.replace_targets(targets, updated.etag);
                    known.looked_at = Some(self.clock.monotonic());
                }
            }
            Err(error) => {
                report_unwritten(target, &error);
                self.known.lock().failed_at = Some(self.clock.monotonic());
            }
        }
    }

    /// Ends the time of all targets. Returns whether that succeeded.
    pub async fn clear_all(&self) -> bool {
        let now = self.clock.now();
        let update = update_object(&*self.store, layout::LANES, |found| {
            Ok::<_, Infallible>(edit_to_clear(found, now))
        });
        let cleared = update.await.inspect_err(|error| {
            let error = error as &dyn Error;
            tracing::warn!(
                error,
                "slow targets not ended, they are slow until their time is over"
            );
        });
        cleared.is_ok()
    }
}

impl CachedTargets {
    fn is_fresh(&self, monotonic: Duration) -> bool {
        is_recent(self.looked_at, monotonic, self.targets.max_age())
    }

    /// Whether an observation may change the object. A target that is known to be slow stays so,
    /// however old that knowledge is. An observation that makes no target slow by itself is worth
    /// no request.
    fn is_worth_a_look(
        &self,
        seen: LaneObservation,
        target: &DeliveryTarget,
        now: Timestamp,
        monotonic: Duration,
    ) -> bool {
        let is_sure = match seen {
            LaneObservation::SlowAnswer => true,
            LaneObservation::Late {
                in_invocation,
                holds_others_up,
            } => !holds_others_up && in_invocation < LATE_REQUESTS_MIN,
        };
        let is_sure = is_sure || self.is_fresh(monotonic) || self.targets.is_slow(target, now);
        let changes_something =
            !is_sure || self.targets.after_observation(seen, target, now).is_some();
        changes_something && !is_recent(self.failed_at, monotonic, LANES_MAX_AGE)
    }

    fn replace_targets(&mut self, targets: SlowTargets, etag: Option<ETag>) {
        self.targets = Arc::new(targets);
        self.etag = etag;
    }
}

fn is_recent(at: Option<Duration>, now: Duration, max_age: Duration) -> bool {
    at.is_some_and(|at| now.saturating_sub(at) < max_age)
}

/// Removes all slow targets. An object that cannot be read stays.
fn edit_to_clear(found: Option<StoredObject>, now: Timestamp) -> ObjectEdit<()> {
    let read = found.map(|object| SlowTargets::parse(&object.bytes));
    let is_over = match read.transpose() {
        Ok(targets) => targets.is_none_or(|targets| targets.is_empty_at(now)),
        Err(_) => true,
    };
    if is_over {
        ObjectEdit::Keep(())
    } else {
        ObjectEdit::Write(SlowTargets::default().render(), ())
    }
}

/// The object after an observation. A damaged object begins anew, and one of a newer program is
/// left to it.
fn edit_for_observation(
    found: Option<StoredObject>,
    seen: LaneObservation,
    target: &DeliveryTarget,
    now: Timestamp,
) -> ObjectEdit<Option<SlowTargets>> {
    let read = found.map(|object| SlowTargets::parse(&object.bytes));
    let before = match read.transpose() {
        Ok(targets) => targets.unwrap_or_default(),
        Err(FormatError::Newer(_)) => return ObjectEdit::Keep(None),
        Err(error) => {
            report_unread(&error);
            SlowTargets::default()
        }
    };
    match before.after_observation(seen, target, now) {
        Some(after) => ObjectEdit::Write(after.render(), Some(after)),
        None => ObjectEdit::Keep(Some(before)),
    }
}

fn report_change(
    target: &DeliveryTarget,
    before: &SlowTargets,
    after: &SlowTargets,
    now: Timestamp,
) {
    if after.is_slow(target, now) && !before.is_slow(target, now) {
        tracing::info!(slow_target = %target, "target answers slowly, its deliveries take the slow lane");
    }
}

fn report_unread(error: &(dyn Error + 'static)) {
    tracing::warn!(
        error,
        "slow targets not read, those that are known stay in use"
    );
}

fn report_unwritten(target: &DeliveryTarget, error: &UpdateError<Infallible>) {
    let error = error as &dyn Error;
    tracing::warn!(slow_target = %target, error, "slow target not written down, its deliveries stay where they are");
}

/// The groups of the delivery queue whose deliveries take the slow lane now: each a topic's and a
/// subscription's name.
pub type SlowGroups = BTreeSet<String>;

/// The slow lane, beside the delivery queue.
#[derive(Debug)]
pub struct SlowLane<Q, S, C> {
    /// The queue of the slow lane.
    pub queue: Q,
    /// The targets that are slow.
    pub lanes: SlowTargetCache<S, C>,
}

impl<Q: QueueSender, S: ObjectStore, C: Clock> SlowLane<Q, S, C> {
    /// The groups of a topic's subscriptions that are slow.
    pub async fn slow_groups(&self, topic: &Topic) -> SlowGroups {
        let targets = self.lanes.refreshed_targets().await;
        slow_groups_of(&targets, topic, self.lanes.clock.now())
    }

    /// The groups whose subscriptions are slow, among the given ones. Topics are looked up only
    /// where something is slow; one that cannot be read counts as quick.
    pub async fn slow_among(
        &self,
        registry: &TopicRegistry<S, C>,
        groups: SlowGroups,
    ) -> SlowGroups {
        let targets = self.lanes.refreshed_targets().await;
        let now = self.lanes.clock.now();
        if groups.is_empty() || targets.is_empty_at(now) {
            return SlowGroups::new();
        }
        let owners = groups
            .iter()
            .filter_map(|group| layout::folder_owner(group));
        let topics: BTreeMap<_, _> = owners.map(|(topic, _)| (topic.folded(), topic)).collect();
        let mut slow = SlowGroups::new();
        for topic in topics.into_values() {
            if let Ok(Some(topic)) = Box::pin(registry.topic(&topic)).await {
                slow.extend(slow_groups_of(&targets, &topic, now));
            }
        }
        slow.retain(|group| groups.contains(group));
        slow
    }
}

fn slow_groups_of(targets: &SlowTargets, topic: &Topic, now: Timestamp) -> SlowGroups {
    if targets.is_empty_at(now) {
        return SlowGroups::new();
    }
    let slow = topic
        .subscriptions
        .values()
        .filter(|subscription| targets.lane_of(subscription, now) == DeliveryLane::Slow);
    slow.map(|subscription| message_group_id(&subscription.topic, &subscription.name))
        .collect()
}

/// Sends any number of messages as [`send_all`] does, those of `slow` groups to their queue.
/// Returns one result for each message, in order.
pub async fn send_by_lane<Q: QueueSender>(
    quick: &Q,
    slow: Option<(&Q, &SlowGroups)>,
    messages: Vec<OutgoingMessage>,
) -> Vec<Result<(), PortError>> {
    let Some((slow, groups)) = slow.filter(|(_, groups)| !groups.is_empty()) else {
        return send_all(quick, messages).await;
    };
    let takes_slow_lane: Vec<_> = messages
        .iter()
        .map(|message| {
            message
                .group
                .as_ref()
                .is_some_and(|group| groups.contains(group))
        })
        .collect();
    let lanes = takes_slow_lane.iter().copied();
    let (slow_ones, quick_ones): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .zip(lanes)
        .partition(|(_, is_slow)| *is_slow);
    let (slow_answers, quick_answers) = futures_util::future::join(
        Box::pin(send_all(slow, without_lanes(slow_ones))),
        Box::pin(send_all(quick, without_lanes(quick_ones))),
    )
    .await;
    let mut slow_answers = slow_answers.into_iter();
    let mut quick_answers = quick_answers.into_iter();
    takes_slow_lane
        .into_iter()
        .filter_map(|is_slow| {
            if is_slow {
                slow_answers.next()
            } else {
                quick_answers.next()
            }
        })
        .collect()
}

fn without_lanes(messages: Vec<(OutgoingMessage, bool)>) -> Vec<OutgoingMessage> {
    messages.into_iter().map(|(message, _)| message).collect()
}

#[cfg(test)]
mod tests;
