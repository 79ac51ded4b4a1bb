//! The marker of a topic that is temporary, or has temporary subscriptions, so that a run of wake need not
//! read every topic to find them.
//!
//! Key `temporary/{topic}`; empty, without a version. Written by manage, listed and deleted by wake.

use crate::model::TopicName;

/// The prefix of the names of topics that are temporary, or have temporary subscriptions, so that nobody must
/// look at all topics to find them.
pub const TEMPORARY: &str = "temporary/";

/// That a topic is temporary, or has temporary subscriptions.
pub fn temporary(topic: &TopicName) -> String {
    format!("{TEMPORARY}{}", topic.folded())
}

/// The topic of such a key. `None` if it is not such a key.
pub fn temporary_topic(key: &str) -> Option<TopicName> {
    TopicName::parse(key.strip_prefix(TEMPORARY)?).ok()
}
