//! One topic or subscription that the command line describes: created, or changed in the members that
//! are named. It is written as `apply --keep` of a file with these members would.

use posthaste_core::api::{InputNotation, TopicSettings, WrittenValue, read_written};
use posthaste_core::model::{NameError, TopicName};

use super::apply::{ApplyOptions, CheckedFile, run};
use super::assign;
use super::patch::{ExpectedState, PatchError, TopicPatch, complete_topic};
use super::session::AdminSession;
use crate::cli::SubscriptionArgs;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Error of a name that no topic can have.
#[derive(Debug, thiserror::Error)]
#[error("the name of the topic is none")]
struct NoName(#[source] NameError);

impl CommandFailure for NoName {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}

/// Creates a topic.
pub(super) fn create_topic(
    session: &AdminSession,
    topic: &str,
    members: &[String],
) -> Result<CommandReply, CommandError> {
    write_topic(
        session,
        topic,
        &assign::parse_members(members)?,
        ExpectedState::NoTopic,
    )
}

/// Creates a subscription.
pub(super) fn create_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
    endpoint: Option<&str>,
    members: &[String],
) -> Result<CommandReply, CommandError> {
    let mut settings = assign::parse_members(members)?;
    if let Some(url) = endpoint {
        assign::add_member(
            &mut settings,
            &["endpoint", "url"],
            WrittenValue::from_text(url),
        );
    }
    write_subscription(session, of, settings, ExpectedState::NoSubscription)
}

/// Changes the members of a subscription that are named.
pub(super) fn set_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
    members: &[String],
) -> Result<CommandReply, CommandError> {
    write_subscription(
        session,
        of,
        assign::parse_members(members)?,
        ExpectedState::Subscription,
    )
}

fn write_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
    settings: WrittenValue,
    expected: ExpectedState,
) -> Result<CommandReply, CommandError> {
    let mut topic = WrittenValue::Object(Vec::new());
    assign::add_member(&mut topic, &["subscriptions", &of.name], settings);
    write_topic(session, &of.topic, &topic, expected)
}

fn write_topic(
    session: &AdminSession,
    topic: &str,
    written: &WrittenValue,
    expected: ExpectedState,
) -> Result<CommandReply, CommandError> {
    let topic = TopicName::parse(topic).map_err(NoName)?;
    // The rules are checked once the members that are not named are known.
    let read = read_written(complete_topic(written), InputNotation::Yaml, |_| Ok(()));
    let settings: TopicSettings = read.map_err(|mistakes| PatchError::Mistakes {
        topic: topic.clone(),
        mistakes,
    })?;
    let patch = TopicPatch::from_written(Some(written), &settings, expected);
    let file = CheckedFile::from_arguments(topic, settings, patch);
    run(session, &[file], ApplyOptions::default())
}
