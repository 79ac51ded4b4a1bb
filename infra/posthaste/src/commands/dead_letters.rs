//! `dead-letters`: list, show, resolve and delete, and replay (beside the other commands of
//! replays); their way to another installation.

mod export;
mod file;
mod import;
mod pages;

use posthaste_core::api::{DeadLetterPage, DeadLetterView, ResolveResponse};
use serde_json::json;
use serde_json::value::RawValue;
use ureq::http::Method;

use self::pages::{PAGE_MAX, object_call, page};
use super::replays::{self, counted};
use super::session::Session;
use crate::cli::{
    DeadLettersArgs, DeadLettersCommand, DeadLettersListArgs, ListedArgs, SelectedArgs,
};
use crate::client::ClientError;
use crate::error::CommandError;
use crate::output::{Reply, indent};

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

pub(crate) fn run(session: &Session, command: &DeadLettersCommand) -> Result<Reply, CommandError> {
    match command {
        DeadLettersCommand::List(arguments) => Ok(listed(arguments, &list(session, arguments)?)),
        DeadLettersCommand::Replay(arguments) => replays::begin(session, arguments),
        DeadLettersCommand::Resolve(selected) => end(session, End::Resolve, selected),
        DeadLettersCommand::Delete(arguments) => end(session, End::Delete, &arguments.selected),
        DeadLettersCommand::Show { object } => show(session, object),
        DeadLettersCommand::Export(arguments) => export::run(session, arguments),
        DeadLettersCommand::Import(arguments) => import::run(session, arguments),
    }
}

fn list(session: &Session, arguments: &DeadLettersListArgs) -> Result<DeadLetterPage, ClientError> {
    let wanted = arguments.limit as usize;
    let mut all = DeadLetterPage::default();
    loop {
        let limit = (wanted - all.dead_letters.len()).min(PAGE_MAX);
        let page = page(session, &arguments.which, limit, all.cursor.clone())?;
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

fn listed(arguments: &DeadLettersListArgs, page: &DeadLetterPage) -> Reply {
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
    let reply = Reply::new(json!(page)).list(HEADER, rows, none(arguments));
    let reply = replays::failures(reply, "cannot be read", &page.failures);
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

fn none(arguments: &DeadLettersListArgs) -> String {
    let ListedArgs {
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

/// What becomes of the selected dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Resolve,
    Delete,
}

/// Resolves or deletes dead letters. One request does a part, and the next goes on at its cursor.
fn end(session: &Session, end: End, selected: &SelectedArgs) -> Result<Reply, CommandError> {
    let DeadLettersArgs {
        topic,
        subscription,
        ..
    } = &selected.which;
    let action = if end == End::Resolve {
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
    let mut request = replays::selection(selected);
    let mut total = ResolveResponse::default();
    loop {
        let call = session
            .call(Method::POST, &path)
            .body("application/json", request.to_string().into_bytes());
        let answer: ResolveResponse = session.client.json(call)?;
        if answer.in_progress {
            let id = answer.id.as_deref().unwrap_or_default();
            let text = format!("another request does the same now ({id}); nothing was done");
            return Ok(Reply::new(json!(answer)).line(text));
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
            return Ok(ended(&total, end, selected.dry_run));
        };
        request["cursor"] = cursor.into();
    }
}

fn ended(total: &ResolveResponse, end: End, is_dry_run: bool) -> Reply {
    let would = if is_dry_run { "would have " } else { "" };
    let events = counted(total.events, "event");
    let objects = counted(total.objects, "object");
    let text = match end {
        End::Resolve => format!("{would}resolved {events} of {objects}"),
        End::Delete if total.deleted_objects == total.objects => {
            format!("{would}deleted {objects} with {events}")
        }
        End::Delete => {
            let deleted = counted(total.deleted_objects, "object");
            format!(
                "{would}deleted {deleted} of {}; other events lie in the rest, so the selected ones there \
                 are resolved ({events} in all)",
                total.objects
            )
        }
    };
    let mut reply = Reply::new(json!(total)).line(text);
    if total.resolved > 0 {
        let events = counted(total.resolved, "event");
        reply = reply.line(format!("left out: {events} resolved already"));
    }
    let reply = replays::left_out(reply, &total.left_out);
    replays::failures(reply, "cannot be read", &total.failures)
}

fn show(session: &Session, object: &str) -> Result<Reply, CommandError> {
    let answer = session.client.send(object_call(session, object))?;
    let text = String::from_utf8_lossy(&answer.body);
    if serde_json::from_slice::<&RawValue>(&answer.body).is_ok() {
        // The members and numbers stay as they are written.
        return Ok(Reply::silent().line(indent(&text)));
    }
    // A message that could not be read is kept byte for byte, and need not be JSON.
    Ok(Reply::new(json!({ "bytes": answer.body.len(), "text": text })).line(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;

    #[test]
    fn what_was_resolved_or_deleted_is_said_in_words() {
        let total = |deleted_objects| ResolveResponse {
            events: 5,
            objects: 2,
            deleted_objects,
            ..Default::default()
        };
        let check = |total: ResolveResponse, end, is_dry_run, expected: &str| {
            assert_eq!(
                ended(&total, end, is_dry_run)
                    .render(Style::Plain)
                    .into_string(),
                format!("{expected}\n")
            );
        };
        check(
            total(0),
            End::Resolve,
            false,
            "resolved 5 events of 2 objects",
        );
        check(
            total(0),
            End::Resolve,
            true,
            "would have resolved 5 events of 2 objects",
        );
        check(
            total(2),
            End::Delete,
            false,
            "deleted 2 objects with 5 events",
        );
        let partly = "would have deleted 1 object of 2; other events lie in the rest, so the selected ones \
                      there are resolved (5 events in all)";
        check(total(1), End::Delete, true, partly);
    }
}
