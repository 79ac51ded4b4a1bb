//! The state that the monitor writes and the producers' side reads: `pressure.json`, versioned.
//! `evaluate` and `admit` decide what follows from it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{LevelThresholds, PressureLevel, PressureMeasure, Resource};
use crate::model::time::whole_millis;
use crate::model::zero::is_zero;
use crate::model::{ProducerTier, SubscriptionName, Timestamp, TopicName};

/// Number of polls after which an embedded state is stale.
pub const STATE_STALE_AFTER_POLLS: u32 = 3;

/// Age from which a state on AWS is stale. The schedule starts the monitor there once a minute.
pub const STATE_STALE_AFTER_AWS: Duration = Duration::from_secs(150);

/// Age from which a state counts as Normal: the monitor has stopped, and producers must not be held
/// for ever.
pub const STATE_FORGOTTEN_AFTER: Duration = Duration::from_mins(15);

/// The most changes that wait in a state for their notices: each resource three times, and some to
/// spare. Every publisher reads the state, so it must stay small. A change takes some 400 bytes.
pub const UNTOLD_MAX: usize = 32;

/// The most topics that a state names, some 600 bytes each. Every publisher reads the state.
pub const TOPICS_MAX: usize = 1000;

/// The unit of a share of messages in flight.
const IN_FLIGHT_UNIT: &str = "percent of the messages that may be in flight";

/// The pressure after one poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureState {
    /// The time of the poll.
    pub at: Timestamp,
    /// Whether resources are watched at all (`EnableResourceMonitoring`).
    pub monitored: bool,
    /// The wait of acknowledgements, in milliseconds.
    pub tarpit_ms: u64,
    /// The part of that which every acknowledgement waits, also at Normal, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub base_ms: u64,
    /// The wait while the state is stale: the tarpit's first step, in milliseconds.
    pub first_step_ms: u64,
    /// The age at which the state is stale, in milliseconds: its writer knows when the next one
    /// should be there.
    pub stale_after_ms: u64,
    /// The wait of acknowledgements after the next poll if it finds the same, in milliseconds. An
    /// older program does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tarpit_ms: Option<u64>,
    /// The resources that could be read, in the order of the table.
    pub resources: Vec<ResourceState>,
    /// The topics whose own producers wait or soon may, in the order of their names in lower case;
    /// at most [`TOPICS_MAX`]. An older program reads the state without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<TopicPressure>,
    /// The slow lane of AWS, while a target is slow or its queue has messages. Publish looks up
    /// which targets are slow only where there are some. An older program reads the state without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_lane: Option<SlowLaneState>,
    /// Changes that wait for their notice since before this was written, the oldest first; at most
    /// [`UNTOLD_MAX`]. An older program reads the state without them, and without the topics of
    /// those that it knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<PressureChange>,
}

/// The slow lane after one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlowLaneState {
    /// The number of targets that are slow.
    pub targets: usize,
    /// Messages in its queue that are due and not being worked on.
    pub due: u64,
    /// Messages of it that are not due yet.
    pub delayed: u64,
    /// Messages of it that are being worked on.
    pub in_flight: u64,
    /// The most of them that are worked on at once.
    pub places: u64,
}

/// One resource after one poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that do not follow from one another, as they are written"
)]
pub struct ResourceState {
    /// The resource.
    pub resource: Resource,
    /// The level of the resource.
    pub level: PressureLevel,
    /// The time since which it is at that level.
    pub since: Timestamp,
    /// The last reading, in the resource's own unit.
    pub reading: u64,
    /// The time of that reading; before [`PressureState::at`] if it could not be read since.
    pub read_at: Timestamp,
    /// The thresholds it was held against.
    pub thresholds: LevelThresholds,
    /// Whether its level has consequences for producers. In the profile `scaled` the submission
    /// queue's has none while it drains fast. A row that refuses no producer never has any.
    pub acts: bool,
    /// Whether the row refuses no producer in its profile: its level is logged, told and alarmed
    /// about, and no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched_only: bool,
    /// Whether acknowledgements wait on its account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tarpits: bool,
    /// The number of polls in a row at which it acted at a level other than Normal.
    pub polls: u32,
    /// The number of them after which producers are refused; `None` where that is at once, or
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_depth: Option<u32>,
    /// Whether the reading is a share of the messages that a queue can have in flight, in the
    /// place of a disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_flight: bool,
    /// The most privileged tier that is refused on its account, and with it every less privileged
    /// one.
    pub refused_from: Option<ProducerTier>,
    /// The other measures that are taken on its account.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub measures: BTreeSet<PressureMeasure>,
}

/// One topic after one poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicPressure {
    /// The topic.
    pub topic: TopicName,
    /// The subscription that the topic is judged by: the middle one by drain time.
    pub subscription: SubscriptionName,
    /// Messages of that subscription that are due.
    pub due: u64,
    /// The topic's drain time.
    pub drain_time: ResourceState,
    /// The wait of acknowledgements of the topic's producers, in milliseconds.
    pub tarpit_ms: u64,
    /// The same after the next poll if it finds the same.
    #[serde(default)]
    pub next_tarpit_ms: u64,
}

