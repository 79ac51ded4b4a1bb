//! The producer side's decision: may this one publish, and how long must it wait.

use std::time::Duration;

use super::{PressureLevel, PressureState, Resource, ResourceState, TopicPressure};
use crate::model::{ProducerTier, SubscriptionName, Timestamp, TopicName};

/// The time after which a refused producer is asked to come back.
pub const REFUSED_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The answer to a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Accept,
    /// Go on after this wait; nothing is written before.
    Delay(Duration),
    /// Come back later.
    Refuse {
        /// Not before this.
        retry_after: Duration,
        /// The resource that refuses.
        resource: Resource,
    },
}

/// The resource that a producer waits for, or is refused for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PressureCause {
    /// The resource.
    pub resource: ResourceState,
    /// The slow subscription of the producer's topic, where the resource is the topic's own drain
    /// time.
    pub subscription: Option<DueOfSubscription>,
}

/// A subscription, and what is due of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueOfSubscription {
    /// The subscription.
    pub name: SubscriptionName,
    /// Messages that are due.
    pub due: u64,
}

/// A replay that has to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayWait {
    /// The time after which it may try again.
    pub retry_after: Duration,
    /// The cause of the wait; `None` where a wait only runs out.
    pub pressing: Option<PressureCause>,
}

/// Decides about one producer of any topic. Without a state, or with one that could not be read,
/// nothing is under pressure.
///
/// A stale state neither refuses anybody for ever nor lets a flood in. It delays by the tarpit's
/// first step every producer that it would have refused, or delayed by more than the base that each
/// acknowledgement waits.
pub fn admit_producer(
    state: Option<&PressureState>,
    tier: ProducerTier,
    now: Timestamp,
) -> Admission {
    decide_admission(state, None, tier, now)
}

/// Decides about one producer of this topic, which waits for the topic's own pressure too.
pub fn admit_to(
    state: Option<&PressureState>,
    topic: &TopicName,
    tier: ProducerTier,
    now: Timestamp,
) -> Admission {
    decide_admission(state, state.and_then(|state| state.topic(topic)), tier, now)
}

/// Decides about one producer, whose topic may be under pressure of its own.
pub(crate) fn decide_admission(
    state: Option<&PressureState>,
    topic: Option<&TopicPressure>,
    tier: ProducerTier,
    now: Timestamp,
) -> Admission {
    let Some(state) = state else {
        return Admission::Accept;
    };
    let rest = delay_or_accept(state.base_ms);
    match admit_fresh(state, topic, tier) {
        _ if state.is_forgotten(now) => rest,
        fresh if fresh != rest && state.is_stale(now) => delay_or_accept(state.first_step_ms),
        fresh => fresh,
    }
}

/// The wait of a replay, and of one event that is sent again: they are of the tier `bulk`, and go
/// on only while no resource whose level has consequences is above Normal. `None` if it may go on.
pub fn replay_wait(
    state: Option<&PressureState>,
    topic: &TopicName,
    now: Timestamp,
) -> Option<ReplayWait> {
    let state = state.filter(|state| !state.is_forgotten(now))?;
    let admission = admit_to(Some(state), topic, ProducerTier::Bulk, now);
    let retry_after = match admission {
        Admission::Refuse { retry_after, .. } => retry_after,
        Admission::Delay(wait) if wait > state.base_wait() => wait,
        Admission::Accept | Admission::Delay(_)
            if state.effective_level() > PressureLevel::Normal =>
        {
            REFUSED_RETRY_AFTER
        }
        Admission::Accept | Admission::Delay(_) => return None,
    };
    let pressing = pressure_cause(state, Some(topic), ProducerTier::Bulk, &admission);
    Some(ReplayWait {
        retry_after,
        pressing: pressing.or_else(|| state.worst_resource().map(PressureCause::from_resource)),
    })
}

/// The value of the header `Posthaste-Pressure`: `medium; resource=submission-queue; delay=15`, and
/// for a topic's own drain time the subscription before the wait. `None` where there is nothing to
/// tell. A client that was delayed or refused learns the level and on whose account.
pub fn pressure_header(
    state: Option<&PressureState>,
    pressing: Option<&PressureCause>,
    admission: &Admission,
) -> Option<String> {
    let state = state?;
    let wait = match admission {
        Admission::Accept => "delay=0".to_owned(),
        Admission::Delay(delay) => format!("delay={}", secs_rounded_up(*delay)),
        Admission::Refuse { retry_after, .. } => {
            format!("retry-after={}", secs_rounded_up(*retry_after))
        }
    };
    match (pressing, admission) {
        (Some(pressing), _) => {
            let subscription = pressing.subscription.as_ref();
            let subscription = subscription.map(|of| format!("subscription={}; ", of.name));
            Some(format!(
                "{}; resource={}; {}{wait}",
                pressing.resource.effective_level(),
                pressing.resource.resource,
                subscription.unwrap_or_default(),
            ))
        }
        (None, Admission::Delay(_)) => Some(format!("{}; {wait}", state.effective_level())),
        (None, Admission::Accept | Admission::Refuse { .. }) => None,
    }
}

