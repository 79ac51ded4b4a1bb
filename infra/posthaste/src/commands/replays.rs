//! `dead-letters replay` and `replays`: list, show, cancel.

use posthaste_core::api::{ReplayFailure, ReplayPage, ReplayPreview, ReplayState, ReplayView};
use serde_json::{Value, json};
use ureq::http::Method;

use super::session::Session;
use super::waiting::{LOOK_EVERY, rest};
use crate::cli::{DeadLettersArgs, ReplayArgs, ReplaysCommand};
use crate::client::ClientError;
use crate::error::{CommandError, Failure};
use crate::output::Reply;

const HEADER: [&str; 7] = ["replay", "topic", "subscription", "state", "found", "queued", "not-queued"];

/// Error of a replay that `--wait` waited for, and that did not queue everything.
#[derive(Debug, thiserror::Error)]
#[error("the replay {id} is {state:?}, and {failed} could not be queued")]
struct NotReplayed {
    id: String,
    /// Number of events or objects that could not be queued.
    failed: u64,
    state: ReplayState,
}

impl Failure for NotReplayed {}

pub(crate) fn run(session: &Session, command: Option<ReplaysCommand>) -> Result<Reply, CommandError> {
    match command.unwrap_or(ReplaysCommand::List) {
        ReplaysCommand::List => list(session),
        ReplaysCommand::Show { id } => Ok(shown(&ask(session, Method::GET, &id)?)),
        ReplaysCommand::Cancel { id } => Ok(shown(&ask(session, Method::DELETE, &id)?)),
    }
}

/// Asks for a replay, or for its dry run.
pub(super) fn begin(session: &Session, arguments: &ReplayArgs) -> Result<Reply, CommandError> {
    let DeadLettersArgs { topic, subscription, .. } = &arguments.which;
    let path = ["topics", topic, "subscriptions", subscription, "dead-letters", "replay"];
    let body = request(arguments).to_string().into_bytes();
    let call = session.call(Method::POST, &path).body("application/json", body);
    if arguments.dry_run {
        return Ok(previewed(&session.client.json(call)?));
    }
    let mut replay: ReplayView = session.client.json(call)?;
    if !arguments.wait {
        let hint =
            format!("It begins within a minute. `posthaste replays show {}` shows how far it is.", replay.id);
        return Ok(shown(&replay).line(hint));
    }
    while !matches!(replay.state, ReplayState::Done | ReplayState::Cancelled) {
        rest(LOOK_EVERY);
        replay = ask(session, Method::GET, &replay.id)?;
    }
    let ended = waited(&replay);
    let ReplayView { id, failed, state, .. } = replay;
    if state == ReplayState::Done && failed == 0 {
        return Ok(ended);
    }
    Err(CommandError::from(NotReplayed { id, failed, state }).after(ended))
}