/// A change of one resource in one poll: of its level, or of whether producers are refused on its
/// account.
///
/// A change waits for its notice in the state itself, so that one write holds both the poll and the
/// news of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureChange {
    /// The time of the poll.
    pub at: Timestamp,
    /// The topic whose own producers it is about; `None` where it is about all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<ChangedTopic>,
    /// The resource.
    pub resource: Resource,
    /// The level before, as the operator last heard it.
    pub previous: PressureLevel,
    /// The level now; the same as before if only the refusal began.
    pub current: PressureLevel,
    /// Whether producers are refused on its account who were not before.
    pub refusal_began: bool,
    /// The highest level after the poll of all resources whose level has consequences for
    /// producers.
    pub overall: PressureLevel,
    /// The wait of acknowledgements after the poll, in milliseconds.
    pub tarpit_ms: u64,
    /// The tiers that are refused after the poll, on whose account ever.
    pub refused_tiers: Vec<ProducerTier>,
    /// The resource after the poll; `None` if it could not be read for so long that it is
    /// forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ResourceState>,
}

/// A topic whose own pressure changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedTopic {
    /// The topic.
    pub name: TopicName,
    /// The subscription that it is judged by.
    pub subscription: SubscriptionName,
    /// Messages of that subscription that are due.
    pub due: u64,
}

impl PressureState {
    /// The state when nothing is known and nothing is under pressure.
    pub fn normal(at: Timestamp) -> Self {
        Self {
            at,
            monitored: true,
            tarpit_ms: 0,
            base_ms: 0,
            first_step_ms: 0,
            stale_after_ms: whole_millis(STATE_STALE_AFTER_AWS),
            next_tarpit_ms: None,
            resources: Vec::new(),
            topics: Vec::new(),
            slow_lane: None,
            untold: Vec::new(),
        }
    }

    /// The state when resources are not watched.
    pub fn unmonitored(at: Timestamp) -> Self {
        Self {
            monitored: false,
            ..Self::normal(at)
        }
    }

    /// Whether pressure is so far away that a monitor may look less often: every resource was read
    /// by this poll and is below half of its threshold for Normal, and nothing of an earlier
    /// pressure lasts.
    pub fn is_calm(&self) -> bool {
        let is_read = self.resource(Resource::SubmissionQueue).is_some();
        is_read
            && self
                .resources
                .iter()
                .all(|resource| resource.is_calm(self.at))
            && self.topics.is_empty()
            && self.tarpit_ms == self.base_ms
            && self.untold.is_empty()
    }

    /// Whether deliveries of some targets take the slow lane.
    pub fn has_slow_targets(&self) -> bool {
        self.slow_lane.is_some_and(|lane| lane.targets > 0)
    }

    /// The highest level that has consequences for producers.
    pub fn effective_level(&self) -> PressureLevel {
        self.resources
            .iter()
            .map(ResourceState::effective_level)
            .max()
            .unwrap_or_default()
    }

    /// The time since which the highest level lasts: when the first of its resources reached it.
    /// `None` at Normal.
    pub fn level_since(&self) -> Option<Timestamp> {
        self.highest_resources().map(|r| r.since).min()
    }

    /// The resource under the highest pressure; the first of the table where there are several.
    /// `None` at Normal.
    pub fn worst_resource(&self) -> Option<&ResourceState> {
        self.highest_resources().next()
    }

    fn highest_resources(&self) -> impl Iterator<Item = &ResourceState> {
        let level = self.effective_level();
        self.resources
            .iter()
            .filter(move |r| level > PressureLevel::Normal && r.effective_level() == level)
    }

    /// The resource for which acknowledgements wait, the one under the highest pressure of several.
    /// `None` where the wait only runs out.
    pub fn tarpitting_resource(&self) -> Option<&ResourceState> {
        worst_of(self.resources.iter().filter(|r| r.tarpits))
    }

    /// The pressure of one topic, if the state names it. Case does not matter.
    pub fn topic(&self, topic: &TopicName) -> Option<&TopicPressure> {
        let name = topic.folded_text();
        let place = self
            .topics
            .binary_search_by(|it| it.topic.folded_text().cmp(&name))
            .ok()?;
        self.topics.get(place)
    }

    /// The time until what is due now is delivered: of all topics, or of this one where that takes
    /// longer.
    pub fn drain_time(&self, topic: Option<&TopicName>) -> Duration {
        let of_topic = topic.and_then(|topic| self.topic(topic));
        let of_topic = of_topic.map_or(0, |of| of.drain_time.reading);
        let of_all = self.resource(Resource::DrainTime);
        Duration::from_secs(of_all.map_or(0, |all| all.reading).max(of_topic))
    }

    /// One resource, if it could be read.
    pub fn resource(&self, resource: Resource) -> Option<&ResourceState> {
        self.resources.iter().find(|r| r.resource == resource)
    }

    /// The resource that refuses a tier, the one under the highest pressure of several.
    pub fn refusing_resource(&self, tier: ProducerTier) -> Option<&ResourceState> {
        worst_of(self.resources.iter().filter(|r| r.refuses_tier(tier)))
    }

