//! The state of a subscription's rate limit.
//!
//! Key `rates/{topic}.{subscription}.json`. Version 1; read and written by deliver alone, by
//! conditional put, and found out again when it is lost.

use super::format::versioned_object;
use super::keys::subscription_folder;
use crate::attempt::RateState;
use crate::model::{SubscriptionName, TopicName};

/// The prefix of the states of rates.
pub const RATES: &str = "rates/";

/// The key of the state of a subscription with a rate limit.
pub fn rate_state_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{RATES}{}.json", subscription_folder(topic, subscription))
}

versioned_object!(RateState, 1, "the state of a rate");
