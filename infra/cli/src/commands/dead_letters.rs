//! `dead-letters`: list, show, resolve and delete, and replay (beside the other commands of
//! replays); the work that resolves or deletes; their way to another installation.

mod export;
mod file;
mod import;
mod pages;
mod work;

use posthaste_core::api::{DeadLetterPage, DeadLetterView, ResolveResponse};
use serde_json::json;
use serde_json::value::RawValue;
use ureq::http::Method;

pub use self::pages::dead_letter_call;
use self::pages::{PAGE_MAX, read_page};
use super::replays::{self, count_with_noun};
use super::session::AdminSession;
use crate::cli::{
    DeadLetterFilterArgs, DeadLetterSelectionArgs, DeadLettersCommand, DeadLettersListArgs,
    SubscriptionDeadLettersArgs,
};
use crate::client::ClientError;
use crate::error::CommandError;
use crate::output::{CommandReply, indent_json};

const HEADER: [&str; 8] = [
    "written",
    "subscription",
    "event",
    "type",
    "reason",
    "status",
    "attempts",
    "object",
];

pub fn run(
    session: &AdminSession,
    command: &DeadLettersCommand,
) -> Result<CommandReply, CommandError> {
    match command {
        DeadLettersCommand::List(arguments) => Ok(list_reply(
            arguments,
            &read_dead_letters(session, arguments)?,
        )),
        DeadLettersCommand::Replay(arguments) => {
            replays::start_from_dead_letters(session, arguments)
        }
        DeadLettersCommand::Resolve(selected) => {
            resolve_or_delete(session, DeadLetterAction::Resolve, selected)
        }
        DeadLettersCommand::Delete(arguments) => {
            resolve_or_delete(session, DeadLetterAction::Delete, &arguments.selected)
        }
        DeadLettersCommand::Show { object } => show_object(session, object),
        DeadLettersCommand::Work { command } => work::run(session, command.as_ref()),
        DeadLettersCommand::Export(arguments) => export::run(session, arguments),
        DeadLettersCommand::Import(arguments) => import::run(session, arguments),
    }
}

fn read_dead_letters(
    session: &AdminSession,
    arguments: &DeadLettersListArgs,
) -> Result<DeadLetterPage, ClientError> {
    let wanted = arguments.limit as usize;
    let mut all = DeadLetterPage::default();
    loop {
        let limit = (wanted - all.dead_letters.len()).min(PAGE_MAX);
        let page = read_page(session, &arguments.which, limit, all.cursor.clone())?;
        // A page without anything may have a cursor, but never the same one.
        let is_stuck = page.dead_letters.is_empty() && page.cursor == all.cursor;
        all.dead_letters.extend(page.dead_letters);
        all.failures.extend(page.failures);
        all.recoveries.extend(page.recoveries);
        all.note = page.note;
        all.cursor = page.cursor;
        if is_stuck || all.cursor.is_none() || all.dead_letters.len() >= wanted {
            return Ok(all);
        }
    }
}

fn list_reply(arguments: &DeadLettersListArgs, page: &DeadLetterPage) -> CommandReply {
    let row = |letter: &DeadLetterView| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let number =
            |number: Option<u16>| number.map(|number| number.to_string()).unwrap_or_default();
        [
            letter.written_at.0.to_string(),
            format!("{}/{}", letter.topic, letter.subscription),
            text(&letter.id),
            text(&letter.event_type),
            text(&letter.reason),
            number(letter.status),
            number(letter.attempts),
            letter.object.clone(),
        ]
    };
    let rows = page.dead_letters.iter().map(row).collect();
    let reply = CommandReply::new(json!(page)).list(HEADER, rows, empty_list_text(arguments));
    let reply = replays::add_failures(reply, "cannot be read", &page.failures);
    let reply = page
        .recoveries
        .iter()
        .fold(reply, |reply, recovery| reply.note(recovery.summary_line()));
    let reply = page
        .note
        .iter()
        .fold(reply, |reply, note| reply.note(note.clone()));
    match page.cursor {
        Some(_) => reply.note("There may be more: see --limit, --from and --to."),
        None => reply,
    }
}

fn empty_list_text(arguments: &DeadLettersListArgs) -> String {
    let DeadLetterFilterArgs {
        topic,
        subscription,
        from,
        to,
        reason,
        event_type,
        ..
    } = &arguments.which;
    let of = match (topic, subscription) {
        (Some(topic), Some(subscription)) => format!(" of {topic}/{subscription}"),
        (Some(topic), None) => format!(" of {topic}"),
        (None, _) => String::new(),
    };
    let is_whole = [from, to].iter().all(|time| time.is_none())
        && [reason, event_type].iter().all(|text| text.is_none());
    let rest = if is_whole {
        ""
    } else {
        " with this time, reason and type"
    };
    format!("no dead letters{of}{rest}")
}

