//! `dead-letters`: list, show, and replay (beside the other commands of replays).

use posthaste_core::api::{DeadLetterObject, DeadLetterPage};
use serde_json::json;
use serde_json::value::RawValue;
use ureq::http::Method;

use super::replays;
use super::session::Session;
use crate::cli::{DeadLettersArgs, DeadLettersCommand, DeadLettersListArgs};
use crate::client::ClientError;
use crate::error::CommandError;
use crate::output::{Reply, indent};

/// Most objects in one page.
const PAGE_MAX: usize = 100;

pub(crate) fn run(session: &Session, command: &DeadLettersCommand) -> Result<Reply, CommandError> {
    match command {
        DeadLettersCommand::List(arguments) => {
            let objects = list(session, arguments)?;
            let row = |object: &DeadLetterObject| {
                [object.modified_at.0.to_string(), object.size.to_string(), object.key.clone()]
            };
            let reply = Reply::new(json!({ "deadLetters": objects }));
            let rows = objects.iter().map(row).collect();
            Ok(reply.list(["written", "bytes", "key"], rows, none(&arguments.which)))
        }
        DeadLettersCommand::Replay(arguments) => replays::begin(session, arguments),
        DeadLettersCommand::Show { object } => show(session, object),
    }
}

fn list(session: &Session, arguments: &DeadLettersListArgs) -> Result<Vec<DeadLetterObject>, ClientError> {
    let wanted = arguments.limit as usize;
    let DeadLettersArgs { topic, subscription, from, to, reason } = &arguments.which;
    let path = ["topics", topic, "subscriptions", subscription, "dead-letters"];
    let mut objects: Vec<DeadLetterObject> = Vec::new();
    let mut cursor = None;
    loop {
        let call = session
            .call(Method::GET, &path)
            .query("from", from.as_ref())
            .query("to", to.as_ref())
            .query("reason", reason.as_ref())
            .query("limit", Some((wanted - objects.len()).min(PAGE_MAX)))
            .query("cursor", cursor);
        let page: DeadLetterPage = session.client.json(call)?;
        objects.extend(page.dead_letters);
        cursor = page.cursor;
        if cursor.is_none() || objects.len() >= wanted {
            objects.truncate(wanted);
            return Ok(objects);
        }
    }
}

fn none(DeadLettersArgs { topic, subscription, from, to, reason }: &DeadLettersArgs) -> String {
    let is_whole = from.is_none() && to.is_none() && reason.is_none();
    let rest = if is_whole { "" } else { " with this time and reason" };
    format!("no dead letters of {topic}/{subscription}{rest}")
}

fn show(session: &Session, object: &str) -> Result<Reply, CommandError> {
    let path: Vec<&str> = std::iter::once("dead-letters").chain(object.split('/')).collect();
    let answer = session.client.send(session.call(Method::GET, &path))?;
    let text = String::from_utf8_lossy(&answer.body);
    if serde_json::from_slice::<&RawValue>(&answer.body).is_ok() {
        // The members and numbers stay as they are written.
        return Ok(Reply::silent().line(indent(&text)));
    }
    // A message that could not be read is kept byte for byte, and need not be JSON.
    Ok(Reply::new(json!({ "bytes": answer.body.len(), "text": text })).line(text))
}
