//! The state of a subscription's rate limit.
//!
//! Key `rates/{topic}.{subscription}.json`. Version 1; read and written by deliver alone, by
//! conditional put, and found out again when it is lost.

use bytes::Bytes;

use super::format::{Format, FormatError};
use super::keys::folder;
use crate::attempt::RateState;
use crate::model::{SubscriptionName, TopicName};

/// The prefix of the states of rates.
pub const RATES: &str = "rates/";

/// The key of the state of a subscription with a rate limit.
pub fn rate(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{RATES}{}.json", folder(topic, subscription))
}

const FORMAT: Format = Format {
    name: "the state of a rate",
    newest: 1,
};

impl RateState {
    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        FORMAT.read(bytes)
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        FORMAT.render(self)
    }
}
