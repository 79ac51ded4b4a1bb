//! What is told of a target, damped both ways, and when nothing has to be known of it any more.

use std::time::Duration;

use super::condition::{Condition, Phase};
use super::gate::RAMP_STEPS;
use super::settings::HealthSettings;
use crate::time::Timestamp;

/// A target that nobody has asked for so long after its hold has no deliveries any more: its subscriptions were deleted,
/// or moved.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(48);

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It has been in Retry for a while.
    Down,
    /// It has been well for a while, after it was told down.
    Up,
}

/// What there is to tell of a target now.
pub fn news(condition: &Condition, now: Timestamp, settings: &HealthSettings) -> Option<News> {
    if settings.suppress_state_changes || now < condition.since + settings.state_change_delay {
        return None;
    }
    match condition.phase {
        Phase::Retry if !condition.told_down => Some(News::Down),
        Phase::Recovering if condition.told_down => Some(News::Up),
        Phase::Glitch | Phase::Retry | Phase::Recovering => None,
    }
}

/// The condition once that was told.
pub fn told(condition: &Condition, news: News) -> Condition {
    Condition { told_down: news == News::Down, ..condition.clone() }
}

/// Whether nothing has to be known of a target any more.
pub fn is_over(condition: &Condition, now: Timestamp, settings: &HealthSettings) -> bool {
    match condition.phase {
        Phase::Recovering => {
            let is_ramp_over = now >= condition.since + settings.ramp_step * RAMP_STEPS;
            is_ramp_over && (!condition.told_down || settings.suppress_state_changes)
        }
        Phase::Glitch | Phase::Retry => now >= condition.until + FORGOTTEN_AFTER,
    }
}
