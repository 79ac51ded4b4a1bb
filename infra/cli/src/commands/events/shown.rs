//! An event as `events show` prints it.

use posthaste_core::api::events::{AttemptView, DeliveryView, EventView};
use posthaste_core::api::{DeadLetterView, FoundEvents, IsoTimestamp};
use posthaste_core::delivery_log::{AttemptOrigin, DeliveryState};
use posthaste_core::model::visible::{is_hidden, visible_line};

use crate::commands::records::{duration_cell, response_cell, status_cell};
use crate::output::{CommandReply, indent_json};

const HEADER: [&str; 7] = [
    "attempt",
    "at",
    "took",
    "status",
    "outcome",
    "answer",
    "webhook-id",
];

const LETTERS_HEADER: [&str; 6] = ["place", "event", "type", "reason", "status", "resolved"];

/// Adds what became of an event.
pub(super) fn add_event(reply: CommandReply, topic: &str, event: &EventView) -> CommandReply {
    let EventView {
        id,
        state,
        deliveries,
        ..
    } = event;
    let reply = add_event_state(reply, *state);
    let reply = add_deliveries(reply, topic, id, deliveries);
    add_closing_notes(reply, event.note.as_ref(), None, event.complete_until)
}

/// Adds the state of an event, where it is known.
fn add_event_state(reply: CommandReply, state: Option<DeliveryState>) -> CommandReply {
    match state {
        Some(state) => reply
            .line(format!("the event as a whole: {}", event_state_text(state)))
            .line(""),
        None => reply,
    }
}

/// Adds the events that were found in any topic.
pub(super) fn add_found_events(reply: CommandReply, found: &FoundEvents) -> CommandReply {
    let reply = add_dead_letters(reply, &found.dead_letters);
    let reply = found.events.iter().fold(reply, |reply, event| {
        let line = format!("{}: event {}", event.topic, event.id);
        let reply = add_event_state(reply.line(visible_line(&line)), event.state);
        add_deliveries(reply, &event.topic, &event.id, &event.deliveries)
    });
    let searched_from = found.searched_from;
    add_closing_notes(
        reply,
        found.note.as_ref(),
        searched_from,
        found.complete_until,
    )
}

/// Adds the dead letters of an object.
fn add_dead_letters(reply: CommandReply, letters: &[DeadLetterView]) -> CommandReply {
    let Some(first) = letters.first() else {
        return reply;
    };
    let line = format!(
        "dead letters of {}/{} in {}:",
        first.topic, first.subscription, first.object
    );
    reply
        .line(visible_line(&line))
        .table(
            LETTERS_HEADER,
            letters.iter().map(dead_letter_row).collect(),
        )
        .line("")
}

fn dead_letter_row(letter: &DeadLetterView) -> [String; 6] {
    [
        letter.index.to_string(),
        letter.id.clone().unwrap_or_default(),
        letter.event_type.clone().unwrap_or_default(),
        letter.reason.clone().unwrap_or_default(),
        status_cell(letter.status),
        (if letter.resolved { "yes" } else { "no" }).to_owned(),
    ]
}

/// Adds what is to be known of the whole answer.
fn add_closing_notes(
    reply: CommandReply,
    note: Option<&String>,
    searched_from: Option<IsoTimestamp>,
    complete_until: IsoTimestamp,
) -> CommandReply {
    let searched = searched_from.map(|from| format!("The log was searched back to {}.", from.0));
    let complete = format!("The log is complete up to {}.", complete_until.0);
    note.cloned()
        .into_iter()
        .chain(searched)
        .chain([complete])
        .fold(reply, CommandReply::line)
}

fn add_deliveries(
    reply: CommandReply,
    topic: &str,
    id: &str,
    deliveries: &[DeliveryView],
) -> CommandReply {
    deliveries.iter().fold(reply, |reply, one| {
        let of_same = deliveries
            .iter()
            .filter(|other| other.subscription == one.subscription);
        let is_one_of_many = of_same.count() > 1;
        let resend = resend_command([topic, &one.subscription, id], &one.key, is_one_of_many);
        add_delivery(reply, one, resend)
    })
}

fn add_delivery(reply: CommandReply, one: &DeliveryView, resend: String) -> CommandReply {
    let rows = one.attempts.iter().map(attempt_cells).collect();
    let state = format!("{}: {}", one.subscription, delivery_state_text(one));
    let reply = reply.line(state).line(origin_line(one)).table(HEADER, rows);
    let reply = match &one.payload {
        Some(payload) => reply.line(indent_json(payload.as_str())),
        None => reply,
    };
    let reply = match one.resendable_until {
        Some(until) => reply
            .line(format!("to send it again, until {}:", until.0))
            .line(resend),
        None => reply,
    };
    reply.line("")
}

