//! The state of back pressure as it is shown: what the monitor saw last, and what producers get
//! because of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoDuration, IsoTimestamp};
use crate::model::{ProducerTier, SubscriptionName, Timestamp, TopicName};
use crate::pressure::{
    Admission, LevelThresholds, PressureLevel, PressureMeasure, PressureState, Resource,
    ResourceState, TopicPressure, admit_producer, admit_to,
};

/// The pressure as producers get it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PressureView {
    /// The highest level of a resource that has consequences: `normal`, `medium` or `high`.
    #[schema(value_type = String, example = "normal")]
    pub level: PressureLevel,
    /// The time since which the level holds. Left out at `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// The time of the last poll. Left out before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled_at: Option<IsoTimestamp>,
    /// The age of the state, which decides whether it counts.
    #[serde(default)]
    pub freshness: PressureFreshness,
    /// Whether resources are monitored at all.
    pub monitored: bool,
    /// The wait of acknowledgements. Where producers get 429 instead, the wait that they are asked
    /// for.
    pub tarpit: IsoDuration,
    /// The wait after the next poll, if that finds the same. Left out where no producer waits now
    /// or then, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tarpit: Option<IsoDuration>,
    /// The tiers of producers that wait.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub delayed_tiers: Vec<ProducerTier>,
    /// The tiers of producers that are refused, the most privileged first: `internal`, `standard`,
    /// `bulk`.
    #[schema(value_type = Vec<String>)]
    pub refused_tiers: Vec<ProducerTier>,
    /// The resources that could be read.
    pub resources: Vec<PressureResource>,
    /// The topics whose own producers are slowed or refused, because one of their subscriptions
    /// drains slowly: at most 1,000, by name. No other topic's producers wait for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<PressureTopic>,
    /// The installation's topic of notices, which is told when the pressure changes, and of all that
    /// fails. Left out where none is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "ops")]
    pub notices_topic: Option<TopicName>,
}

/// One topic that is under pressure of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PressureTopic {
    /// The topic.
    #[schema(value_type = String, example = "orders")]
    pub topic: TopicName,
    /// The subscription that the topic is judged by: the middle one by drain time.
    #[schema(value_type = String, example = "billing")]
    pub subscription: SubscriptionName,
    /// Messages that are due to this subscription.
    pub due: u64,
    /// The seconds until these would be delivered, as `drain-time` measures them.
    pub drain_seconds: u64,
    /// The level of that drain time: `normal`, `medium` or `high`.
    #[schema(value_type = String, example = "medium")]
    pub level: PressureLevel,
    /// The time since which the level holds.
    pub since: IsoTimestamp,
    /// The wait of acknowledgements of the topic's producers.
    pub tarpit: IsoDuration,
    /// The tiers of its producers that wait.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub delayed_tiers: Vec<ProducerTier>,
    /// The tiers of its producers that are refused.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub refused_tiers: Vec<ProducerTier>,
}

/// The age of the state that the monitor wrote last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureFreshness {
    /// The state counts.
    #[default]
    Current,
    /// The monitor has missed polls. No producer is refused. Those that were delayed or refused
    /// wait for the tarpit's first step.
    Stale,
    /// The monitor has written nothing for 15 minutes. Producers are treated as at `normal`. The
    /// resources show the last readings.
    Forgotten,
    /// The monitor has written nothing yet. Producers are treated as at `normal`.
    Missing,
    /// The state cannot be read. Producers are treated as at `normal` until the monitor writes the
    /// next one.
    Unreadable,
}

/// One resource after the monitor's last poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PressureResource {
    /// The name of the resource.
    #[schema(value_type = String, example = "submission-queue")]
    pub resource: Resource,
    /// The level: `normal`, `medium` or `high`.
    #[schema(value_type = String, example = "normal")]
    pub level: PressureLevel,
    /// The time since which the level holds.
    pub since: IsoTimestamp,
    /// The last reading.
    pub reading: u64,
    /// The unit of the reading and of the thresholds. On AWS there is no disk; `database-disk` is
    /// a share of the messages that a queue can have in flight there.
    #[serde(default)]
    #[schema(example = "messages")]
    pub unit: String,
    /// The time of the last reading.
    pub read_at: IsoTimestamp,
    /// The thresholds with which the reading was compared.
    pub thresholds: LevelThresholds,
    /// Whether the level has consequences.
    pub acts: bool,
    /// The number of polls in a row at which the level was not `normal` and had consequences.
    #[serde(default)]
    pub polls: u32,
    /// The number of such polls after which producers are refused. Left out where they are refused
    /// at once, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_depth: Option<u32>,
    /// Whether `polls` has reached `historyDepth`. Left out with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_passed: Option<bool>,
    /// The most privileged tier that is refused because of this resource. Every less privileged
    /// tier is refused too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub refused_from: Option<ProducerTier>,
    /// The other measures against this pressure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub measures: Vec<PressureMeasure>,
}

