//! The request to notify a topic that an operator disabled a subscription: manage cannot write to
//! the queue.
//!
//! Key `telling/{topic}.{subscription}`; without a version. Written by manage, read and deleted by
//! wake, which publishes the notice.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::keys::subscription_folder;
use crate::api::notice::DisabledNotice;
use crate::model::{SubscriptionName, Timestamp, TopicName, render_json};

/// The prefix of the marks of subscriptions that an operator disabled, each of which asks for a
/// notice.
pub const TELLING: &str = "telling/";

/// The key of the mark that an operator disabled a subscription and its topic is to be notified.
pub fn disabled_notice_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{TELLING}{}", subscription_folder(topic, subscription))
}

/// A subscription that was disabled, of which its topic is to be notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisabledMark {
    /// The topic it is on.
    pub topic: TopicName,
    /// The subscription's name.
    pub subscription: SubscriptionName,
    /// The reason.
    pub reason: String,
    /// The time at which it was disabled.
    pub since: Timestamp,
}

impl DisabledMark {
    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Writes the object.
    pub fn render(&self) -> Bytes {
        render_json(self)
    }

    /// The notice that it asks for.
    pub fn notice(&self) -> DisabledNotice<'_> {
        let Self {
            topic,
            subscription,
            reason,
            since,
        } = self;
        DisabledNotice {
            topic,
            subscription,
            reason,
            since: *since,
        }
    }
}
