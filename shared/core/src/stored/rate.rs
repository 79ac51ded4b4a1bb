//! The state of a subscription's rate limit.
//!
//! Key `rates/{topic}.{subscription}.json`. Version 1; read and written by deliver alone, by conditional put,
//! and found out again when it is lost.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::format::{Format, FormatError, render};
use super::keys::folder;
use crate::attempt::RateState;
use crate::model::{SubscriptionName, Timestamp, TopicName};

/// The prefix of the states of rates.
pub const RATES: &str = "rates/";

/// Up to when the time of a subscription with a bound on its rate is taken.
pub fn rate(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{RATES}{}.json", folder(topic, subscription))
}

const FORMAT: Format = Format { name: "the state of a rate", newest: 1 };

#[derive(Serialize, Deserialize)]
struct RateObject {
    v: u32,
    taken_until: Timestamp,
}

impl RateState {
    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let RateObject { taken_until, .. } = FORMAT.parse(bytes, |object: &RateObject| object.v)?;
        Ok(Self { taken_until })
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        render(&RateObject { v: FORMAT.newest, taken_until: self.taken_until })
    }
}
