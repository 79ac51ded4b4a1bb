//! `dead-letters replay`, `events replay`, and `replays`: list, show, cancel.

use posthaste_core::api::{
    LeftOutCounts, LeftOutReason, ReplayFailure, ReplayOutcomes, ReplayPage, ReplayPreview,
    ReplayState, ReplayView,
};
use posthaste_core::model::visible::visible_line;
use serde_json::{Value, json};
use ureq::http::Method;

use super::session::AdminSession;
use super::waiting::{LOOK_EVERY, sleep_for, until_answered};
use crate::cli::{
    DeadLetterSelectionArgs, DeadLettersReplayArgs, EventsReplayArgs, ReplayRunArgs,
    ReplaysCommand, SubscriptionDeadLettersArgs,
};
use crate::client::ClientError;
use crate::commands::period::query_period;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

const HEADER: [&str; 7] = [
    "replay",
    "topic",
    "subscription",
    "state",
    "found",
    "queued",
    "not-queued",
];

/// The heading of the events and objects that a replay cannot send.
const QUEUED_NOT: &str = "cannot be queued";

/// Error of a replay that `--wait` waited for, and that did not deliver everything.
#[derive(Debug, thiserror::Error)]
#[error(
    "the replay {id} is {state:?}: {failed} could not be queued, {failed_again} failed again, \
     {waiting} may still wait"
)]
struct NotReplayed {
    id: String,
    /// Number of events or objects that could not be queued.
    failed: u64,
    /// Number of events that were given up again.
    failed_again: u64,
    /// Number of events of which the log does not say the end.
    waiting: u64,
    state: ReplayState,
}

impl CommandFailure for NotReplayed {}

pub fn run(
    session: &AdminSession,
    command: Option<ReplaysCommand>,
) -> Result<CommandReply, CommandError> {
    match command.unwrap_or(ReplaysCommand::List) {
        ReplaysCommand::List => list_replays(session),
        ReplaysCommand::Show { id } => {
            Ok(replay_reply(&request_replay(session, Method::GET, &id)?))
        }
        ReplaysCommand::Cancel { id } => {
            Ok(replay_reply(&request_replay(session, Method::DELETE, &id)?))
        }
    }
}

/// Asks for a replay of dead letters, or for its dry run.
pub(super) fn start_from_dead_letters(
    session: &AdminSession,
    arguments: &DeadLettersReplayArgs,
) -> Result<CommandReply, CommandError> {
    let SubscriptionDeadLettersArgs {
        topic,
        subscription,
        ..
    } = &arguments.selected.which;
    start_and_wait(
        session,
        topic,
        subscription,
        selection_body(&arguments.selected),
        &arguments.run,
    )
}

/// Asks for a replay from the delivery log, or for its dry run.
pub(super) fn start_from_log(
    session: &AdminSession,
    arguments: &EventsReplayArgs,
) -> Result<CommandReply, CommandError> {
    let EventsReplayArgs {
        topic,
        subscription,
        from,
        to,
        result,
        reason,
        status,
        types,
        ..
    } = arguments;
    let EventsReplayArgs {
        include_former,
        dry_run,
        run,
        ..
    } = arguments;
    let [from, to] = query_period(*from, *to);
    let body = json!({
        "source": "log", "from": from, "to": to, "result": result, "reason": reason, "status": status,
        "types": types, "includeFormer": include_former, "dryRun": dry_run,
    });
    start_and_wait(session, topic, subscription, without_nulls(body), run)
}

