//! Held deliveries: which of them go back to the queue now, and how many.
//!
//! Each subscription's lie in a folder of their own, those that expire first in front. How often a
//! folder is looked at, and how what may go is paced, is wake's matter; what becomes of a delivery
//! that goes is decided by deliver.

use crate::attempt::{Batching, Rate};
use crate::circuit::{CircuitDecision, Probed, RECOVERED_KNOWN_FOR};
use crate::model::{Status, Timestamp};

/// The number of times that what goes in a pass doubles; after that it is more than a pass has.
const DOUBLINGS_MAX: u32 = 10;

/// The held deliveries of a subscription that are released. Those whose time is over go whatever it
/// says: deliver gives them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// All of them, as fast as passes go.
    All,
    /// Most of them in a pass, over all subscriptions on the link.
    AtMost(usize),
    /// One, as the probe of these.
    Probe(Probed),
    /// None.
    Nothing,
}

/// The standing of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
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
pub fn release(status: Option<Status>, standing: Standing, now: Timestamp) -> Release {
    match status {
        None | Some(Status::Disabled) => Release::All,
        Some(Status::Pending | Status::Paused | Status::Failed) => Release::Nothing,
        Some(Status::Active) => release_to(standing, now),
    }
}

fn release_to(standing: Standing, now: Timestamp) -> Release {
    match standing.gate {
        CircuitDecision::Open if is_new(standing, now) => {
            Release::AtMost(1 << standing.passes.min(DOUBLINGS_MAX))
        }
        CircuitDecision::Open => Release::All,
        CircuitDecision::Ramp { at_once, .. } => {
            Release::AtMost(usize::try_from(at_once).unwrap_or(usize::MAX))
        }
        CircuitDecision::Probe(probed) => Release::Probe(probed),
        CircuitDecision::Delay { .. } | CircuitDecision::Hold => Release::Nothing,
    }
}

/// Most deliveries that go to an active subscription in a run, of which there is one a minute: as
/// many as it may send in one. More would be parked again, and would take the room that others have
/// a use for.
pub fn at_rate(rate: Option<Rate>, batching: Batching) -> usize {
    let events = if batching.enabled {
        batching.events_max.max(1)
    } else {
        1
    };
    let requests = |rate: Rate| usize::try_from(rate.requests_per_minute()).unwrap_or(usize::MAX);
    rate.map_or(usize::MAX, |rate| requests(rate).saturating_mul(events))
}

/// Tells whether an endpoint recovered a moment ago: what is held for it begins to go one by one in
/// every run, because the ramp of its first seconds may be over before wake looks.
fn is_new(standing: Standing, now: Timestamp) -> bool {
    standing
        .recovering_since
        .is_some_and(|since| now < since + RECOVERED_KNOWN_FOR)
}

impl Standing {
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
    const PROBED: Probed = Probed {
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

    fn standing(gate: CircuitDecision) -> Standing {
        Standing {
            gate,
            ..Standing::WELL
        }
    }

    #[test]
    fn what_goes_follows_the_table() {
        let check = |status, expected: [Release; 5]| {
            let released = GATES.map(|gate| release(status, standing(gate), NOW));
            assert_eq!(released, expected, "{status:?}");
        };
        check(None, [Release::All; 5]);
        check(Some(Status::Disabled), [Release::All; 5]);
        for waiting in [Status::Pending, Status::Paused, Status::Failed] {
            check(Some(waiting), [Release::Nothing; 5]);
        }
        check(
            Some(Status::Active),
            [
                Release::All,
                Release::AtMost(8),
                Release::Probe(PROBED),
                Release::Nothing,
                Release::Nothing,
            ],
        );
    }

    #[test]
    fn what_recovered_a_moment_ago_gets_twice_as_many_in_each_pass() {
        let check = |ago_secs: u64, passes, expected| {
            let since = Timestamp::from_millis(NOW.as_millis() - ago_secs * 1000);
            let standing = Standing {
                recovering_since: Some(since),
                passes,
                ..Standing::WELL
            };
            assert_eq!(
                release(Some(Status::Active), standing, NOW),
                expected,
                "{ago_secs} {passes}"
            );
        };
        check(60, 0, Release::AtMost(1));
        check(60, 1, Release::AtMost(2));
        check(299, 5, Release::AtMost(32));
        check(299, u32::MAX, Release::AtMost(1024));
        check(300, 0, Release::All);
    }

    #[test]
    fn a_rate_bounds_a_run_by_the_events_of_a_minutes_requests() {
        let check = |per_minute: Option<u32>, enabled, expected| {
            let batching = Batching {
                enabled,
                events_max: 10,
                ..Batching::default()
            };
            assert_eq!(
                at_rate(per_minute.and_then(Rate::per_minute), batching),
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
