//! `topics`: list, show, delete; their publish keys.

use posthaste_core::api::{
    ApplyFile, StatusState, TopicKeysView, TopicPage, TopicSettings, TopicSummary, UnreadableTopic,
};
use posthaste_core::model::time::format_duration;
use posthaste_yaml::WriteError;
use serde_json::json;
use ureq::http::Method;

use super::giving_up::WaitingTotal;
use super::session::AdminSession;
use super::whole_topics::{PAGE_TOPICS, UnreadableTopicError};
use super::{one, subscriptions};
use crate::cli::{ConfirmedArg, TopicArg, TopicsCommand};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

impl CommandFailure for WriteError {}

pub fn run(
    session: &AdminSession,
    command: Option<TopicsCommand>,
) -> Result<CommandReply, CommandError> {
    match command.unwrap_or(TopicsCommand::List) {
        TopicsCommand::List => list_topics(session),
        TopicsCommand::Show(TopicArg { topic }) => show_topic(session, &topic),
        TopicsCommand::Create { topic, members } => one::create_topic(session, &topic, &members),
        TopicsCommand::Export { prefix, secrets } => export_topics(session, &prefix, secrets),
        TopicsCommand::Delete {
            of: TopicArg { topic },
            confirmed,
        } => delete_topic(session, &topic, confirmed),
        TopicsCommand::Keys(TopicArg { topic }) => Ok(keys_reply(
            &session.request_json(Method::GET, &["topics", &topic, "keys"])?,
        )),
        TopicsCommand::RegenerateKey { topic, name } => {
            let path = ["topics", &topic, "keys", &name, "regenerate"];
            Ok(keys_reply(&session.request_json(Method::POST, &path)?))
        }
        TopicsCommand::DeleteKey { topic, name } => delete_key(session, &topic, &name),
    }
}

fn list_topics(session: &AdminSession) -> Result<CommandReply, CommandError> {
    let mut unreadable = Vec::new();
    let topics = session.read_list(&["topics"], |page: TopicPage| {
        unreadable.extend(page.unreadable);
        (page.topics, page.cursor)
    })?;
    Ok(list_reply(&topics, &unreadable))
}

/// All topics as a file for `apply`, with secrets in clear if that is asked for. One that cannot be
/// read is no reason to leave it out unsaid.
fn export_topics(
    session: &AdminSession,
    prefix: &str,
    secrets: bool,
) -> Result<CommandReply, CommandError> {
    let mut unreadable = Vec::new();
    let mut whole = vec![
        ("settings", "true"),
        ("limit", PAGE_TOPICS),
        ("prefix", prefix),
    ];
    // A server of 0.1 does not know the parameter, and shows no secrets.
    whole.extend(secrets.then_some(("secrets", "true")));
    let topics = session.read_list_with(&["topics"], &whole, |page: TopicPage| {
        unreadable.extend(page.unreadable);
        (page.topics, page.cursor)
    })?;
    if let Some(topic) = unreadable.first() {
        return Err(UnreadableTopicError(topic.name.clone()).into());
    }
    let mut file = ApplyFile::default();
    let mut inactive = 0;
    for TopicSummary { name, settings, .. } in topics {
        let settings = if let Some(settings) = settings {
            settings
        } else {
            // One that is too large for a list is shown alone.
            let call = session.call(Method::GET, &["topics", name.as_str()]);
            let call = call.query("secrets", secrets.then_some(true));
            session.client.send_for_json(call)?
        };
        inactive += inactive_count(&settings);
        file.topics.insert(name, settings.settings_only());
    }
    let text = posthaste_yaml::to_text(&file)?;
    let reply = CommandReply::new(json!(file)).line(text.trim_end());
    Ok(match inactive {
        count if count > 0 && secrets => reply.note(format!(
            "warning: {} paused, disabled or without consent here; another server makes them \
             active, or asks their endpoints, when the file is applied",
            inactive_in_words(count)
        )),
        _ => reply,
    })
}

/// Subscriptions whose state is not in the file: a write makes them active.
fn inactive_count(topic: &TopicSettings) -> usize {
    let states = topic.subscriptions.values();
    let states = states.filter_map(|subscription| subscription.status.as_ref());
    states
        .filter(|status| status.state != StatusState::Active)
        .count()
}

fn inactive_in_words(subscriptions: usize) -> String {
    match subscriptions {
        1 => "1 subscription is".to_owned(),
        count => format!("{count} subscriptions are"),
    }
}

fn list_reply(topics: &[TopicSummary], unreadable: &[UnreadableTopic]) -> CommandReply {
    let mut json = json!({ "topics": topics });
    if !unreadable.is_empty() {
        json["unreadable"] = json!(unreadable);
    }
    let rows = topics
        .iter()
        .map(topic_row)
        .chain(unreadable.iter().map(unreadable_row))
        .collect();
    let header = [
        "topic",
        "schema",
        "subscriptions",
        "time to live",
        "updated",
    ];
    let none = "no topics yet; `posthaste apply -f FILE` creates those of a file";
    let reply = CommandReply::new(json).list(header, rows, none);
    unreadable.iter().fold(reply, |reply, topic| {
        reply.note(format!(
            "warning: the topic {} cannot be read: {}",
            topic.name, topic.detail
        ))
    })
}