/// Asks for a replay, and waits for its end if that is asked for.
fn start_and_wait(
    session: &AdminSession,
    topic: &str,
    subscription: &str,
    mut body: Value,
    run: &ReplayRunArgs,
) -> Result<CommandReply, CommandError> {
    let path = [
        "topics",
        topic,
        "subscriptions",
        subscription,
        "dead-letters",
        "replay",
    ];
    if run.include_resolved {
        body["includeResolved"] = true.into();
    }
    if run.new_id {
        body["newId"] = true.into();
    }
    if let Some(rate) = run.rate {
        body["ratePerSecond"] = rate.into();
    }
    let call = session
        .call(Method::POST, &path)
        .body("application/json", body.to_string().into_bytes());
    if body["dryRun"] == true {
        return Ok(preview_reply(&session.client.send_for_json(call)?));
    }
    let mut replay: ReplayView = session.client.send_for_json(call)?;
    if !run.wait {
        let hint = format!(
            "It begins within a minute. `posthaste replays show {}` shows how far it is.",
            replay.id
        );
        return Ok(replay_reply(&replay).line(hint));
    }
    let session = session.without_retries();
    while !is_over(&replay) {
        sleep_for(LOOK_EVERY);
        replay = until_answered(
            || request_replay(&session, Method::GET, &replay.id),
            |_, wait| sleep_for(wait),
        )?;
    }
    let ended = waited_reply(&replay);
    match not_replayed(&replay) {
        None => Ok(ended),
        Some(error) => Err(CommandError::from(error).with_done(ended)),
    }
}

/// Why not everything was delivered, as far as it is known. Without outcomes, it is enough that all
/// is queued.
fn not_replayed(replay: &ReplayView) -> Option<NotReplayed> {
    let outcomes = replay.outcomes.as_ref();
    let failed_again = outcomes.map_or(0, |outcomes| outcomes.failed_again);
    let waiting = outcomes.map_or(0, |outcomes| outcomes.waiting);
    let ReplayView {
        id, failed, state, ..
    } = replay;
    if *state == ReplayState::Done && [*failed, failed_again, waiting] == [0; 3] {
        return None;
    }
    Some(NotReplayed {
        id: id.clone(),
        failed: *failed,
        failed_again,
        waiting,
        state: *state,
    })
}

/// Whether nothing more will be known of a replay. Where the log lacks some of it, or has too much,
/// events may count as waiting forever.
fn is_over(replay: &ReplayView) -> bool {
    match replay.state {
        ReplayState::Running | ReplayState::Waiting => false,
        ReplayState::Done => {
            let outcomes = replay.outcomes.as_ref();
            outcomes.is_none_or(|outcomes| outcomes.waiting == 0 || outcomes.is_partial)
        }
        // Waiting for a state that is not known might never end.
        ReplayState::Failed | ReplayState::Cancelled | ReplayState::Unknown => true,
    }
}

/// The members of a request that select dead letters.
pub(super) fn selection_body(arguments: &DeadLetterSelectionArgs) -> Value {
    let DeadLetterSelectionArgs {
        which,
        types,
        objects,
        include_former,
        dry_run,
    } = arguments;
    let SubscriptionDeadLettersArgs {
        from, to, reason, ..
    } = which;
    let [from, to] = query_period(*from, *to);
    without_nulls(json!({
        "from": from, "to": to, "reason": reason, "types": types, "keys": objects,
        "includeFormer": include_former, "dryRun": dry_run,
    }))
}

/// A body without the options that were not given.
fn without_nulls(mut body: Value) -> Value {
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    body
}

fn request_replay(
    session: &AdminSession,
    method: Method,
    id: &str,
) -> Result<ReplayView, ClientError> {
    session.request_json(method, &["replays", id])
}

fn list_replays(session: &AdminSession) -> Result<CommandReply, CommandError> {
    let replays =
        session.read_list(&["replays"], |page: ReplayPage| (page.replays, page.cursor))?;
    let rows = replays.iter().map(replay_row).collect();
    Ok(CommandReply::new(json!({ "replays": replays })).list(
        HEADER,
        rows,
        "no replays in the last 30 days",
    ))
}

/// The end of a replay that `--wait` waited for, and its meaning.
fn waited_reply(replay: &ReplayView) -> CommandReply {
    let answer = replay_reply(replay);
    match &replay.outcomes {
        None if replay.queued > 0 => {
            answer.line("Waited until everything was queued, not until it was delivered.")
        }
        _ => answer,
    }
}

