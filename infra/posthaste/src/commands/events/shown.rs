//! An event as `events show` prints it.

use posthaste_core::api::events::{AttemptView, DeliveryView, EventView};
use posthaste_core::delivery_log::{DeliveryState, Origin};
use posthaste_core::model::visible::{is_hidden, visible_line};

use crate::commands::records::{answer, status, took};
use crate::output::{Reply, indent};

const HEADER: [&str; 7] = [
    "attempt",
    "at",
    "took",
    "status",
    "outcome",
    "answer",
    "webhook-id",
];

/// Adds what became of an event.
pub(super) fn event(reply: Reply, topic: &str, event: &EventView) -> Reply {
    let reply = event
        .deliveries
        .iter()
        .fold(reply, |reply, one| delivery(reply, topic, event, one));
    let complete = format!("The log is complete up to {}.", event.complete_until.0);
    event
        .note
        .clone()
        .into_iter()
        .chain([complete])
        .fold(reply, Reply::line)
}

fn delivery(reply: Reply, topic: &str, event: &EventView, one: &DeliveryView) -> Reply {
    let rows = one.attempts.iter().map(row).collect();
    let state = format!("{}: {}", one.subscription, state(one));
    let reply = reply.line(state).line(origin(one)).table(HEADER, rows);
    let reply = match &one.payload {
        Some(payload) => reply.line(indent(payload.as_str())),
        None => reply,
    };
    let reply = match one.resendable_until {
        Some(until) => reply
            .line(format!("to send it again, until {}:", until.0))
            .line(resend(topic, event, one)),
        None => reply,
    };
    reply.line("")
}

/// Where the event is, in words.
fn state(one: &DeliveryView) -> String {
    let reason = one
        .reason
        .as_deref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    match (one.state, one.next_attempt_at, &one.dead_letter_object) {
        (DeliveryState::Delivered, ..) => "delivered".to_owned(),
        (DeliveryState::Waiting, Some(next), _) => {
            format!("waits for its next attempt, at {} or later", next.0)
        }
        (DeliveryState::Waiting, None, _) => "waits for its next attempt".to_owned(),
        (DeliveryState::Held, ..) => {
            "held until its endpoint recovers, or an operator acts".to_owned()
        }
        (DeliveryState::DeadLettered, _, Some(object)) => {
            format!("given up{reason}; it is in the dead letters {object}")
        }
        (DeliveryState::DeadLettered, ..) => {
            format!("given up{reason}; it becomes a dead letter within minutes")
        }
        (DeliveryState::Dropped, ..) => format!("given up{reason}, without a dead letter"),
        (DeliveryState::Unknown, ..) => "in a state that only a newer posthaste knows".to_owned(),
    }
}

/// What the event is, and since when it is here. The texts are its producer's.
fn origin(one: &DeliveryView) -> String {
    let member = |name: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(", {name} {value}"))
    };
    let members = [
        member("type", &one.event_type),
        member("source", &one.source),
        member("subject", &one.subject),
    ];
    let members: String = members.into_iter().flatten().collect();
    let line = format!(
        "accepted at {}{members}, delivery {}",
        one.accepted_at.0, one.key
    );
    visible_line(&line).into_owned()
}

fn row(attempt: &AttemptView) -> [String; 7] {
    [
        number(attempt),
        attempt.at.0.to_string(),
        took(attempt.duration_ms),
        status(attempt.status),
        attempt.outcome.clone(),
        answer(attempt.answer.as_ref(), attempt.error.as_ref()),
        attempt.webhook_id.clone().unwrap_or_default(),
    ]
}

/// The number of an attempt, and its origin where that is not the publish.
fn number(attempt: &AttemptView) -> String {
    match attempt.origin {
        Origin::Replay | Origin::Resend => {
            format!("{} ({})", attempt.number, attempt.origin.as_str())
        }
        Origin::First | Origin::Retry | Origin::Unknown => attempt.number.to_string(),
    }
}

/// The command that sends the event again. It names the delivery where the subscription has
/// several.
fn resend(topic: &str, event: &EventView, one: &DeliveryView) -> String {
    let is_of_same = |other: &&DeliveryView| other.subscription == one.subscription;
    let key = if event.deliveries.iter().filter(is_of_same).count() > 1 {
        Some(&one.key)
    } else {
        None
    };
    let key = key
        .map(|key| format!(" --delivery {key}"))
        .unwrap_or_default();
    let end_of_options = if event.id.starts_with('-') { " --" } else { "" };
    let words = [topic, &one.subscription, &event.id].map(quoted).join(" ");
    format!("posthaste events resend{key}{end_of_options} {words}")
}

/// A word as a shell reads it. Hidden characters are written as bash and zsh read them, so that the
/// command means the same when it is copied from a terminal.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+=,%".contains(c);
    let is_hidden = |c: char| is_hidden(c) || matches!(c, '\n' | '\t');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(is_hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let escaped = word.chars().map(|c| match c {
        '\'' | '\\' => format!("\\{c}"),
        _ if is_hidden(c) => format!("\\U{:08x}", u32::from(c)),
        _ => c.to_string(),
    });
    format!("$'{}'", escaped.collect::<String>())
}

#[cfg(test)]
mod tests;
