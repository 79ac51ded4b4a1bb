//! `dead-letters work`: what resolves or deletes dead letters, shown and cancelled.

use std::cmp::Reverse;

use posthaste_core::api::{LetterWorkAction, LetterWorkPage, LetterWorkState, LetterWorkView};
use serde_json::json;
use ureq::http::Method;

use crate::cli::LetterWorkCommand;
use crate::commands::AdminSession;
use crate::commands::replays::count_with_noun;
use crate::error::CommandError;
use crate::output::CommandReply;

/// The path of the list.
const PATH: [&str; 2] = ["dead-letters", "work"];

const HEADER: [&str; 8] = [
    "work",
    "topic",
    "subscription",
    "action",
    "state",
    "began",
    "events",
    "failed",
];

pub(super) fn run(
    session: &AdminSession,
    command: Option<&LetterWorkCommand>,
) -> Result<CommandReply, CommandError> {
    let (method, id) = match command {
        None => return list_work(session, false),
        Some(LetterWorkCommand::List { active }) => return list_work(session, *active),
        Some(LetterWorkCommand::Show { id }) => (Method::GET, id),
        Some(LetterWorkCommand::Cancel { id }) => (Method::DELETE, id),
    };
    let [first, second] = PATH;
    let work = session.request_json(method, &[first, second, id])?;
    Ok(work_reply(&work))
}

/// The work that the server knows, the newest first. The server lists it in the order of its keys.
fn list_work(session: &AdminSession, active: bool) -> Result<CommandReply, CommandError> {
    let parameters: &[(&str, &str)] = if active { &[("active", "true")] } else { &[] };
    let mut work = session.read_list_with(&PATH, parameters, |page: LetterWorkPage| {
        (page.work, page.cursor)
    })?;
    work.sort_by_key(|work| Reverse(work.began_at));
    let rows = work.iter().map(work_row).collect();
    let none = if active {
        "no dead letters are being resolved or deleted"
    } else {
        "no dead letters are being resolved or deleted, or were in the last day for more than a few seconds"
    };
    Ok(CommandReply::new(json!({ "work": work })).list(HEADER, rows, none))
}

fn work_reply(work: &LetterWorkView) -> CommandReply {
    let mut reply = CommandReply::new(json!(work)).table(HEADER, vec![work_row(work)]);
    let objects = count_with_noun(work.objects_read, "object");
    reply = reply.line(format!(
        "{objects} looked at, last progress at {}",
        work.worked_at.0
    ));
    if let Some(left) = work.objects_left {
        let at_least = if work.has_more_left { "at least " } else { "" };
        let objects = count_with_noun(left, "object");
        reply = reply.line(format!("{at_least}{objects} left to look at"));
    }
    match work.ended_at {
        Some(ended) => reply.line(format!("ended at {}", ended.0)),
        None => reply,
    }
}

fn work_row(work: &LetterWorkView) -> [String; 8] {
    let action = match work.action {
        LetterWorkAction::Resolve => "resolve",
        LetterWorkAction::Delete => "delete",
    };
    [
        work.id.clone(),
        work.topic.to_string(),
        work.subscription.to_string(),
        action.to_owned(),
        state_word(work.state).to_owned(),
        work.began_at.0.to_string(),
        work.events.to_string(),
        work.failed.to_string(),
    ]
}

const fn state_word(state: LetterWorkState) -> &'static str {
    match state {
        LetterWorkState::Running => "Running",
        LetterWorkState::Waiting => "Waiting",
        LetterWorkState::Done => "Done",
        LetterWorkState::Cancelled => "Cancelled",
        LetterWorkState::Unknown => "unknown to this program",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::output::OutputStyle;

    fn text(more: &Value) -> String {
        let mut work = json!({
            "id": "0b8b9c5e", "topic": "orders", "subscription": "billing", "action": "resolve",
            "state": "Running", "request": {}, "beganAt": "2026-11-21T10:00:00Z",
            "workedAt": "2026-11-21T10:01:00Z", "events": 1_234, "objects": 9, "deletedObjects": 0,
            "failed": 2, "objectsRead": 12,
        });
        let members = more.as_object().unwrap().clone();
        work.as_object_mut().unwrap().extend(members);
        let work = serde_json::from_value(work).unwrap();
        work_reply(&work).render(OutputStyle::Plain).into_string()
    }

    #[test]
    fn work_is_shown_with_what_is_left_to_do() {
        let shown = text(&json!({ "objectsLeft": 5_000, "hasMoreLeft": true }));
        for part in [
            "0b8b9c5e",
            "resolve",
            "Running",
            "1234",
            "12 objects looked at, last progress at 2026-11-21T10:01:00.000Z",
            "at least 5000 objects left to look at",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    /// A state that a newer server may have is no mistake.
    #[test]
    fn ended_work_says_when_it_ended() {
        let ended = json!({ "state": "Resting", "endedAt": "2026-11-21T10:02:00Z" });
        let shown = text(&ended);
        for part in [
            "unknown to this program",
            "ended at 2026-11-21T10:02:00.000Z",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("left to look at"), "{shown}");
    }
}
