//! The health of a subscription, as operators see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IsoTimestamp;
use crate::circuit::TargetCondition;
use crate::health::{
    ArrivalShare, HealthState, SubscriptionHealth, SubscriptionTries, health_state, is_held_off,
};
use crate::model::{ArrivalSettings, OutcomeName, SubscriptionStatus, Timestamp};

/// Whether the webhooks of a subscription arrive. Members that are not known are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SubscriptionHealthView {
    /// The state in a word.
    pub state: HealthState,
    /// The time since which events do not arrive, or since which the subscription is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// The share of the last tries that arrived, in percent. Tries are counted from the first one
    /// that failed, and left out where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 12)]
    pub arrived_percent: Option<u8>,
    /// The number of these tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 240)]
    pub tried: Option<u32>,
    /// The time from which on they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried_from: Option<IsoTimestamp>,
    /// The number of tries that failed since the last one that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 31)]
    pub failed_in_row: Option<u32>,
    /// The time of the last try that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure_at: Option<IsoTimestamp>,
    /// Its outcome, as dead letters name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "Unauthorized")]
    pub last_outcome: Option<OutcomeName>,
    /// The status of its answer, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 401)]
    pub last_http_status_code: Option<u16>,
    /// The last time at which an event arrived, since tries are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_arrived_at: Option<IsoTimestamp>,
}

/// The inputs of the view.
#[derive(Debug, Clone, Copy)]
pub struct KnownHealth<'a> {
    /// The status of the subscription.
    pub status: SubscriptionStatus,
    /// The time since which it has that status.
    pub status_since: Option<Timestamp>,
    /// The entry of the subscription in the health book.
    pub health: Option<&'a SubscriptionHealth>,
    /// The circuit's conditions of the subscription, and of its link.
    pub conditions: [Option<&'a TargetCondition>; 2],
    /// Whether all tries are seen: on AWS none is of a topic without records.
    pub is_seen: bool,
}

impl SubscriptionHealthView {
    /// The view of what is known.
    pub fn from_known(known: KnownHealth<'_>, now: Timestamp, settings: &ArrivalSettings) -> Self {
        let KnownHealth {
            status,
            status_since,
            health,
            conditions,
            is_seen,
        } = known;
        let state = match health_state(status, health, &conditions, now, settings) {
            HealthState::Healthy if !is_seen => HealthState::Unknown,
            state => state,
        };
        let held_off = conditions.into_iter().flatten().find(|it| is_held_off(it));
        let tries = health.map(|health| &health.tries);
        let incident = health.and_then(|health| health.incident.as_ref());
        let since = match state {
            HealthState::Healthy | HealthState::Unknown => None,
            HealthState::Failing | HealthState::Down => incident
                .map(|incident| incident.since)
                .or(tries.and_then(SubscriptionTries::row_since))
                .or(held_off.map(|condition| condition.failing_since)),
            _ => status_since,
        };
        let share = tries.map(|tries| tries.measured_share(now, settings));
        let share = share.filter(|share| share.tries() > 0);
        let of_tries = tries.and_then(SubscriptionTries::last_failure);
        let last = held_off.map(|condition| condition.last);
        Self {
            state,
            since: since.map(IsoTimestamp),
            arrived_percent: share.and_then(ArrivalShare::arrived_percent),
            tried: share.map(ArrivalShare::tries),
            tried_from: share.and_then(|share| share.from).map(IsoTimestamp),
            failed_in_row: tries
                .map(SubscriptionTries::in_row)
                .filter(|failed| *failed > 0),
            last_failure_at: of_tries.map(|failure| IsoTimestamp(failure.at)),
            last_outcome: of_tries.map_or(last.map(|last| last.outcome), |failure| failure.outcome),
            last_http_status_code: of_tries
                .map_or(last.and_then(|last| last.status), |failure| failure.status),
            last_arrived_at: tries
                .and_then(SubscriptionTries::last_arrived_at)
                .map(IsoTimestamp),
        }
    }
}
