//! `attempts`: list those of a subscription, or follow them.

mod follow;

use posthaste_core::api::events::RecordPage;
use serde_json::json;

use super::records::{ATTEMPT_HEADER, Question, attempt_row, more, wanted};
use super::session::Session;
use crate::cli::{AttemptsCommand, AttemptsListArgs, RecordsArgs};
use crate::error::CommandError;
use crate::output::Reply;

/// Attempts of a list if neither --limit nor --all is given …
const LIMIT_DEFAULT: u32 = 100;

/// … and before those that `--follow` waits for.
const FOLLOW_LIMIT_DEFAULT: u32 = 10;

pub(crate) fn run(
    session: &Session,
    command: &AttemptsCommand,
    is_json: bool,
) -> Result<Reply, CommandError> {
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
    let which = RecordsArgs {
        limit: which.limit.or(Some(limit)),
        ..which.clone()
    };
    let path = ["topics", topic, "subscriptions", subscription, "attempts"];
    if *follow {
        return follow::run(session, &path, &which, is_json);
    }
    let question = Question {
        path: &path,
        subscription: None,
        which: &which,
    };
    let page = question.ask(session, |page| page.records.len() >= wanted(&which))?;
    Ok(listed(&format!("{topic}/{subscription}"), &page))
}

fn listed(name: &str, page: &RecordPage) -> Reply {
    let none = format!("the delivery log has no such attempts of {name}");
    let reply = Reply::new(json!(page)).list(
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
        .chain(more(page))
        .fold(reply, Reply::note)
}