/// A state of which the log does not tell.
const UNKNOWN: &str = "in a state that is not known: no record of it came within 25 hours, or only a newer posthaste \
    knows it";

/// The state of the event as a whole, in words.
fn event_state_text(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Delivered => "delivered",
        DeliveryState::Pending => "pending, since not all subscriptions have a record of it yet",
        DeliveryState::Unmatched => "accepted, and it matched no subscription",
        DeliveryState::Waiting => "waiting, since not all subscriptions have it yet",
        DeliveryState::Held => "held, since not all subscriptions may have it yet",
        DeliveryState::DeadLettered => "not delivered to all: a delivery was given up",
        DeliveryState::Dropped => "not delivered to all: a delivery was dropped",
        DeliveryState::Unknown => UNKNOWN,
    }
}

/// The state of the event's delivery, in words.
fn delivery_state_text(one: &DeliveryView) -> String {
    let reason = one
        .reason
        .as_deref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    match (one.state, one.next_attempt_at, &one.dead_letter_object) {
        (DeliveryState::Delivered, ..) => "delivered".to_owned(),
        (DeliveryState::Pending, Some(next), _) => {
            format!("pending: its first attempt is at {} or later", next.0)
        }
        (DeliveryState::Pending, None, _) => "pending: it has no record of its own yet".to_owned(),
        (DeliveryState::Unmatched, ..) => "not meant for it".to_owned(),
        (DeliveryState::Waiting, Some(next), _) => {
            format!("waits for its next attempt, at {} or later", next.0)
        }
        (DeliveryState::Waiting, None, _) => "waits for its next attempt".to_owned(),
        (DeliveryState::Held, Some(next), _) => format!(
            "held until its endpoint recovers, or an operator acts; the next probe is at {}",
            next.0
        ),
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
        (DeliveryState::Unknown, ..) => UNKNOWN.to_owned(),
    }
}

/// The description of the event, and the time since which it is here. The texts are its producer's.
fn origin_line(one: &DeliveryView) -> String {
    let members = [
        ("type", &one.event_type),
        ("source", &one.source),
        ("subject", &one.subject),
    ];
    let members: String = members
        .into_iter()
        .filter_map(|(name, value)| Some(format!(", {name} {}", value.as_ref()?)))
        .collect();
    let line = format!(
        "accepted at {}{members}, delivery {}",
        one.accepted_at.0, one.key
    );
    visible_line(&line).into_owned()
}

fn attempt_cells(attempt: &AttemptView) -> [String; 7] {
    [
        attempt_number(attempt),
        attempt.at.0.to_string(),
        duration_cell(attempt.duration_ms),
        status_cell(attempt.status),
        attempt.outcome.clone(),
        response_cell(attempt.answer.as_ref(), attempt.error.as_ref()),
        attempt.webhook_id.clone().unwrap_or_default(),
    ]
}

/// The number of an attempt, and its origin where that is not the publish.
fn attempt_number(attempt: &AttemptView) -> String {
    match attempt.origin {
        AttemptOrigin::Replay | AttemptOrigin::Resend => {
            format!("{} ({})", attempt.number, attempt.origin.as_str())
        }
        AttemptOrigin::First | AttemptOrigin::Retry | AttemptOrigin::Unknown => {
            attempt.number.to_string()
        }
    }
}

/// The command that sends the event again: topic, subscription and id. It names the delivery where
/// the subscription has several.
fn resend_command(words: [&str; 3], key: &str, is_one_of_many: bool) -> String {
    let key = is_one_of_many.then(|| format!(" --delivery {key}"));
    let key = key.unwrap_or_default();
    let end_of_options = if words[2].starts_with('-') { " --" } else { "" };
    let words = words.map(shell_quoted).join(" ");
    format!("posthaste events resend{key}{end_of_options} {words}")
}

/// A word as a shell reads it. Hidden characters are written as bash and zsh read them, so that the
/// command means the same when it is copied from a terminal.
fn shell_quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(needs_no_quotes) {
        return word.to_owned();
    }
    if !word.contains(needs_escape) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let escaped = word.chars().map(|c| match c {
        '\'' | '\\' => format!("\\{c}"),
        _ if needs_escape(c) => format!("\\U{:08x}", u32::from(c)),
        _ => c.to_string(),
    });
    format!("$'{}'", escaped.collect::<String>())
}

fn needs_no_quotes(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.:/@+=,%".contains(c)
}

fn needs_escape(c: char) -> bool {
    is_hidden(c) || matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests;
