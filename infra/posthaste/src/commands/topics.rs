//! `topics`: list, show, delete; their publish keys.

use posthaste_core::api::{
    ApplyFile, KeyName, SecretText, StatusState, TopicKeysView, TopicPage, TopicSettings,
    TopicSummary, UnreadableTopic,
};
use posthaste_core::model::time::format_duration;
use posthaste_yaml::WriteError;
use serde_json::json;
use ureq::http::Method;

use super::giving_up::Waiting;
use super::session::Session;
use super::whole_topics::{PAGE_TOPICS, Unreadable};
use super::{one, subscriptions};
use crate::cli::{ConfirmedArg, TopicArg, TopicsCommand};
use crate::error::{CommandError, Failure};
use crate::output::Reply;

impl Failure for WriteError {}

pub(crate) fn run(
    session: &Session,
    command: Option<TopicsCommand>,
) -> Result<Reply, CommandError> {
    match command.unwrap_or(TopicsCommand::List) {
        TopicsCommand::List => list(session),
        TopicsCommand::Show(TopicArg { topic }) => show(session, &topic),
        TopicsCommand::Create { topic, members } => one::create_topic(session, &topic, &members),
        TopicsCommand::Export { prefix, secrets } => export(session, &prefix, secrets),
        TopicsCommand::Delete {
            of: TopicArg { topic },
            confirmed,
        } => delete(session, &topic, confirmed),
        TopicsCommand::Keys(TopicArg { topic }) => Ok(shown_keys(
            &session.ask(Method::GET, &["topics", &topic, "keys"])?,
        )),
        TopicsCommand::RegenerateKey { topic, name } => {
            let path = ["topics", &topic, "keys", &name, "regenerate"];
            Ok(shown_keys(&session.ask(Method::POST, &path)?))
        }
        TopicsCommand::DeleteKey { topic, name } => delete_key(session, &topic, &name),
    }
}

fn list(session: &Session) -> Result<Reply, CommandError> {
    let mut unreadable = Vec::new();
    let topics = session.list(&["topics"], |page: TopicPage| {
        unreadable.extend(page.unreadable);
        (page.topics, page.cursor)
    })?;
    Ok(listed(&topics, &unreadable))
}

