//! `subscriptions`: list, show, delete, test, and what is done to one: validate, pause, resume, enable,
//! disable, force, rotate-secret.

mod rotate;

use posthaste_core::api::{ForcedView, StatusState, StatusView, SubscriptionPage, SubscriptionSettings};
use serde_json::{Value, json};
use ureq::http::Method;

use super::session::Session;
use super::{links, test_event};
use crate::cli::{SubscriptionArgs, SubscriptionsCommand};
use crate::client::Call;
use crate::error::{CommandError, Failure};
use crate::output::Reply;

/// Columns of a list of subscriptions.
pub(super) const HEADER: [&str; 5] = ["subscription", "endpoint", "event types", "state", "reason"];

/// The actions that ask the endpoint, where it must consent.
const ASKING: [&str; 3] = ["validate", "resume", "enable"];

/// The endpoint was asked, and the subscription is not active.
#[derive(Debug, thiserror::Error)]
#[error("the endpoint did not consent to events: {reason}")]
struct NotConsented {
    /// Why not, as the subscription's status says it.
    reason: String,
    /// The state, to be shown too.
    done: Reply,
}

impl Failure for NotConsented {
    fn exit_code(&self) -> u8 {
        3
    }

    fn done(&self) -> Option<&Reply> {
        Some(&self.done)
    }
}

pub(crate) fn run(session: &Session, command: &SubscriptionsCommand) -> Result<Reply, CommandError> {
    match command {
        SubscriptionsCommand::List { topic } => list(session, topic),
        SubscriptionsCommand::Show { topic, name } => {
            let call = Call::new(Method::GET, &["topics", topic, "subscriptions", name]).key(&session.key);
            // Too many members for a table; and JSON can be written back.
            Ok(Reply::verbatim(session.client.json::<Value>(call)?))
        }
        SubscriptionsCommand::Test { topic, name, file } => {
            test_event::run(session, topic, name, file.as_deref())
        }
        SubscriptionsCommand::RotateSecret { topic, name, overlap, kind } => {
            let asked = rotate::RotateRequest { overlap: overlap.as_deref(), kind: kind.as_deref() };
            rotate::run(session, topic, name, &asked)
        }
        SubscriptionsCommand::Delete { topic, name } => {
            let call = Call::new(Method::DELETE, &["topics", topic, "subscriptions", name]).key(&session.key);
            session.client.send(call)?;
            let json = json!({ "deleted": { "topic": topic, "subscription": name } });
            Ok(Reply::new(json).line(format!("deleted the subscription {name} of {topic}")))
        }
        SubscriptionsCommand::Validate(of) => act(session, of, "validate"),
        SubscriptionsCommand::Pause(of) => act(session, of, "pause"),
        SubscriptionsCommand::Resume(of) => act(session, of, "resume"),
        SubscriptionsCommand::Enable(of) => act(session, of, "enable"),
        SubscriptionsCommand::Disable(of) => act(session, of, "disable"),
        SubscriptionsCommand::Force(of) => force(session, of),
    }
}

/// Acts on a subscription, and shows its state then.
fn act(session: &Session, of: &SubscriptionArgs, action: &str) -> Result<Reply, CommandError> {
    let SubscriptionArgs { topic, name } = of;
    let path = ["topics", topic, "subscriptions", name, action];
    let shown: SubscriptionSettings =
        session.client.json(Call::new(Method::POST, &path).key(&session.key))?;
    let state = shown.status.as_ref().map(state).unwrap_or_default();
    let json = json!({ "topic": topic, "subscription": name, "status": shown.status });
    let reply = Reply::new(json).line(format!("{topic}/{name} is {state}"));
    match shown.status {
        Some(StatusView { state: StatusState::Failed, reason, .. }) if ASKING.contains(&action) => {
            Err(NotConsented { reason: reason.unwrap_or_default(), done: reply }.into())
        }
        _ => Ok(reply),
    }
}

/// Ends a subscription's holds, and shows them.
fn force(session: &Session, of: &SubscriptionArgs) -> Result<Reply, CommandError> {
    let SubscriptionArgs { topic, name } = of;
    let path = ["topics", topic, "subscriptions", name, "force"];
    let forced: ForcedView = session.client.json(Call::new(Method::POST, &path).key(&session.key))?;
    let reply = Reply::new(json!(forced)).line(format!("{topic}/{name}: {}", forced.detail));
    Ok(if forced.forced.is_empty() { reply } else { links::table(reply, &forced.forced) })
}

/// A state and its reason, as people read them.
pub(super) fn state(status: &StatusView) -> String {
    match &status.reason {
        Some(reason) => format!("{:?}: {reason}", status.state),
        None => format!("{:?}", status.state),
    }
}

/// A subscription in a list.
pub(super) fn row(name: &str, settings: &SubscriptionSettings) -> [String; 5] {
    let types = &settings.filter.included_event_types;
    let types = if types.is_empty() { "all".to_owned() } else { types.join(" ") };
    let state = settings.status.as_ref().map(|status| format!("{:?}", status.state)).unwrap_or_default();
    let reason = settings.status.as_ref().and_then(|status| status.reason.clone()).unwrap_or_default();
    [name.to_owned(), settings.endpoint.url.clone(), types, state, reason]
}

fn list(session: &Session, topic: &str) -> Result<Reply, CommandError> {
    let mut subscriptions = Vec::new();
    let mut cursor = None;
    loop {
        let path = ["topics", topic, "subscriptions"];
        let call = Call::new(Method::GET, &path).key(&session.key).query("cursor", cursor);
        let page: SubscriptionPage = session.client.json(call)?;
        subscriptions.extend(page.subscriptions);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let name =
        |settings: &SubscriptionSettings| settings.name.as_ref().map(ToString::to_string).unwrap_or_default();
    let rows = subscriptions.iter().map(|settings| row(&name(settings), settings)).collect();
    Ok(Reply::new(json!({ "subscriptions": subscriptions })).table(HEADER, rows))
}