/// The resource behind an answer: the one that refuses the producer, or for whose tarpit it waits.
/// A producer that may go on at once hears of the one under the highest pressure.
///
/// `None` at Normal, and where a wait only runs out. Where a stale state delays instead of
/// refusing, it is the resource that would have refused.
pub fn pressure_cause(
    state: &PressureState,
    topic: Option<&TopicName>,
    tier: ProducerTier,
    admission: &Admission,
) -> Option<PressureCause> {
    let topic = topic.and_then(|topic| state.topic(topic));
    match admission {
        Admission::Refuse { .. } => refusing_cause(state, topic, tier),
        Admission::Delay(_) => {
            refusing_cause(state, topic, tier).or_else(|| tarpitting_cause(state, topic, tier))
        }
        Admission::Accept => {
            let of_topic =
                topic.filter(|topic| topic.drain_time.effective_level() > state.effective_level());
            match of_topic {
                Some(topic) => Some(topic.as_cause()),
                None => state.worst_resource().map(PressureCause::from_resource),
            }
        }
    }
}

fn refusing_cause(
    state: &PressureState,
    topic: Option<&TopicPressure>,
    tier: ProducerTier,
) -> Option<PressureCause> {
    if let Some(resource) = state.refusing_resource(tier) {
        return Some(PressureCause::from_resource(resource));
    }
    topic
        .filter(|topic| topic.drain_time.refuses_tier(tier))
        .map(TopicPressure::as_cause)
}

fn tarpitting_cause(
    state: &PressureState,
    topic: Option<&TopicPressure>,
    tier: ProducerTier,
) -> Option<PressureCause> {
    let of_topic = topic.filter(|topic| topic.drain_time.tarpits);
    let of_state = state
        .tarpitting_resource()
        .map(PressureCause::from_resource);
    match of_topic {
        Some(topic) if topic.wait_ms(tier) > state_wait_ms(state, tier) => Some(topic.as_cause()),
        Some(topic) => of_state.or_else(|| Some(topic.as_cause())),
        None => of_state,
    }
}

fn admit_fresh(
    state: &PressureState,
    topic: Option<&TopicPressure>,
    tier: ProducerTier,
) -> Admission {
    let of_topic = topic
        .map(|topic| &topic.drain_time)
        .filter(|drain_time| drain_time.refuses_tier(tier));
    if let Some(refusing) = state.refusing_resource(tier).or(of_topic) {
        return Admission::Refuse {
            retry_after: REFUSED_RETRY_AFTER,
            resource: refusing.resource,
        };
    }
    let of_topic = topic.map_or(0, |topic| topic.wait_ms(tier));
    delay_or_accept(state_wait_ms(state, tier).max(of_topic))
}

impl PressureCause {
    /// A resource that all producers wait for.
    fn from_resource(resource: &ResourceState) -> Self {
        Self {
            resource: resource.clone(),
            subscription: None,
        }
    }
}

/// The wait of a tier's acknowledgements by a state, in milliseconds. `internal` producers wait at
/// High alone; but for that they wait no longer than everybody does at Normal.
fn state_wait_ms(state: &PressureState, tier: ProducerTier) -> u64 {
    let level = state
        .tarpitting_resource()
        .map(ResourceState::effective_level);
    wait_ms(state.tarpit_ms, state.base_ms, level, tier)
}

impl TopicPressure {
    /// The wait of a tier's acknowledgements for the topic's own drain time, in milliseconds.
    fn wait_ms(&self, tier: ProducerTier) -> u64 {
        let level = self
            .drain_time
            .tarpits
            .then(|| self.drain_time.effective_level());
        wait_ms(self.tarpit_ms, 0, level, tier)
    }

    /// The cause of its producers' wait.
    fn as_cause(&self) -> PressureCause {
        PressureCause {
            resource: self.drain_time.clone(),
            subscription: Some(DueOfSubscription {
                name: self.subscription.clone(),
                due: self.due,
            }),
        }
    }
}

/// The wait of a tier, where the tarpit is of this length, and lasts for a resource at this level.
fn wait_ms(tarpit_ms: u64, base_ms: u64, level: Option<PressureLevel>, tier: ProducerTier) -> u64 {
    if tier == ProducerTier::Internal && level < Some(PressureLevel::High) {
        tarpit_ms.min(base_ms)
    } else {
        tarpit_ms
    }
}

fn delay_or_accept(ms: u64) -> Admission {
    if ms == 0 {
        Admission::Accept
    } else {
        Admission::Delay(Duration::from_millis(ms))
    }
}

fn secs_rounded_up(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}