/// The action on the selected dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadLetterAction {
    Resolve,
    Delete,
}

/// Resolves or deletes dead letters. One request does a part, and the next goes on at its cursor.
fn resolve_or_delete(
    session: &AdminSession,
    end: DeadLetterAction,
    selected: &DeadLetterSelectionArgs,
) -> Result<CommandReply, CommandError> {
    let SubscriptionDeadLettersArgs {
        topic,
        subscription,
        ..
    } = &selected.which;
    let action = if end == DeadLetterAction::Resolve {
        "resolve"
    } else {
        "delete"
    };
    let path = [
        "topics",
        topic,
        "subscriptions",
        subscription,
        "dead-letters",
        action,
    ];
    let mut request = replays::selection_body(selected);
    let mut total = ResolveResponse::default();
    loop {
        let call = session
            .call(Method::POST, &path)
            .body("application/json", request.to_string().into_bytes());
        let answer: ResolveResponse = session.client.send_for_json(call)?;
        if answer.in_progress {
            let id = answer.id.as_deref().unwrap_or_default();
            let text = format!(
                "another request does the same now; nothing was done. \
                 `posthaste dead-letters work show {id}` shows how far it is."
            );
            return Ok(CommandReply::new(json!(answer)).line(text));
        }
        total.id = answer.id;
        total.events += answer.events;
        total.objects += answer.objects;
        total.deleted_objects += answer.deleted_objects;
        total.resolved += answer.resolved;
        total.left_out.add_all(&answer.left_out);
        total.failed += answer.failed;
        total.failures.extend(answer.failures);
        let Some(cursor) = answer.cursor else {
            return Ok(action_reply(&total, end, selected.dry_run));
        };
        request["cursor"] = cursor.into();
    }
}

fn action_reply(total: &ResolveResponse, end: DeadLetterAction, is_dry_run: bool) -> CommandReply {
    let would = if is_dry_run { "would have " } else { "" };
    let events = count_with_noun(total.events, "event");
    let objects = count_with_noun(total.objects, "object");
    let text = match end {
        DeadLetterAction::Resolve => format!("{would}resolved {events} of {objects}"),
        DeadLetterAction::Delete if total.deleted_objects == total.objects => {
            format!("{would}deleted {objects} with {events}")
        }
        DeadLetterAction::Delete => {
            let deleted = count_with_noun(total.deleted_objects, "object");
            format!(
                "{would}deleted {deleted} of {}; other events lie in the rest, so the selected ones there \
                 are resolved ({events} in all)",
                total.objects
            )
        }
    };
    let mut reply = CommandReply::new(json!(total)).line(text);
    if total.resolved > 0 {
        let events = count_with_noun(total.resolved, "event");
        reply = reply.line(format!("left out: {events} resolved already"));
    }
    let reply = replays::add_left_out(reply, &total.left_out);
    replays::add_failures(reply, "cannot be read", &total.failures)
}

fn show_object(session: &AdminSession, object: &str) -> Result<CommandReply, CommandError> {
    let answer = session.client.send(dead_letter_call(session, object))?;
    let text = String::from_utf8_lossy(&answer.body);
    if serde_json::from_slice::<&RawValue>(&answer.body).is_ok() {
        // The members and numbers stay as they are written.
        return Ok(CommandReply::without_json().line(indent_json(&text)));
    }
    // A message that could not be read is kept byte for byte, and need not be JSON.
    Ok(CommandReply::new(json!({ "bytes": answer.body.len(), "text": text })).line(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStyle;

    #[test]
    fn resolved_and_deleted_dead_letters_are_counted_in_words() {
        let total = |deleted_objects| ResolveResponse {
            events: 5,
            objects: 2,
            deleted_objects,
            ..Default::default()
        };
        let check = |total: ResolveResponse, end, is_dry_run, expected: &str| {
            assert_eq!(
                action_reply(&total, end, is_dry_run)
                    .render(OutputStyle::Plain)
                    .into_string(),
                format!("{expected}\n")
            );
        };
        check(
            total(0),
            DeadLetterAction::Resolve,
            false,
            "resolved 5 events of 2 objects",
        );
        check(
            total(0),
            DeadLetterAction::Resolve,
            true,
            "would have resolved 5 events of 2 objects",
        );
        check(
            total(2),
            DeadLetterAction::Delete,
            false,
            "deleted 2 objects with 5 events",
        );
        let partly = "would have deleted 1 object of 2; other events lie in the rest, so the selected ones \
                      there are resolved (5 events in all)";
        check(total(1), DeadLetterAction::Delete, true, partly);
    }
}
