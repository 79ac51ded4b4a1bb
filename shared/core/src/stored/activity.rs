//! The time of the last activity of a topic or subscription that is deleted when it is idle.
//!
//! Keys `activity/{topic}` and `activity/{topic}.{subscription}`. Version 1; written by publish,
//! deliver and manage, read by wake, which deletes it together with the entity.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::keys::subscription_folder;
use crate::model::{FormatError, StoredFormat, SubscriptionName, Timestamp, TopicName};

/// The prefix of the notes of when something last happened to a topic or subscription that goes
/// when it is idle.
pub const ACTIVITY: &str = "activity/";

/// The key of the last activity of a topic.
pub fn topic_activity_key(topic: &TopicName) -> String {
    format!("{ACTIVITY}{}", topic.folded())
}

/// The key of the last activity of a subscription.
pub fn subscription_activity_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{ACTIVITY}{}", subscription_folder(topic, subscription))
}

/// The prefix of what happened to the subscriptions of a topic. Names have no dots.
pub fn subscription_activities(topic: &TopicName) -> String {
    format!("{ACTIVITY}{}.", topic.folded())
}

const FORMAT: StoredFormat = StoredFormat {
    name: "a note of activity",
    newest: 1,
};

/// The time of the last activity of an entity. A retry that is scheduled counts at its own time,
/// which is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityNote {
    at: Timestamp,
}

impl ActivityNote {
    /// A note of this time.
    pub fn new(at: Timestamp) -> Self {
        Self { at }
    }

    /// The time of the activity.
    pub fn at(self) -> Timestamp {
        self.at
    }

    /// Reads a note. Nothing is deleted where that fails.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        FORMAT.read(bytes)
    }

    /// Writes the note.
    pub fn render(self) -> Bytes {
        FORMAT.render(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_and_a_broken_one_is_not_empty() {
        let note = ActivityNote::new(Timestamp::from_millis(1_000_000_000));
        assert_eq!(note.render(), r#"{"v":1,"at":1000000000}"#);
        assert_eq!(ActivityNote::parse(&note.render()).unwrap(), note);
        assert!(matches!(
            ActivityNote::parse(b""),
            Err(FormatError::Malformed(..))
        ));
        assert!(matches!(
            ActivityNote::parse(br#"{"v":2,"at":1}"#),
            Err(FormatError::Newer(2))
        ));
    }
}
