//! One topic or subscription that the command line describes: created, or changed in the members that
//! are named. It is written as `apply --keep` of a file with these members would.

use posthaste_core::api::{InputNotation, TopicSettings, WrittenValue, read_written};
use posthaste_core::model::{NameError, TopicName};

use super::apply::{Checked, Way, run};
use super::assign;
use super::patch::{Expected, PatchError, TopicPatch, completed_topic};
use super::session::Session;
use crate::cli::SubscriptionArgs;
use crate::error::{CommandError, Failure};
use crate::output::Reply;

/// Error of a name that no topic can have.
#[derive(Debug, thiserror::Error)]
#[error("the name of the topic is none")]
struct NoName(#[source] NameError);

impl Failure for NoName {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}

/// Creates a topic.
pub(super) fn create_topic(
    session: &Session,
    topic: &str,
    members: &[String],
) -> Result<Reply, CommandError> {
    write(
        session,
        topic,
        &assign::written(members)?,
        Expected::NoTopic,
    )
}

/// Creates a subscription.
pub(super) fn create_subscription(
    session: &Session,
    of: &SubscriptionArgs,
    endpoint: Option<&str>,
    members: &[String],
) -> Result<Reply, CommandError> {
    let mut settings = assign::written(members)?;
    if let Some(url) = endpoint {
        assign::add(
            &mut settings,
            &["endpoint", "url"],
            WrittenValue::from_text(url),
        );
    }
    write_subscription(session, of, settings, Expected::NoSubscription)
}

/// Changes the members of a subscription that are named.
pub(super) fn set_subscription(
    session: &Session,
    of: &SubscriptionArgs,
    members: &[String],
) -> Result<Reply, CommandError> {
    write_subscription(
        session,
        of,
        assign::written(members)?,
        Expected::Subscription,
    )
}

fn write_subscription(
    session: &Session,
    of: &SubscriptionArgs,
    settings: WrittenValue,
    expected: Expected,
) -> Result<Reply, CommandError> {
    let mut topic = WrittenValue::Object(Vec::new());
    assign::add(&mut topic, &["subscriptions", &of.name], settings);
    write(session, &of.topic, &topic, expected)
}

fn write(
    session: &Session,
    topic: &str,
    written: &WrittenValue,
    expected: Expected,
) -> Result<Reply, CommandError> {
    let topic = TopicName::parse(topic).map_err(NoName)?;
    // The rules are checked once the members that are not named are known.
    let read = read_written(completed_topic(written), InputNotation::Yaml, |_| Ok(()));
    let settings: TopicSettings = read.map_err(|mistakes| PatchError::Mistakes {
        topic: topic.clone(),
        mistakes,
    })?;
    let patch = TopicPatch::of(Some(written), &settings, expected);
    let file = Checked::of_arguments(topic, settings, patch);
    run(session, &[file], Way::default())
}
