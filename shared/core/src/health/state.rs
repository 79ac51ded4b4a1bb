//! The state of a subscription's health, in one word: the same in the API, the CLI, the console,
//! notices and metrics.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::book::SubscriptionHealth;
use crate::circuit::{TargetCondition, TargetPhase};
use crate::model::word::display_the_word;
use crate::model::{ArrivalSettings, SubscriptionStatus, Timestamp};

/// Whether the webhooks of a subscription arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum HealthState {
    /// Events arrive, as far as is known.
    Healthy,
    /// Too few events arrive.
    Failing,
    /// No event arrives.
    Down,
    /// An operator paused it.
    Paused,
    /// Its endpoint has not consented yet.
    Pending,
    /// Its endpoint did not consent.
    Refused,
    /// Its endpoint is gone, or an operator disabled it.
    Disabled,
    /// Nothing is known, because no records are kept of its deliveries. Also a word of another
    /// program.
    #[default]
    #[serde(other)]
    Unknown,
}

display_the_word!(HealthState);

impl HealthState {
    /// Whether events arrive, or would: neither failing nor stopped.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Healthy | Self::Unknown)
    }

    /// Whether events do not arrive although nobody stopped the subscription.
    pub fn is_failing(self) -> bool {
        matches!(self, Self::Failing | Self::Down)
    }
}

/// Whether the circuit keeps requests from a target because they failed, not because its endpoint
/// asked for a pause. An operator who ends a hold proves nothing.
pub fn is_held_off(condition: &TargetCondition) -> bool {
    match condition.phase {
        TargetPhase::Glitch => !condition.is_pause(),
        TargetPhase::Retry => true,
        TargetPhase::Recovering => condition.forced,
    }
}

/// The state of a subscription that has this status, is known like this, and whose endpoint and
/// link the circuit knows like this.
pub fn health_state(
    status: SubscriptionStatus,
    health: Option<&SubscriptionHealth>,
    conditions: &[Option<&TargetCondition>],
    now: Timestamp,
    settings: &ArrivalSettings,
) -> HealthState {
    match status {
        SubscriptionStatus::Active => {}
        SubscriptionStatus::Paused => return HealthState::Paused,
        SubscriptionStatus::Pending => return HealthState::Pending,
        SubscriptionStatus::Failed => return HealthState::Refused,
        SubscriptionStatus::Disabled => return HealthState::Disabled,
    }
    let is_held_off = conditions.iter().flatten().any(|it| is_held_off(it));
    // Where a second endpoint takes the events, they arrive all the same.
    let arrives = health.is_some_and(|health| health.tries.has_arrived_last(now, settings));
    if is_held_off && !arrives {
        return HealthState::Down;
    }
    let Some(health) = health else {
        return HealthState::Healthy;
    };
    if health.incident.is_none() && !health.tries.is_failing(now, settings) {
        return HealthState::Healthy;
    }
    match health.tries.measured_share(now, settings).arrived {
        0 => HealthState::Down,
        _ => HealthState::Failing,
    }
}
