//! `attempts`: list those of a subscription, or follow them.

mod follow;

use super::records::{ATTEMPT_HEADER, RecordsRequest, attempt_row, records_reply, wanted_count};
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
    let none = format!("the delivery log has no such attempts of {topic}/{subscription}");
    Ok(records_reply(&page, ATTEMPT_HEADER, attempt_row, none))
}
