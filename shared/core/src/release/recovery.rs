//! Recovery by itself: when the dead letters of an outage are sent again, and which of them. Pure:
//! times and what is known of the endpoint are arguments.
//!
//! deadletter counts the letters of an outage in a [`RecoveryMark`]. wake looks at the marks: once
//! the endpoint has been well for some minutes, it begins an ordinary replay for the mark.

mod letters;
mod step;

use std::time::Duration;

use crate::api::LeftOutReason;
use crate::circuit::{TargetCondition, TargetPhase};
use crate::model::{DeadLetter, DeadLetterReason, LetterPlace, RECOVERIES_MAX, Timestamp};
use crate::stored::RestoredLetter;

pub use letters::{MarkIsGoing, OutageLetters};
pub use step::{RecoveryFacts, RecoveryStep};

/// The time for which the rate of a recovery stays at 1, 2, 4 … events a second, until it has
/// reached that of its subscription.
const RAMP_STEP: Duration = Duration::from_mins(1);

/// The time after which a probe that is due counts as one that nothing makes: what waits in the
/// queue looks every 10 s, what is held is looked at once a minute.
pub const PROBE_UNTAKEN_AFTER: Duration = Duration::from_mins(2);

/// Whether a letter was given up for a reason that an outage explains: no answer, a fault of the
/// server, a request that came too early, or the end of its time. A refusal of the event is none.
pub fn may_be_of_outage(letter: &DeadLetter) -> bool {
    let status = letter.delivery.last.and_then(|last| last.status);
    match letter.reason {
        DeadLetterReason::TimeToLiveExceeded => true,
        DeadLetterReason::MaxDeliveryAttemptsExceeded => {
            status.is_none_or(|status| matches!(status, 408 | 429 | 500..=599))
        }
        // The name of its host does not exist.
        DeadLetterReason::UndeliverableDueToClientError => letter
            .delivery
            .last
            .is_some_and(|last| last.name_was_unknown),
        DeadLetterReason::SubscriptionDeleted
        | DeadLetterReason::EndpointGone
        | DeadLetterReason::SubscriptionDisabled
        | DeadLetterReason::MalformedMessage
        | DeadLetterReason::HandlerFailed => false,
    }
}

/// Whether a target takes requests, as far as the circuit knows. What is held, or goes only because
/// an operator wants it, shows nothing.
pub fn is_well(condition: Option<&TargetCondition>) -> bool {
    condition.is_none_or(|it| it.phase == TargetPhase::Recovering && !it.forced)
}

/// Whether a target that is not well could be probed, and nothing has done so for a while.
pub fn is_unprobed(condition: &TargetCondition, now: Timestamp) -> bool {
    let due = condition.next_probe().unwrap_or(condition.since);
    now >= due + PROBE_UNTAKEN_AFTER
}

/// The events a second with which a recovery goes that began, or went on, at `ramp_from`.
pub fn ramped_rate(rate_per_second: u32, ramp_from: Timestamp, now: Timestamp) -> u32 {
    let steps = now.since(ramp_from).as_millis() / RAMP_STEP.as_millis();
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    1_u32
        .checked_shl(steps)
        .unwrap_or(u32::MAX)
        .min(rate_per_second)
}

/// The choice of letters that a recovery sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRules {
    /// The time after its first acceptance in which an event is sent again.
    pub within: Duration,
    /// Letters of outages that began until then are left alone: an operator cancelled their
    /// recovery.
    pub cancelled_at: Option<Timestamp>,
    /// Letters that are on their way already, as probes.
    pub on_its_way: Vec<LetterPlace>,
    /// The time of the look.
    pub now: Timestamp,
}

impl RecoveryRules {
    /// The reason why the letter in this place is left out; `None` if it is recovered.
    pub fn leaves_out(
        &self,
        letter: &RestoredLetter,
        object: &str,
        index: usize,
    ) -> Option<LeftOutReason> {
        let is_on_its_way = self
            .on_its_way
            .iter()
            .any(|it| it.object == object && it.index == index);
        let Some((since, life)) = letter.outage_since.zip(letter.earlier_life()) else {
            return Some(LeftOutReason::NoOutage);
        };
        if self.cancelled_at.is_some_and(|at| since <= at) {
            Some(LeftOutReason::NoOutage)
        } else if is_on_its_way {
            Some(LeftOutReason::SentAgain)
        } else if life.recoveries >= RECOVERIES_MAX {
            Some(LeftOutReason::RecoveredOften)
        } else {
            (self.now >= life.accepted_at + self.within).then_some(LeftOutReason::TooOld)
        }
    }
}

#[cfg(test)]
mod tests;