fn replay_reply(replay: &ReplayView) -> CommandReply {
    let mut answer = CommandReply::new(json!(replay)).table(HEADER, vec![replay_row(replay)]);
    let ReplayView {
        created_at,
        updated_at,
        ..
    } = replay;
    answer = answer.line(format!(
        "asked for at {}, last change at {}",
        created_at.0, updated_at.0
    ));
    if replay.resolved > 0 {
        answer = answer.line(format!(
            "left out, resolved already: {}",
            count_with_noun(replay.resolved, "event")
        ));
    }
    answer = add_left_out(answer, &replay.left_out);
    if let Some(outage) = replay.recovery {
        let since = outage.outage_since.0;
        answer = answer.line(format!("began by itself, after an outage since {since}"));
    }
    if let Some(reason) = replay.reason {
        answer = answer.line(format!("{:?}: {reason:?}", replay.state));
    }
    if replay.queued > 0 {
        answer = answer.line(outcomes_text(replay));
    }
    add_failures(answer, QUEUED_NOT, &replay.failures)
}

/// The outcomes of queued events, and the command that shows those that failed again.
fn outcomes_text(replay: &ReplayView) -> String {
    let ReplayView {
        topic,
        subscription,
        created_at,
        ..
    } = replay;
    let letters = format!(
        "posthaste dead-letters list {topic} {subscription} --from {}",
        created_at.0
    );
    let Some(ReplayOutcomes {
        delivered,
        failed_again,
        waiting,
        complete_until,
        is_partial,
    }) = &replay.outcomes
    else {
        return format!(
            "The delivery log does not say what became of them. New dead letters:\n{letters}"
        );
    };
    let partly = if *is_partial {
        " The log has more of it than was read, or may lack records of its time: more may have ended."
    } else {
        ""
    };
    let again = if *failed_again > 0 {
        format!("\nNew dead letters:\n{letters}")
    } else {
        String::new()
    };
    format!(
        "delivered {delivered}, failed again {failed_again}, still waiting {waiting}. \
         The log is complete up to {}.{partly}{again}",
        complete_until.0
    )
}

fn replay_row(replay: &ReplayView) -> [String; 7] {
    [
        replay.id.clone(),
        replay.topic.to_string(),
        replay.subscription.to_string(),
        state_word(replay),
        replay.found.to_string(),
        replay.queued.to_string(),
        replay.failed.to_string(),
    ]
}

/// The state in a word. Where it is not known what became of each queued event, as in a list, a
/// replay is not said to be done.
fn state_word(replay: &ReplayView) -> String {
    let outcomes = replay.outcomes.as_ref();
    let is_open = outcomes.is_none_or(|outcomes| outcomes.waiting > 0);
    match replay.state {
        ReplayState::Done if replay.queued > 0 && is_open => "AllQueued".to_owned(),
        state => format!("{state:?}"),
    }
}

fn preview_reply(preview: &ReplayPreview) -> CommandReply {
    let at_least = if preview.is_complete { "" } else { "at least " };
    let events = count_with_noun(preview.events, "event");
    // Events of the delivery log lie in no objects.
    let of = match preview.objects {
        0 => String::new(),
        objects => format!(" of {}", count_with_noun(objects, "object")),
    };
    let resolved = match preview.resolved {
        0 => String::new(),
        events => format!(
            "; {} left out, resolved already (--include-resolved)",
            count_with_noun(events, "event")
        ),
    };
    let text = format!("would deliver {at_least}{events}{of}{resolved}");
    let rows = preview
        .by_reason
        .iter()
        .map(|(reason, events)| [reason.clone(), events.to_string()])
        .collect();
    let mut reply = add_left_out(
        CommandReply::new(json!(preview)).line(text),
        &preview.left_out,
    )
    .table(["reason", "events"], rows);
    if !preview.ids.is_empty() {
        let ids = format!("ids of the first events: {}", preview.ids.join(" "));
        reply = reply.line(visible_line(&ids));
    }
    add_failures(reply, QUEUED_NOT, &preview.failures)
}