/// The body of the request. Options that were not given are left out.
fn request(arguments: &ReplayArgs) -> Value {
    let ReplayArgs { which, types, objects, include_former, dry_run, rate, .. } = arguments;
    let DeadLettersArgs { from, to, reason, .. } = which;
    let mut body = json!({
        "from": from, "to": to, "reason": reason, "types": types, "keys": objects,
        "includeFormer": include_former, "dryRun": dry_run, "ratePerSecond": rate,
    });
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

fn ask(session: &Session, method: Method, id: &str) -> Result<ReplayView, ClientError> {
    session.ask(method, &["replays", id])
}

fn list(session: &Session) -> Result<Reply, CommandError> {
    let replays = session.list(&["replays"], |page: ReplayPage| (page.replays, page.cursor))?;
    let rows = replays.iter().map(row).collect();
    Ok(Reply::new(json!({ "replays": replays })).list(HEADER, rows, "no replays in the last 30 days"))
}

/// The end of a replay that `--wait` waited for, and its meaning.
fn waited(replay: &ReplayView) -> Reply {
    shown(replay).line("Waited until everything was queued, not until it was delivered.")
}

fn shown(replay: &ReplayView) -> Reply {
    let mut answer = Reply::new(json!(replay)).table(HEADER, vec![row(replay)]);
    let ReplayView { created_at, updated_at, .. } = replay;
    answer = answer.line(format!("asked for at {}, last change at {}", created_at.0, updated_at.0));
    if let Some(reason) = replay.reason {
        answer = answer.line(format!("{:?}: {reason:?}", replay.state));
    }
    if replay.queued > 0 {
        answer = answer.line(outcome_unknown(replay));
    }
    failures(answer, &replay.failures)
}

/// The known part of the outcome of queued events, and the command that shows the rest.
fn outcome_unknown(replay: &ReplayView) -> String {
    let ReplayView { topic, subscription, created_at, .. } = replay;
    format!(
        "What the endpoint answered is not known here. What it refuses again is a new dead letter:\n\
         posthaste dead-letters list {topic} {subscription} --from {}",
        created_at.0
    )
}

fn row(replay: &ReplayView) -> [String; 7] {
    [
        replay.id.clone(),
        replay.topic.to_string(),
        replay.subscription.to_string(),
        format!("{:?}", replay.state),
        replay.found.to_string(),
        replay.queued.to_string(),
        replay.failed.to_string(),
    ]
}

fn previewed(preview: &ReplayPreview) -> Reply {
    let at_least = if preview.is_complete { "" } else { "at least " };
    let (events, objects) = (counted(preview.events, "event"), counted(preview.objects, "object"));
    let text = format!("would deliver {at_least}{events} of {objects}");
    let rows =
        preview.by_reason.iter().map(|(reason, events)| [reason.clone(), events.to_string()]).collect();
    let mut reply = Reply::new(json!(preview)).line(text).table(["reason", "events"], rows);
    if !preview.ids.is_empty() {
        reply = reply.line(format!("ids of the first events: {}", preview.ids.join(" ")));
    }
    failures(reply, &preview.failures)
}

/// A number of things, in words.
fn counted(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

fn failures(reply: Reply, failures: &[ReplayFailure]) -> Reply {
    if failures.is_empty() {
        return reply;
    }
    let index = |failure: &ReplayFailure| failure.index.map(|index| index.to_string()).unwrap_or_default();
    let row = |failure: &ReplayFailure| [failure.key.clone(), index(failure), failure.detail.clone()];
    reply.table(["cannot be queued", "event", "why"], failures.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;

    fn replay(queued: u64) -> ReplayView {
        let view = json!({
            "id": "x", "topic": "orders", "subscription": "billing", "state": "Done", "request": {},
            "objects": 1, "found": 20, "replayed": queued, "failed": 0,
            "createdAt": "2026-11-21T10:15:00Z", "updatedAt": "2026-11-21T10:15:00Z",
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn what_was_waited_for_is_said_and_that_the_answers_are_not_known() {
        let text = waited(&replay(20)).render(Style::Plain);
        assert!(text.contains("QUEUED") && !text.contains("REPLAYED"), "{text}");
        let last = [
            "What the endpoint answered is not known here. What it refuses again is a new dead letter:",
            "posthaste dead-letters list orders billing --from 2026-11-21T10:15:00.000Z",
            "Waited until everything was queued, not until it was delivered.",
        ];
        assert!(text.ends_with(&(last.join("\n") + "\n")), "{text}");
    }

    #[test]
    fn a_preview_counts_in_words() {
        let check = |events: u64, objects: u64, expected: &str| {
            let preview = json!({
                "events": events, "objects": objects, "failed": 0,
                "isComplete": true, "byReason": {}, "ids": [],
            });
            let text = previewed(&serde_json::from_value(preview).unwrap()).render(Style::Plain);
            assert!(text.starts_with(expected), "{text}");
        };
        check(3, 1, "would deliver 3 events of 1 object\n");
        check(1, 2, "would deliver 1 event of 2 objects\n");
    }

    #[test]
    fn a_replay_of_nothing_names_no_dead_letters() {
        assert!(!shown(&replay(0)).render(Style::Plain).contains("dead-letters list"));
    }
}
