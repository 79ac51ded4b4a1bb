//! The request of an attempt, made again from its record, its event and today's settings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, TestRequest};
use crate::model::SubscriptionName;

/// The request of an attempt, made again: the log keeps neither headers nor bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventRequestView {
    /// The subscription.
    #[schema(value_type = String)]
    pub subscription: SubscriptionName,
    /// The key of the delivery.
    #[schema(example = "018bcfe568007abc8def0123456789ab-0")]
    pub key: String,
    /// The number of the attempt, from 1.
    pub attempt: u16,
    /// The end of the attempt.
    pub at: IsoTimestamp,
    /// The request with this event alone. Secrets are masked, and its signature is not shown.
    pub request: TestRequest,
    /// The time at which the settings of the topic or of one of its subscriptions were last
    /// written, where that was after the attempt began: the request is made by today's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_changed_at: Option<IsoTimestamp>,
    /// The endpoint of the attempt, without its query, where the subscription has another one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://billing.example.com/hooks")]
    pub endpoint_then: Option<String>,
    /// Whether the request carried other events too, which are not shown.
    pub is_batch: bool,
    /// What the request that was sent may have had otherwise.
    pub note: String,
}