fn unreadable_row(topic: &UnreadableTopic) -> [String; 5] {
    [
        topic.name.clone(),
        "(unreadable)".to_owned(),
        String::new(),
        String::new(),
        String::new(),
    ]
}

fn topic_row(topic: &TopicSummary) -> [String; 5] {
    [
        topic.name.to_string(),
        format!("{:?}", topic.input_schema),
        topic.subscription_count.to_string(),
        topic
            .default_time_to_live
            .map(|ttl| format_duration(ttl.0))
            .unwrap_or_default(),
        topic.updated_at.0.to_string(),
    ]
}

fn show_topic(session: &AdminSession, topic: &str) -> Result<CommandReply, CommandError> {
    let answer = session
        .client
        .send(session.call(Method::GET, &["topics", topic]))?;
    let view: TopicSettings = session.client.parse_body(&answer.body)?;
    let json = session.client.parse_body(&answer.body)?;
    let ttl = view
        .default_time_to_live
        .map_or("none".to_owned(), |ttl| format_duration(ttl.0));
    let log = view
        .delivery_log
        .map(|mode| format!(", delivery log {mode}"))
        .unwrap_or_default();
    let accepts = format!(
        "{topic}: accepts {:?} events, time to live {ttl}{log}",
        view.input_schema
    );
    let mut reply = CommandReply::new(json).line(accepts);
    if let Some(endpoint) = &view.endpoint {
        reply = reply.line(format!("publish to {endpoint}"));
    }
    let rows = view
        .subscriptions
        .iter()
        .map(|(name, settings)| subscriptions::table_row(name.as_str(), settings));
    Ok(reply.list(
        subscriptions::HEADER,
        rows.collect(),
        subscriptions::empty_list_text(topic),
    ))
}

fn delete_topic(
    session: &AdminSession,
    topic: &str,
    confirmed: ConfirmedArg,
) -> Result<CommandReply, CommandError> {
    let waiting = WaitingTotal::for_topic(session, topic, confirmed)?;
    waiting.confirm_giving_up(&format!("delete the topic {topic}"), confirmed.yes)?;
    session
        .client
        .send(session.call(Method::DELETE, &["topics", topic]))?;
    let json = json!({ "deleted": { "topic": topic }, "waiting": waiting });
    Ok(waiting.add_to_reply(CommandReply::new(json).line(format!("deleted the topic {topic}"))))
}

fn delete_key(
    session: &AdminSession,
    topic: &str,
    key: &str,
) -> Result<CommandReply, CommandError> {
    session
        .client
        .send(session.call(Method::DELETE, &["topics", topic, "keys", key]))?;
    let json = json!({ "deleted": { "topic": topic, "key": key } });
    Ok(CommandReply::new(json).line(format!("took {key} away from the topic {topic}")))
}

fn keys_reply(keys: &TopicKeysView) -> CommandReply {
    let rows = keys.present_keys().map(|(name, key)| {
        [
            name.to_string(),
            name.tier().to_string(),
            key.expose().to_owned(),
        ]
    });
    CommandReply::new(json!(keys)).table(["name", "tier", "key"], rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStyle;

    #[test]
    fn a_topic_that_cannot_be_read_is_listed_with_the_reason() {
        let topic = UnreadableTopic {
            name: "orders".to_owned(),
            detail: "it is damaged".to_owned(),
        };
        let reply = list_reply(&[], &[topic]);
        let text = reply.render(OutputStyle::Plain).into_string();
        assert!(
            text.starts_with("TOPIC   SCHEMA") && text.contains("\norders  (unreadable)\n"),
            "{text}"
        );
        let notes: Vec<_> = reply.notes(OutputStyle::Plain).collect();
        assert_eq!(
            notes,
            ["warning: the topic orders cannot be read: it is damaged"]
        );
        let json = r#""unreadable": ["#;
        assert!(
            reply.render(OutputStyle::Json).into_string().contains(json)
                && reply.notes(OutputStyle::Json).count() == 0
        );
    }

    #[test]
    fn empty_topic_list_is_a_note_on_creating_one() {
        let reply = list_reply(&[], &[]);
        assert_eq!(reply.render(OutputStyle::Plain).into_string(), "");
        assert!(
            reply
                .notes(OutputStyle::Plain)
                .next()
                .is_some_and(|note| note.starts_with("no topics yet"))
        );
        assert_eq!(
            reply.render(OutputStyle::Json).into_string(),
            "{\n  \"topics\": []\n}\n"
        );
    }
}
