//! Held deliveries: which of them go back to the queue now, and how many.
//!
//! Each subscription's lie in a folder of their own, those that expire first in front. How often a
//! folder is looked at, and how what may go is paced, is wake's matter; what becomes of a delivery
//! that goes is decided by deliver.

use crate::circuit::{CircuitDecision, ProbedTargets, RECOVERED_KNOWN_FOR};
use crate::model::{BatchPolicy, RequestRate, SubscriptionStatus, Timestamp};

/// The number of times that what goes in a pass doubles; after that it is more than a pass has.
const DOUBLINGS_MAX: u32 = 10;

/// The held deliveries of a subscription that are released. Those whose time is over go whatever it
/// says: deliver gives them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldRelease {
    /// All of them, as fast as passes go.
    All,
    /// Most of them in a pass, over all subscriptions on the link.
    AtMost(usize),
    /// One, as the probe of these.
    Probe(ProbedTargets),
    /// None.
    Nothing,
}

/// The standing of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointStanding {
    /// The treatment of a delivery to it now.
    pub gate: CircuitDecision,
    /// The time since which it, or its link, has been recovering.
    pub recovering_since: Option<Timestamp>,
    /// The number of passes of this run in which something went to its link.
    pub passes: u32,
}

/// Decides which of a subscription's held deliveries go. Without a status it was deleted: deliver
/// dead-letters what waits for it, as it does for a disabled one.
///
/// | subscription | endpoint | what goes |
/// |---|---|---|
/// | deleted, disabled | – | all |
/// | pending, paused, not consented | – | nothing |
/// | active | open | all; if it recovered a moment ago 1, 2, 4 … in each pass |
/// | active | ramp | as many in a pass as requests at once |
/// | active | probe | one |
/// | active | delay, hold | nothing |
pub fn decide_release(
    status: Option<SubscriptionStatus>,
    standing: EndpointStanding,
    now: Timestamp,
) -> HeldRelease {
    match status {
        None | Some(SubscriptionStatus::Disabled) => HeldRelease::All,
        Some(
            SubscriptionStatus::Pending | SubscriptionStatus::Paused | SubscriptionStatus::Failed,
        ) => HeldRelease::Nothing,
        Some(SubscriptionStatus::Active) => release_to(standing, now),
    }
}

fn release_to(standing: EndpointStanding, now: Timestamp) -> HeldRelease {
    match standing.gate {
        CircuitDecision::Open if is_new(standing, now) => {
            HeldRelease::AtMost(1 << standing.passes.min(DOUBLINGS_MAX))
        }
        CircuitDecision::Open => HeldRelease::All,
        CircuitDecision::Ramp { at_once, .. } => {
            HeldRelease::AtMost(usize::try_from(at_once).unwrap_or(usize::MAX))
        }
        CircuitDecision::Probe(probed) => HeldRelease::Probe(probed),
        CircuitDecision::Delay { .. } | CircuitDecision::Hold => HeldRelease::Nothing,
    }
}

/// Most deliveries that go to an active subscription in a run, of which there is one a minute: as
/// many as it may send in one. More would be parked again, and would take the room that others have
/// a use for.
pub fn at_rate(rate: Option<RequestRate>, batching: BatchPolicy) -> usize {
    let Some(rate) = rate else {
        return usize::MAX;
    };
    let events = if batching.enabled {
        batching.events_max.max(1)
    } else {
        1
    };
    let requests = usize::try_from(rate.requests_per_minute()).unwrap_or(usize::MAX);
    requests.saturating_mul(events)
}

/// Tells whether an endpoint recovered a moment ago: what is held for it begins to go one by one in
/// every run, because the ramp of its first seconds may be over before wake looks.
fn is_new(standing: EndpointStanding, now: Timestamp) -> bool {
    standing
        .recovering_since
        .is_some_and(|since| now < since + RECOVERED_KNOWN_FOR)
}

impl EndpointStanding {
    /// The standing of an endpoint that is well, or does not matter.
    pub const WELL: Self = Self {
        gate: CircuitDecision::Open,
        recovering_since: None,
        passes: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
    const RAMP: CircuitDecision = CircuitDecision::Ramp {
        at_once: 8,
        until: NOW,
    };
    const PROBED: ProbedTargets = ProbedTargets {
        link: true,
        subscription: false,
    };
    const GATES: [CircuitDecision; 5] = [
        CircuitDecision::Open,
        RAMP,
        CircuitDecision::Probe(PROBED),
        CircuitDecision::Delay { until: NOW },
        CircuitDecision::Hold,
    ];

    fn standing(gate: CircuitDecision) -> EndpointStanding {
        EndpointStanding {
            gate,
            ..EndpointStanding::WELL
        }
    }

    #[test]
    fn release_follows_the_table() {
        let check = |status, expected: [HeldRelease; 5]| {
            let released = GATES.map(|gate| decide_release(status, standing(gate), NOW));
            assert_eq!(released, expected, "{status:?}");
        };
        check(None, [HeldRelease::All; 5]);
        check(Some(SubscriptionStatus::Disabled), [HeldRelease::All; 5]);
        for waiting in [
            SubscriptionStatus::Pending,
            SubscriptionStatus::Paused,
            SubscriptionStatus::Failed,
        ] {
            check(Some(waiting), [HeldRelease::Nothing; 5]);
        }
        check(
            Some(SubscriptionStatus::Active),
            [
                HeldRelease::All,
                HeldRelease::AtMost(8),
                HeldRelease::Probe(PROBED),
                HeldRelease::Nothing,
                HeldRelease::Nothing,
            ],
        );
    }

    #[test]
    fn endpoint_that_just_recovered_gets_twice_as_many_each_pass() {
        let check = |ago_secs: u64, passes, expected| {
            let since = Timestamp::from_millis(NOW.as_millis() - ago_secs * 1000);
            let standing = EndpointStanding {
                recovering_since: Some(since),
                passes,
                ..EndpointStanding::WELL
            };
            assert_eq!(
                decide_release(Some(SubscriptionStatus::Active), standing, NOW),
                expected,
                "{ago_secs} {passes}"
            );
        };
        check(60, 0, HeldRelease::AtMost(1));
        check(60, 1, HeldRelease::AtMost(2));
        check(299, 5, HeldRelease::AtMost(32));
        check(299, u32::MAX, HeldRelease::AtMost(1024));
        check(300, 0, HeldRelease::All);
    }

    #[test]
    fn a_rate_bounds_a_run_by_the_events_of_a_minutes_requests() {
        let check = |per_minute: Option<u32>, enabled, expected| {
            let batching = BatchPolicy {
                enabled,
                events_max: 10,
                ..BatchPolicy::default()
            };
            assert_eq!(
                at_rate(per_minute.and_then(RequestRate::per_minute), batching),
                expected,
                "{per_minute:?}"
            );
        };
        check(None, true, usize::MAX);
        check(Some(1), false, 1);
        check(Some(60), false, 60);
        check(Some(60), true, 600);
    }
}
