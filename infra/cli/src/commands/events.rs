//! `events`: show what became of one, list what became of many, and send one again.

mod shown;

use posthaste_core::api::FoundEvents;
use posthaste_core::api::events::{EventView, IdInUrl, RecordView};
use posthaste_core::model::visible::visible_line;
use serde_json::{Value, json};
use ureq::http::Method;

use super::records::{
    RecordsRequest, duration_cell, kind_cell, records_reply, status_cell, wanted_count,
};
use super::replays;
use super::session::AdminSession;
use crate::cli::{
    EventsCancelArgs, EventsCommand, EventsListArgs, EventsResendArgs, EventsShowArgs,
    RecordFilterArgs,
};
use crate::client::ApiCall;
use crate::commands::period::query_period;
use crate::error::CommandError;
use crate::output::CommandReply;

/// Records of a list if neither --limit nor --all is given.
const LIMIT_DEFAULT: u32 = 100;

const HEADER: [&str; 9] = [
    "time",
    "subscription",
    "event",
    "type",
    "what",
    "result",
    "reason",
    "status",
    "took",
];

pub fn run(session: &AdminSession, command: &EventsCommand) -> Result<CommandReply, CommandError> {
    match command {
        EventsCommand::Show(arguments) => show_event(session, arguments),
        EventsCommand::List(arguments) => list_events(session, arguments),
        EventsCommand::Replay(arguments) => replays::start_from_log(session, arguments),
        EventsCommand::Resend(arguments) => resend_event(session, arguments),
        EventsCommand::Cancel(arguments) => cancel_event(session, arguments),
    }
}

fn show_event(
    session: &AdminSession,
    arguments: &EventsShowArgs,
) -> Result<CommandReply, CommandError> {
    let EventsShowArgs {
        topic,
        id,
        from,
        to,
        payload,
    } = arguments;
    let id = IdInUrl::for_id(id);
    let [from, to] = query_period(*from, *to);
    let mut path = vec!["events", id.path_segment()];
    if let Some(topic) = topic {
        path.splice(0..0, ["topics", topic]);
    }
    let call = with_id(session.call(Method::GET, &path), &id);
    let call = call.query("from", from).query("to", to);
    let call = call.query("payload", payload.then_some(true));
    let Some(topic) = topic else {
        let (found, text): (FoundEvents, String) = session.client.send_for_json_and_text(call)?;
        return Ok(shown::add_found_events(
            CommandReply::from_json_text(&text),
            &found,
        ));
    };
    let (view, text): (EventView, String) = session.client.send_for_json_and_text(call)?;
    Ok(shown::add_event(
        CommandReply::from_json_text(&text),
        topic,
        &view,
    ))
}

fn with_id<'a>(call: ApiCall<'a>, id: &IdInUrl<'_>) -> ApiCall<'a> {
    match id.query_parameter() {
        Some((name, value)) => call.query(name, Some(value)),
        None => call,
    }
}

fn list_events(
    session: &AdminSession,
    arguments: &EventsListArgs,
) -> Result<CommandReply, CommandError> {
    let EventsListArgs {
        topic,
        subscription,
        which,
    } = arguments;
    let which = RecordFilterArgs {
        limit: which.limit.or(Some(LIMIT_DEFAULT)),
        ..which.clone()
    };
    let path = ["topics", topic, "events"];
    let question = RecordsRequest {
        path: &path,
        subscription: subscription.as_ref(),
        which: &which,
    };
    let page = question.read_records(session, |page| page.records.len() >= wanted_count(&which))?;
    let none = format!("the delivery log has no such records of {topic}");
    Ok(records_reply(&page, HEADER, record_row, none))
}

fn record_row(record: &RecordView) -> [String; 9] {
    [
        record.time.0.to_string(),
        record.subscription.clone(),
        record.id.clone().unwrap_or_default(),
        record.event_type.clone().unwrap_or_default(),
        kind_cell(record),
        record.result.as_str().to_owned(),
        record.reason.clone().unwrap_or_default(),
        status_cell(record.status),
        duration_cell(record.duration_ms),
    ]
}

fn resend_event(
    session: &AdminSession,
    arguments: &EventsResendArgs,
) -> Result<CommandReply, CommandError> {
    let EventsResendArgs {
        topic,
        subscription,
        id,
        delivery,
        new_id,
    } = arguments;
    let id = IdInUrl::for_id(id);
    let path = [
        "topics",
        topic,
        "subscriptions",
        subscription,
        "events",
        id.path_segment(),
        "resend",
    ];
    // What is not asked for is left out: release 0.1 refuses a member that it does not know.
    let mut body = json!({});
    if *new_id {
        body["newId"] = true.into();
    }
    if let Some(key) = delivery {
        body["key"] = (&**key).into();
    }
    let call = with_id(session.call(Method::POST, &path), &id)
        .body("application/json", body.to_string().into_bytes());
    let answer: Value = session.client.send_for_json(call)?;
    Ok(resend_reply(&answer, arguments))
}

fn resend_reply(answer: &Value, arguments: &EventsResendArgs) -> CommandReply {
    let EventsResendArgs {
        topic,
        subscription,
        id,
        ..
    } = arguments;
    let line = format!(
        "{id} is sent to {topic}/{subscription} again, with webhook-id {}",
        text_member(answer, "webhookId")
    );
    CommandReply::new(answer.clone())
        .line(visible_line(&line))
        .line(format!("delivery {}", text_member(answer, "key")))
        .line(text_member(answer, "note"))
}

fn text_member<'a>(answer: &'a Value, member: &str) -> &'a str {
    answer[member].as_str().unwrap_or_default()
}

fn cancel_event(
    session: &AdminSession,
    arguments: &EventsCancelArgs,
) -> Result<CommandReply, CommandError> {
    let EventsCancelArgs { topic, id } = arguments;
    let in_url = IdInUrl::for_id(id);
    let path = ["topics", topic, "events", in_url.path_segment()];
    let call = with_id(session.call(Method::DELETE, &path), &in_url);
    let answer: Value = session.client.send_for_json(call)?;
    let note = answer["note"].as_str().unwrap_or_default().to_owned();
    Ok(CommandReply::new(answer)
        .line(visible_line(&format!("{id} is taken back")))
        .line(note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStyle;

    #[test]
    fn id_that_is_sent_again_stays_on_its_line() {
        let arguments = EventsResendArgs {
            topic: "orders".to_owned(),
            subscription: "billing".to_owned(),
            id: "1\ndelivery k-1".to_owned(),
            delivery: None,
            new_id: false,
        };
        let answer = json!({ "webhookId": "msg_k-0", "key": "k-0", "note": "It is queued." });
        let expected = "1⟦U+000A⟧delivery k-1 is sent to orders/billing again, with webhook-id msg_k-0\n\
            delivery k-0\nIt is queued.\n";
        let text = resend_reply(&answer, &arguments).render(OutputStyle::Plain);
        assert_eq!(text.into_string(), expected);
    }
}
