//! Paths that several routes share.

use posthaste_core::model::{SubscriptionName, TopicName};
use serde::Deserialize;

/// The path of a topic.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TopicPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    pub(crate) topic: TopicName,
}

/// The path of a subscription.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SubscriptionPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    pub(crate) topic: TopicName,
    /// The subscription's name, in any case.
    #[param(value_type = String)]
    pub(crate) name: SubscriptionName,
}
