//! Why members cannot be laid over what the server has.

use std::fmt;

use posthaste_core::api::InputMistake;
use posthaste_core::model::{SubscriptionName, TopicName};

use crate::error::CommandFailure;

/// Error of members that cannot be laid over what the server has.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// A topic is to be created that is there.
    #[error("the topic {topic} exists already")]
    TopicExists {
        /// The topic.
        topic: TopicName,
    },
    /// Something is to be done in a topic that is not there.
    #[error("there is no topic {topic}")]
    NoTopic {
        /// The topic.
        topic: TopicName,
    },
    /// A subscription is to be created that is there.
    #[error("{topic} has a subscription {name} already")]
    SubscriptionExists {
        /// The topic.
        topic: TopicName,
        /// The subscription.
        name: SubscriptionName,
    },
    /// A subscription is to be changed that is not there.
    #[error("{topic} has no subscription {name}")]
    NoSubscription {
        /// The topic.
        topic: TopicName,
        /// The subscription.
        name: SubscriptionName,
    },
    /// The settings with these members are none.
    #[error("{}", MistakeList(topic, mistakes))]
    Mistakes {
        /// The topic.
        topic: TopicName,
        /// The mistakes, by the members of the topic.
        mistakes: Vec<InputMistake>,
    },
    /// The server shows members that this program does not know. A write would lose them.
    #[error(
        "the topic {topic} has settings that only a newer posthaste knows, which a write would lose"
    )]
    Newer {
        /// The topic.
        topic: TopicName,
        /// The first of them.
        #[source]
        source: serde_json::Error,
    },
}

impl CommandFailure for PatchError {
    fn exit_code(&self) -> Option<u8> {
        Some(match self {
            Self::NoTopic { .. } | Self::NoSubscription { .. } => 4,
            Self::TopicExists { .. } | Self::SubscriptionExists { .. } | Self::Mistakes { .. } => 3,
            Self::Newer { .. } => 1,
        })
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::TopicExists { topic } => Some(format!("`posthaste topics show {topic}`")),
            Self::NoTopic { topic } => Some(format!("`posthaste topics create {topic}` first")),
            Self::SubscriptionExists { topic, name } => Some(format!(
                "`posthaste subscriptions set {topic} {name} MEMBER=VALUE`, which changes it"
            )),
            Self::NoSubscription { topic, name } => Some(format!(
                "`posthaste subscriptions create {topic} {name} --endpoint URL`, which creates it"
            )),
            Self::Newer { .. } => Some("the release that the server runs".to_owned()),
            Self::Mistakes { .. } => None,
        }
    }
}

/// The mistakes of a topic, one or all of them.
struct MistakeList<'a>(&'a TopicName, &'a [InputMistake]);

impl fmt::Display for MistakeList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(topic, mistakes) = self;
        if let [InputMistake { member, text, .. }] = mistakes {
            return write!(f, "{topic}: {member}: {text}");
        }
        write!(f, "{} mistakes in {topic}", mistakes.len())?;
        mistakes
            .iter()
            .try_for_each(|InputMistake { member, text, .. }| write!(f, "\n  {member}: {text}"))
    }
}
