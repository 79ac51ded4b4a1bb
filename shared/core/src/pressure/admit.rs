//! The producer side's decision: may this one publish, and how long must it wait.

use std::time::Duration;

use super::{PressureState, Resource, ResourceState, Tier};
use crate::model::Timestamp;

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

/// Decides about one producer. Without a state, or with one that could not be read, nothing is
/// under pressure.
///
/// A stale state neither refuses anybody for ever nor lets a flood in. It delays by the tarpit's
/// first step every producer that it would have refused, or delayed by more than the base that each
/// acknowledgement waits.
pub fn admit(state: Option<&PressureState>, tier: Tier, now: Timestamp) -> Admission {
    let Some(state) = state else {
        return Admission::Accept;
    };
    let rest = delay(state.base_ms);
    match admit_fresh(state, tier) {
        _ if state.is_forgotten(now) => rest,
        fresh if fresh != rest && state.is_stale(now) => delay(state.first_step_ms),
        fresh => fresh,
    }
}

/// The value of the header `Posthaste-Pressure`: `medium; resource=submission-queue; delay=15`.
/// `None` where there is nothing to tell. A client that was delayed or refused learns the level and
/// on whose account.
pub fn pressure_header(
    state: Option<&PressureState>,
    tier: Tier,
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
    match (pressing(state, tier, admission), admission) {
        (Some(pressing), _) => Some(format!(
            "{}; resource={}; {wait}",
            pressing.effective_level(),
            pressing.resource
        )),
        (None, Admission::Delay(_)) => Some(format!("{}; {wait}", state.level())),
        (None, Admission::Accept | Admission::Refuse { .. }) => None,
    }
}

/// The resource behind an answer: the one that refuses the producer, or for whose tarpit it waits.
/// A producer that may go on at once hears of the one under the highest pressure.
///
/// `None` at Normal, and where a wait only runs out. Where a stale state delays instead of
/// refusing, it is the resource that would have refused.
pub fn pressing<'a>(
    state: &'a PressureState,
    tier: Tier,
    admission: &Admission,
) -> Option<&'a ResourceState> {
    match admission {
        Admission::Refuse { resource, .. } => state.resource(*resource),
        Admission::Delay(_) => state.refusing(tier).or_else(|| state.tarpitting()),
        Admission::Accept => state.worst(),
    }
}

fn admit_fresh(state: &PressureState, tier: Tier) -> Admission {
    if let Some(refusing) = state.refusing(tier) {
        return Admission::Refuse {
            retry_after: REFUSED_RETRY_AFTER,
            resource: refusing.resource,
        };
    }
    delay(state.tarpit_ms)
}

fn delay(ms: u64) -> Admission {
    if ms == 0 {
        Admission::Accept
    } else {
        Admission::Delay(Duration::from_millis(ms))
    }
}

fn secs_rounded_up(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}