/// All topics as a file for `apply`, with secrets in clear if that is asked for. One that cannot be
/// read is no reason to leave it out unsaid.
fn export(session: &Session, prefix: &str, secrets: bool) -> Result<Reply, CommandError> {
    let mut unreadable = Vec::new();
    let mut whole = vec![
        ("settings", "true"),
        ("limit", PAGE_TOPICS),
        ("prefix", prefix),
    ];
    // A server of 0.1 does not know the parameter, and shows no secrets.
    whole.extend(secrets.then_some(("secrets", "true")));
    let topics = session.list_with(&["topics"], &whole, |page: TopicPage| {
        unreadable.extend(page.unreadable);
        (page.topics, page.cursor)
    })?;
    if let Some(topic) = unreadable.first() {
        return Err(Unreadable(topic.name.clone()).into());
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
            session.client.json(call)?
        };
        inactive += inactive_count(&settings);
        file.topics.insert(name, settings.settings_only());
    }
    let text = posthaste_yaml::to_text(&file)?;
    let reply = Reply::new(json!(file)).line(text.trim_end());
    Ok(match inactive {
        count if count > 0 && secrets => reply.note(format!(
            "warning: {} paused, disabled or without consent here; another server makes them \
             active, or asks their endpoints, when the file is applied",
            in_words(count)
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

fn in_words(subscriptions: usize) -> String {
    match subscriptions {
        1 => "1 subscription is".to_owned(),
        count => format!("{count} subscriptions are"),
    }
}

fn listed(topics: &[TopicSummary], unreadable: &[UnreadableTopic]) -> Reply {
    let mut json = json!({ "topics": topics });
    if !unreadable.is_empty() {
        json["unreadable"] = json!(unreadable);
    }
    let damaged = |topic: &UnreadableTopic| {
        [
            topic.name.clone(),
            "(unreadable)".to_owned(),
            String::new(),
            String::new(),
            String::new(),
        ]
    };
    let rows = topics
        .iter()
        .map(row)
        .chain(unreadable.iter().map(damaged))
        .collect();
    let header = [
        "topic",
        "schema",
        "subscriptions",
        "time to live",
        "updated",
    ];
    let none = "no topics yet; `posthaste apply -f FILE` creates those of a file";
    let reply = Reply::new(json).list(header, rows, none);
    unreadable.iter().fold(reply, |reply, topic| {
        reply.note(format!(
            "warning: the topic {} cannot be read: {}",
            topic.name, topic.detail
        ))
    })
}

fn row(topic: &TopicSummary) -> [String; 5] {
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

fn show(session: &Session, topic: &str) -> Result<Reply, CommandError> {
    let answer = session
        .client
        .send(session.call(Method::GET, &["topics", topic]))?;
    let view: TopicSettings = session.client.read(&answer.body)?;
    let json = session.client.read(&answer.body)?;
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
    let mut reply = Reply::new(json).line(accepts);
    if let Some(endpoint) = &view.endpoint {
        reply = reply.line(format!("publish to {endpoint}"));
    }
    let rows = view
        .subscriptions
        .iter()
        .map(|(name, settings)| subscriptions::row(name.as_str(), settings));
    Ok(reply.list(
        subscriptions::HEADER,
        rows.collect(),
        subscriptions::none(topic),
    ))
}

fn delete(session: &Session, topic: &str, confirmed: ConfirmedArg) -> Result<Reply, CommandError> {
    let waiting = Waiting::for_topic(session, topic, confirmed)?;
    waiting.confirm(&format!("delete the topic {topic}"), confirmed.yes)?;
    session
        .client
        .send(session.call(Method::DELETE, &["topics", topic]))?;
    let json = json!({ "deleted": { "topic": topic }, "waiting": waiting });
    Ok(waiting.said(Reply::new(json).line(format!("deleted the topic {topic}"))))
}

fn delete_key(session: &Session, topic: &str, key: &str) -> Result<Reply, CommandError> {
    session
        .client
        .send(session.call(Method::DELETE, &["topics", topic, "keys", key]))?;
    let json = json!({ "deleted": { "topic": topic, "key": key } });
    Ok(Reply::new(json).line(format!("took {key} away from the topic {topic}")))
}

fn shown_keys(keys: &TopicKeysView) -> Reply {
    let row = |(name, key): (KeyName, &SecretText)| {
        [
            name.to_string(),
            name.tier().to_string(),
            key.expose().to_owned(),
        ]
    };
    Reply::new(json!(keys)).table(
        ["name", "tier", "key"],
        keys.present_keys().map(row).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;

    #[test]
    fn a_topic_that_cannot_be_read_is_listed_with_the_reason() {
        let topic = UnreadableTopic {
            name: "orders".to_owned(),
            detail: "it is damaged".to_owned(),
        };
        let reply = listed(&[], &[topic]);
        let text = reply.render(Style::Plain).into_string();
        assert!(
            text.starts_with("TOPIC   SCHEMA") && text.contains("\norders  (unreadable)\n"),
            "{text}"
        );
        let notes: Vec<_> = reply.notes(Style::Plain).collect();
        assert_eq!(
            notes,
            ["warning: the topic orders cannot be read: it is damaged"]
        );
        let json = r#""unreadable": ["#;
        assert!(
            reply.render(Style::Json).into_string().contains(json)
                && reply.notes(Style::Json).count() == 0
        );
    }

    #[test]
    fn where_no_topic_is_a_note_says_how_one_is_made() {
        let reply = listed(&[], &[]);
        assert_eq!(reply.render(Style::Plain).into_string(), "");
        assert!(
            reply
                .notes(Style::Plain)
                .next()
                .is_some_and(|note| note.starts_with("no topics yet"))
        );
        assert_eq!(
            reply.render(Style::Json).into_string(),
            "{\n  \"topics\": []\n}\n"
        );
    }
}
