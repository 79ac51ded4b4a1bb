//! `attempts`: list those of a subscription, or follow them.

mod follow;

use posthaste_core::api::events::RecordPage;
use serde_json::json;

use super::records::{ATTEMPT_HEADER, RecordsRequest, attempt_row, more_hint, wanted_count};
use super::session::AdminSession;
use crate::cli::{AttemptsCommand, AttemptsListArgs, RecordFilterArgs};
use crate::error::CommandError;
use crate::output::CommandReply;

/// Attempts of a list if neither --limit nor --all is given …
const LIMIT_DEFAULT: u32 = 100;

/// … and before those that `--follow` waits for.
const FOLLOW_LIMIT_DEFAULT: u32 = 10;

pub fn run(
    session: &AdminSession,
    command: &AttemptsCommand,
    is_json: bool,
) -> Result<CommandReply, CommandError> {
    let AttemptsCommand::List(arguments) = command;
    let AttemptsListArgs {
        topic,
        subscription,
        which,
        follow,
    } = arguments;
    let limit = if *follow {
        FOLLOW_LIMIT_DEFAULT
    } else {
        LIMIT_DEFAULT
    };
    let which = RecordFilterArgs {
        limit: which.limit.or(Some(limit)),
        ..which.clone()
    };
    let path = ["topics", topic, "subscriptions", subscription, "attempts"];
    if *follow {
        return follow::run(session, &path, &which, is_json);
    }
    let question = RecordsRequest {
        path: &path,
        subscription: None,
        which: &which,
    };
    let page = question.read_records(session, |page| page.records.len() >= wanted_count(&which))?;
    Ok(attempts_reply(&format!("{topic}/{subscription}"), &page))
}

fn attempts_reply(name: &str, page: &RecordPage) -> CommandReply {
    let none = format!("the delivery log has no such attempts of {name}");
    let reply = CommandReply::new(json!(page)).list(
        ATTEMPT_HEADER,
        page.records.iter().map(attempt_row).collect(),
        none,
    );
    let reply = reply.note(format!(
        "The log is complete up to {}.",
        page.complete_until.0
    ));
    page.note
        .clone()
        .into_iter()
        .chain(more_hint(page))
        .fold(reply, CommandReply::note)
}