impl PressureView {
    /// A state as producers get it at this time. Without one, nothing is known and nothing is under
    /// pressure.
    pub fn new(state: Option<&PressureState>, now: Timestamp) -> Self {
        let Some(state) = state else {
            return Self::unknown(PressureFreshness::Missing);
        };
        let freshness = PressureFreshness::from_state(state, now);
        let resources = state
            .resources
            .iter()
            .map(|r| PressureResource::new(r, freshness))
            .collect();
        // A forgotten state leaves what every acknowledgement waits, and no level.
        let counts = Some(state).filter(|_| freshness != PressureFreshness::Forgotten);
        let shown = Self {
            level: counts
                .map(PressureState::effective_level)
                .unwrap_or_default(),
            since: counts
                .and_then(PressureState::level_since)
                .map(IsoTimestamp),
            polled_at: Some(IsoTimestamp(state.at)),
            monitored: state.monitored,
            resources,
            topics: counts.map_or_else(Vec::new, |state| {
                let topics = state.topics.iter();
                topics
                    .map(|topic| PressureTopic::new(topic, state, now))
                    .collect()
            }),
            ..Self::unknown(freshness)
        };
        shown.with_admissions(state, now)
    }

    /// The view where the state's object cannot be understood.
    pub fn unreadable() -> Self {
        Self::unknown(PressureFreshness::Unreadable)
    }

    /// The view while nothing is known, so that no producer is slowed.
    fn unknown(freshness: PressureFreshness) -> Self {
        Self {
            level: PressureLevel::Normal,
            since: None,
            polled_at: None,
            freshness,
            monitored: true,
            tarpit: IsoDuration::default(),
            next_tarpit: None,
            delayed_tiers: Vec::new(),
            refused_tiers: Vec::new(),
            resources: Vec::new(),
            topics: Vec::new(),
            notices_topic: None,
        }
    }

    /// The view with the answer that each tier of producers gets, by the decision that publish asks
    /// for.
    fn with_admissions(self, state: &PressureState, now: Timestamp) -> Self {
        let mut shown = self;
        for tier in ProducerTier::ALL {
            match admit_producer(Some(state), tier, now) {
                Admission::Accept => {}
                Admission::Delay(delay) => {
                    shown.tarpit = IsoDuration(delay);
                    shown.delayed_tiers.push(tier);
                }
                Admission::Refuse { .. } => shown.refused_tiers.push(tier),
            }
        }
        if shown.freshness == PressureFreshness::Current {
            let next = state
                .next_tarpit()
                .filter(|next| !next.is_zero() || state.tarpit_ms > 0);
            shown.next_tarpit = next.map(IsoDuration);
        }
        shown
    }
}

impl PressureTopic {
    /// A topic as its producers get it at this time, for its own drain time and for what all
    /// producers get.
    fn new(of: &TopicPressure, state: &PressureState, now: Timestamp) -> Self {
        let mut shown = Self {
            topic: of.topic.clone(),
            subscription: of.subscription.clone(),
            due: of.due,
            drain_seconds: of.drain_time.reading,
            level: of.drain_time.effective_level(),
            since: IsoTimestamp(of.drain_time.since),
            tarpit: IsoDuration::default(),
            delayed_tiers: Vec::new(),
            refused_tiers: Vec::new(),
        };
        for tier in ProducerTier::ALL {
            match admit_to(Some(state), &of.topic, tier, now) {
                Admission::Accept => {}
                Admission::Delay(delay) => {
                    shown.tarpit = IsoDuration(delay);
                    shown.delayed_tiers.push(tier);
                }
                Admission::Refuse { .. } => shown.refused_tiers.push(tier),
            }
        }
        shown
    }
}

impl PressureFreshness {
    /// The freshness of this state at this time.
    fn from_state(state: &PressureState, now: Timestamp) -> Self {
        if state.is_forgotten(now) {
            Self::Forgotten
        } else if state.is_stale(now) {
            Self::Stale
        } else {
            Self::Current
        }
    }
}

impl PressureResource {
    /// A resource as it was read. Its effects on producers are left out where the state is stale or
    /// forgotten.
    fn new(state: &ResourceState, freshness: PressureFreshness) -> Self {
        let is_current = freshness == PressureFreshness::Current;
        let is_forgotten = freshness == PressureFreshness::Forgotten;
        Self {
            resource: state.resource,
            level: state.level,
            since: IsoTimestamp(state.since),
            reading: state.reading,
            unit: state.unit().to_owned(),
            read_at: IsoTimestamp(state.read_at),
            thresholds: state.thresholds,
            acts: state.acts && !is_forgotten,
            polls: state.polls,
            history_depth: state.history_depth,
            history_passed: state.history_passed(),
            refused_from: state.refused_from.filter(|_| is_current),
            measures: state
                .measures
                .iter()
                .copied()
                .filter(|_| !is_forgotten)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests;