    /// The tiers that are refused, the most privileged first.
    pub fn refused_tiers(&self) -> Vec<ProducerTier> {
        ProducerTier::ALL
            .into_iter()
            .filter(|tier| self.refusing_resource(*tier).is_some())
            .collect()
    }

    /// Whether the monitor has missed polls until only the tarpit's first step is left of its word.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let stale_after = Duration::from_millis(self.stale_after_ms).min(STATE_FORGOTTEN_AFTER);
        self.monitored && self.age(now) > stale_after
    }

    /// Whether the monitor must have stopped.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        self.monitored && self.age(now) > STATE_FORGOTTEN_AFTER
    }

    /// The age. A clock that runs behind the monitor's shows a state from the future; its distance
    /// counts the same.
    pub(super) fn age(&self, now: Timestamp) -> Duration {
        now.since(self.at).max(self.at.since(now))
    }

    /// The wait of acknowledgements.
    pub fn tarpit_wait(&self) -> Duration {
        Duration::from_millis(self.tarpit_ms)
    }

    /// The wait after the next poll if it finds the same; `None` where the state's writer did not
    /// say so.
    pub fn next_tarpit(&self) -> Option<Duration> {
        self.next_tarpit_ms.map(Duration::from_millis)
    }

    /// The part of it that every acknowledgement waits, also at Normal.
    pub fn base_wait(&self) -> Duration {
        Duration::from_millis(self.base_ms)
    }

    /// Whether a measure is to be taken besides slowing and refusing producers.
    pub fn asks_for(&self, measure: PressureMeasure) -> bool {
        self.resources.iter().any(|r| r.measures.contains(&measure))
    }

    /// Whether new payloads go to the object store.
    pub fn asks_to_dehydrate(&self) -> bool {
        self.asks_for(PressureMeasure::Dehydrate)
    }

    /// The due messages of a subscription by the group of its messages, as far as the state names
    /// it; else none.
    pub fn due_of(&self, group: &str) -> u64 {
        let of_topic = parse_group(group).and_then(|(topic, subscription)| {
            let of_topic = self.topic(&topic)?;
            (of_topic.subscription.folded() == subscription.as_str()).then_some(of_topic.due)
        });
        of_topic.unwrap_or_default()
    }

    /// The due messages of a subscription that is slow: its share of what is due in the slow lane,
    /// where the queue tells only the sum.
    pub fn due_of_slow(&self) -> u64 {
        self.slow_lane
            .map_or(0, |lane| lane.due.div_ceil(lane.targets.max(1) as u64))
    }
}

impl TopicPressure {
    /// The level, as far as it has consequences for the topic's producers.
    pub fn effective_level(&self) -> PressureLevel {
        self.drain_time.effective_level()
    }

    /// Whether nothing of it is left to tell.
    pub(super) fn is_at_rest(&self, base_ms: u64) -> bool {
        self.drain_time.effective_level() == PressureLevel::Normal
            && self.drain_time.refused_from.is_none()
            && self.tarpit_ms <= base_ms
    }
}

impl ResourceState {
    /// The unit of reading and thresholds, in words.
    pub const fn unit(&self) -> &'static str {
        if self.in_flight {
            IN_FLIGHT_UNIT
        } else {
            self.resource.unit()
        }
    }

    /// The level as far as it has consequences for producers: Normal while the row does not act.
    pub fn effective_level(&self) -> PressureLevel {
        if self.acts {
            self.level
        } else {
            PressureLevel::Normal
        }
    }

    /// The level that operators see in logs, notices and gauges, also that of a row which is only
    /// watched.
    pub fn told_level(&self) -> PressureLevel {
        if self.watched_only {
            self.level
        } else {
            self.effective_level()
        }
    }

    /// Whether the poll of this time read it, below half of its threshold for Normal.
    fn is_calm(&self, polled_at: Timestamp) -> bool {
        self.level == PressureLevel::Normal
            && self.read_at == polled_at
            && self.reading.saturating_mul(2) < self.thresholds.normal
            && self.refused_from.is_none()
    }

    /// Whether the history after which producers are refused has passed; `None` where there is
    /// none.
    pub fn history_passed(&self) -> Option<bool> {
        self.history_depth.map(|depth| self.polls >= depth)
    }

    /// Whether producers of this tier are refused on its account.
    pub fn refuses_tier(&self, tier: ProducerTier) -> bool {
        self.refused_from.is_some_and(|from| tier >= from)
    }
}

/// The resource under the highest pressure; the first where several are.
fn worst_of<'a>(resources: impl Iterator<Item = &'a ResourceState>) -> Option<&'a ResourceState> {
    resources.reduce(|worst, r| {
        if r.effective_level() > worst.effective_level() {
            r
        } else {
            worst
        }
    })
}

/// The topic and the subscription, in lower case, whose messages are in a group.
pub(super) fn parse_group(group: &str) -> Option<(TopicName, SubscriptionName)> {
    let (topic, subscription) = group.split_once('.')?;
    Some((
        TopicName::parse(topic).ok()?,
        SubscriptionName::parse(subscription).ok()?,
    ))
}
