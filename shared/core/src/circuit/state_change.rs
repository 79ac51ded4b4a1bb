//! Notices about a target, delayed both ways, and the time after which its record is forgotten.

use std::time::Duration;

use super::decision::RAMP_STEPS;
use crate::circuit::{HealthSettings, TargetCondition, TargetPhase};
use crate::model::Timestamp;

/// The time for which a target is still known after it recovered: what is held for it is released
/// slowly.
pub const RECOVERED_KNOWN_FOR: Duration = Duration::from_mins(5);

/// A target whose hold ended this long ago without a probe has no deliveries any more: its
/// subscriptions were deleted, or moved.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(48);

/// A subscription that only paused is forgotten after this time, if nothing was sent to it.
const PAUSE_KNOWN_FOR: Duration = Duration::from_hours(1);

/// The subject of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// The target has been in Retry for a while.
    Down,
    /// The target has been well for a while, after a notice that it was down.
    Up,
}

/// The notice that is due about a target now, if there is one.
pub fn state_change(
    condition: &TargetCondition,
    now: Timestamp,
    settings: &HealthSettings,
) -> Option<StateChange> {
    if settings.suppress_state_changes {
        return None;
    }
    let (change, since) = match condition.phase {
        TargetPhase::Retry if !condition.told_down => (StateChange::Down, condition.since),
        TargetPhase::Recovering if condition.told_down && !condition.forced => {
            (StateChange::Up, condition.until)
        }
        TargetPhase::Retry | TargetPhase::Recovering | TargetPhase::Glitch => return None,
    };
    (now >= since + settings.state_change_delay).then_some(change)
}

/// The condition once the notice was sent.
pub fn with_notice_sent(condition: &TargetCondition, news: StateChange) -> TargetCondition {
    TargetCondition {
        told_down: news == StateChange::Down,
        ..condition.clone()
    }
}

/// Whether nothing has to be known of a target any more.
pub fn is_over(condition: &TargetCondition, now: Timestamp, settings: &HealthSettings) -> bool {
    match condition.phase {
        TargetPhase::Recovering => {
            let known_for = RECOVERED_KNOWN_FOR.max(settings.ramp_step * RAMP_STEPS);
            let is_told = !condition.told_down || settings.suppress_state_changes;
            now >= condition.since + if is_told { known_for } else { FORGOTTEN_AFTER }
        }
        TargetPhase::Glitch if condition.is_pause() => now >= condition.until + PAUSE_KNOWN_FOR,
        TargetPhase::Glitch | TargetPhase::Retry => now >= condition.until + FORGOTTEN_AFTER,
    }
}