/// Adds what was left out, a line for each reason, with the option that takes it if there is one.
pub(super) fn add_left_out(reply: CommandReply, left_out: &LeftOutCounts) -> CommandReply {
    left_out.iter().fold(reply, |reply, (reason, number)| {
        let option = match reason {
            LeftOutReason::Former => " (--include-former)",
            _ => "",
        };
        let things = count_with_noun(number, reason.counted_noun());
        reply.line(format!("left out: {things} {}{option}", reason.in_words()))
    })
}

/// A number of things, in words.
pub(super) fn count_with_noun(number: u64, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

pub(super) fn add_failures(
    reply: CommandReply,
    header: &'static str,
    failures: &[ReplayFailure],
) -> CommandReply {
    if failures.is_empty() {
        return reply;
    }
    let rows = failures.iter().map(|failure| {
        let index = failure.index.map(|index| index.to_string());
        [
            failure.key.clone(),
            index.unwrap_or_default(),
            failure.detail.clone(),
        ]
    });
    reply.table([header, "event", "why"], rows.collect())
}

#[cfg(test)]
mod tests {
    use posthaste_core::api::read_answer;

    use super::*;
    use crate::output::OutputStyle;

    fn replay(queued: u64) -> ReplayView {
        let view = json!({
            "id": "x", "topic": "orders", "subscription": "billing", "state": "Done", "request": {},
            "objects": 1, "found": 20, "replayed": queued, "failed": 0,
            "createdAt": "2026-11-21T10:15:00Z", "updatedAt": "2026-11-21T10:15:00Z",
        });
        serde_json::from_value(view).unwrap()
    }

    fn ended(outcomes: [u64; 3], is_partial: bool) -> ReplayView {
        let [delivered, failed_again, waiting] = outcomes;
        let outcomes = json!({
            "delivered": delivered, "failedAgain": failed_again, "waiting": waiting,
            "completeUntil": "2026-11-21T10:16:00Z", "isPartial": is_partial,
        });
        ReplayView {
            outcomes: serde_json::from_value(outcomes).unwrap(),
            ..replay(20)
        }
    }

    /// Replay without outcomes in the log says that it waited for the queue, not for deliveries.
    #[test]
    fn wait_without_outcomes_says_that_it_was_for_the_queue() {
        let text = waited_reply(&replay(20))
            .render(OutputStyle::Plain)
            .into_string();
        assert!(
            text.contains("QUEUED") && !text.contains("REPLAYED"),
            "{text}"
        );
        let last = [
            "The delivery log does not say what became of them. New dead letters:",
            "posthaste dead-letters list orders billing --from 2026-11-21T10:15:00.000Z",
            "Waited until everything was queued, not until it was delivered.",
        ];
        assert!(text.ends_with(&(last.join("\n") + "\n")), "{text}");
    }

    #[test]
    fn outcomes_are_counted_in_words() {
        let text = waited_reply(&ended([17, 3, 0], false))
            .render(OutputStyle::Plain)
            .into_string();
        let last = [
            "delivered 17, failed again 3, still waiting 0. The log is complete up to 2026-11-21T10:16Z.",
            "New dead letters:",
            "posthaste dead-letters list orders billing --from 2026-11-21T10:15:00.000Z",
        ];
        let text = text.replace("10:16:00.000Z", "10:16Z");
        assert!(text.ends_with(&(last.join("\n") + "\n")), "{text}");
        let text = replay_reply(&ended([17, 0, 3], true))
            .render(OutputStyle::Plain)
            .into_string();
        assert!(
            text.ends_with(
                " The log has more of it than was read, or may lack records of its time: more may have ended.\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_replay_is_over_when_nothing_waits_or_no_more_can_be_known() {
        assert!(is_over(&ended([20, 0, 0], false)) && is_over(&ended([10, 0, 10], true)));
        assert!(!is_over(&ended([19, 0, 1], false)));
        assert!(is_over(&replay(20)));
        assert!(!is_over(&ReplayView {
            state: ReplayState::Running,
            ..ended([20, 0, 0], false)
        }));
        assert!(is_over(&ReplayView {
            state: ReplayState::Cancelled,
            ..ended([0, 0, 20], false)
        }));
    }

    #[test]
    fn wait_ends_well_only_where_nothing_may_still_wait() {
        let is_well = |replay: &ReplayView| not_replayed(replay).is_none();
        assert!(is_well(&ended([20, 0, 0], false)) && is_well(&replay(20)));
        assert!(!is_well(&ended([17, 3, 0], false)));
        let partial = not_replayed(&ended([10, 0, 10], true)).unwrap();
        assert_eq!(
            partial.to_string(),
            "the replay x is Done: 0 could not be queued, 0 failed again, 10 may still wait"
        );
    }

    #[test]
    fn replay_is_done_only_where_something_got_through() {
        let word = |replay: &ReplayView| state_word(replay);
        assert_eq!(word(&replay(20)), "AllQueued");
        assert_eq!(word(&ended([19, 0, 1], false)), "AllQueued");
        assert_eq!(word(&ended([1, 19, 0], false)), "Done");
        assert_eq!(word(&replay(0)), "Done");
        let failed = ReplayView {
            state: ReplayState::Failed,
            ..ended([0, 20, 0], false)
        };
        assert_eq!(word(&failed), "Failed");
        assert!(is_over(&failed));
    }

    #[test]
    fn state_of_a_newer_server_is_listed_as_unknown() {
        let view = ReplayView {
            state: ReplayState::Running,
            ..replay(20)
        };
        let mut page = json!({ "replays": [view] });
        page["replays"][0]["state"] = "Resting".into();
        page["replays"][0]["reason"] = "Recovering".into();
        page["replays"][0]["request"]["reason"] = "SubscriptionAsleep".into();
        page["replays"][0]["request"]["newId"] = true.into();
        let page: ReplayPage = read_answer(page.to_string().as_bytes()).unwrap();
        assert_eq!(state_word(&page.replays[0]), "Unknown");
        assert!(is_over(&page.replays[0]));
    }

    #[test]
    fn a_preview_counts_in_words() {
        let check = |events: u64, objects: u64, expected: &str| {
            let preview = json!({
                "events": events, "objects": objects, "failed": 0,
                "isComplete": true, "byReason": {}, "ids": [],
            });
            let text = preview_reply(&serde_json::from_value(preview).unwrap())
                .render(OutputStyle::Plain)
                .into_string();
            assert!(text.starts_with(expected), "{text}");
        };
        check(3, 1, "would deliver 3 events of 1 object\n");
        check(1, 2, "would deliver 1 event of 2 objects\n");
        check(2, 0, "would deliver 2 events\n");
    }

    #[test]
    fn ids_of_a_preview_stay_on_their_line() {
        let preview = json!({
            "events": 1, "objects": 0, "failed": 0, "isComplete": true, "byReason": {},
            "ids": ["1\nwould deliver 0 events"],
        });
        let text = preview_reply(&serde_json::from_value(preview).unwrap());
        let expected = "would deliver 1 event\n\
            ids of the first events: 1⟦U+000A⟧would deliver 0 events\n";
        assert_eq!(text.render(OutputStyle::Plain).into_string(), expected);
    }

    #[test]
    fn preview_says_what_it_left_out_and_why() {
        let preview = json!({
            "events": 0, "objects": 0, "failed": 0, "isComplete": true, "byReason": {}, "ids": [],
            "leftOut": { "former": 2, "otherType": 1, "noTime": 3 },
        });
        let text = preview_reply(&serde_json::from_value(preview).unwrap());
        let expected = "would deliver 0 events\n\
            left out: 2 events accepted for an earlier subscription of this name (--include-former)\n\
            left out: 1 event of another type\n\
            left out: 3 objects without a time in the key, which is \
            TOPIC/SUBSCRIPTION/year/month/day/hour/name\n";
        assert_eq!(text.render(OutputStyle::Plain).into_string(), expected);
    }

    #[test]
    fn a_replay_of_nothing_names_no_dead_letters() {
        assert!(
            !replay_reply(&replay(0))
                .render(OutputStyle::Plain)
                .into_string()
                .contains("dead-letters list")
        );
    }
}
