//! `subscriptions`: list, show, delete, test, and what is done to one: validate, pause, resume,
//! enable, disable, force, rotate-secret.

use std::time::Duration;

use posthaste_core::api::{
    ForcedView, RotatedSecret, SecretText, SigningSettings, StatusState, StatusView,
    SubscriptionHealthView, SubscriptionPage, SubscriptionSettings,
};
use posthaste_core::health::HealthState;
use posthaste_core::model::DEAD_LETTER_DELAY_DEFAULT;
use posthaste_core::model::time::format_duration;
use posthaste_core::model::visible::visible_line;
use serde::Serialize;
use serde_json::json;
use ureq::http::Method;

use super::giving_up::WaitingTotal;
use super::session::AdminSession;
use super::state::state_text;
use super::{links, one, test_event};
use crate::cli::{ConfirmedArg, SubscriptionArgs, SubscriptionsCommand, TopicArg};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Columns of a topic's subscriptions.
pub(super) const HEADER: [&str; 5] = ["subscription", "endpoint", "event types", "state", "reason"];

/// Columns of a list of subscriptions: the same, and what waits for each.
const LIST_HEADER: [&str; 9] = [
    "subscription",
    "endpoint",
    "event types",
    "state",
    "waiting",
    "oldest",
    "next attempt",
    "health",
    "reason",
];

/// Actions that ask the endpoint, if it has to consent.
const ASKING: [&str; 3] = ["validate", "resume", "enable"];

/// Time in which dead letters that are due become objects: a minute for which they are gathered
/// (`DeadletterBatchWindow`), and one in which they are written.
const GATHERING_TIME: Duration = Duration::from_mins(2);

/// The advice where a rotation ended secrets.
const ENDED: &str =
    "A receiver that knows only a secret that has ended refuses what comes: give it the new one.";

/// Options of `rotate-secret`. The server checks them, because it knows the limits.
#[derive(Debug, Serialize)]
struct RotateRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: &'a Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    drop: bool,
}

/// Error of an action that asked the endpoint, after which the subscription is not active.
#[derive(Debug, thiserror::Error)]
#[error("the endpoint did not consent to events: {reason}")]
struct NotConsented {
    /// The reason that the subscription's status gives.
    reason: String,
}

impl CommandFailure for NotConsented {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}

pub fn run(
    session: &AdminSession,
    command: &SubscriptionsCommand,
) -> Result<CommandReply, CommandError> {
    match command {
        SubscriptionsCommand::List(TopicArg { topic }) => list_subscriptions(session, topic),
        SubscriptionsCommand::Show(SubscriptionArgs { topic, name }) => {
            // A subscription has too many members for a table, and its JSON can be put back.
            Ok(CommandReply::always_json(session.request_json(
                Method::GET,
                &["topics", topic, "subscriptions", name],
            )?))
        }
        SubscriptionsCommand::Create {
            of,
            endpoint,
            members,
        } => one::create_subscription(session, of, endpoint.as_deref(), members),
        SubscriptionsCommand::Set { of, members } => one::set_subscription(session, of, members),
        SubscriptionsCommand::Test { of, file } => test_event::run(session, of, file.as_deref()),
        SubscriptionsCommand::RotateSecret {
            of: SubscriptionArgs { topic, name },
            overlap,
            kind,
            drop,
        } => {
            let path = ["topics", topic, "subscriptions", name, "rotate-secret"];
            let request = RotateRequest {
                overlap,
                kind,
                drop: *drop,
            };
            let body = json!(request).to_string().into_bytes();
            let call = session
                .call(Method::POST, &path)
                .body("application/json", body);
            Ok(rotated_reply(&session.client.send_for_json(call)?))
        }
        SubscriptionsCommand::Delete { of, confirmed } => {
            delete_subscription(session, of, *confirmed)
        }
        SubscriptionsCommand::Validate(of) => act_on_subscription(session, of, "validate"),
        SubscriptionsCommand::Pause(of) => act_on_subscription(session, of, "pause"),
        SubscriptionsCommand::Resume(of) => act_on_subscription(session, of, "resume"),
        SubscriptionsCommand::Enable(of) => enable_subscription(session, of),
        SubscriptionsCommand::Disable { of, confirmed } => {
            disable_subscription(session, of, *confirmed)
        }
        SubscriptionsCommand::Force(of) => force_subscription(session, of),
    }
}

/// The events that an action gives up, once that is confirmed.
fn confirm_given_up(
    session: &AdminSession,
    action: &str,
    of: &SubscriptionArgs,
    confirmed: ConfirmedArg,
) -> Result<WaitingTotal, CommandError> {
    let waiting = WaitingTotal::for_subscription(session, of, confirmed)?;
    let SubscriptionArgs { topic, name } = of;
    waiting.confirm_giving_up(&format!("{action} {topic}/{name}"), confirmed.yes)?;
    Ok(waiting)
}

fn delete_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
    confirmed: ConfirmedArg,
) -> Result<CommandReply, CommandError> {
    let SubscriptionArgs { topic, name } = of;
    let waiting = confirm_given_up(session, "delete", of, confirmed)?;
    session
        .client
        .send(session.call(Method::DELETE, &["topics", topic, "subscriptions", name]))?;
    let json = json!({ "deleted": { "topic": topic, "subscription": name }, "waiting": waiting });
    let reply = CommandReply::new(json).line(format!("deleted the subscription {name} of {topic}"));
    Ok(waiting.add_to_reply(reply))
}

fn disable_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
    confirmed: ConfirmedArg,
) -> Result<CommandReply, CommandError> {
    let waiting = confirm_given_up(session, "disable", of, confirmed)?;
    let reply = act_on_subscription(session, of, "disable")?.with_member("waiting", json!(waiting));
    Ok(waiting.add_to_reply(reply))
}

/// Acts on a subscription, and shows its new state.
fn act_on_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
    action: &str,
) -> Result<CommandReply, CommandError> {
    let SubscriptionArgs { topic, name } = of;
    let path = ["topics", topic, "subscriptions", name, action];
    let shown: SubscriptionSettings = session.request_json(Method::POST, &path)?;
    let state = shown.status.as_ref().map(state_text).unwrap_or_default();
    let json = json!({ "topic": topic, "subscription": name, "status": shown.status });
    let reply = CommandReply::new(json).line(format!("{topic}/{name} is {state}"));
    match shown.status {
        Some(StatusView {
            state: StatusState::Failed,
            reason,
            ..
        }) if ASKING.contains(&action) => Err(CommandError::from(NotConsented {
            reason: visible_line(&reason.unwrap_or_default()).into_owned(),
        })
        .with_done(reply)),
        _ => Ok(reply),
    }
}

/// Enables a subscription, and names the command that delivers what became dead letters meanwhile.
fn enable_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
) -> Result<CommandReply, CommandError> {
    let path = ["topics", &of.topic, "subscriptions", &of.name];
    let before: SubscriptionSettings = session.request_json(Method::GET, &path)?;
    let reply = act_on_subscription(session, of, "enable")?;
    Ok(add_replay_command(reply, of, &before))
}

/// Adds the replay of the dead letters of a subscription that was disabled.
fn add_replay_command(
    reply: CommandReply,
    of: &SubscriptionArgs,
    before: &SubscriptionSettings,
) -> CommandReply {
    let status = before.status.as_ref();
    let Some(since) = status
        .filter(|status| status.state == StatusState::Disabled)
        .map(|status| status.since.0)
    else {
        return reply;
    };
    let SubscriptionArgs { topic, name } = of;
    let delay = before.dead_letter.delay;
    let delay = delay.map_or(DEAD_LETTER_DELAY_DEFAULT, |delay| delay.0);
    let wait = format_duration(delay + GATHERING_TIME);
    reply
        .line("What became a dead letter while it was disabled is delivered by:")
        .line(format!(
            "posthaste dead-letters replay {topic} {name} --from {since}"
        ))
        .line(format!(
            "Run it {wait} from now: what it missed last is a dead letter only then."
        ))
}

/// Ends a subscription's holds, and shows them.
fn force_subscription(
    session: &AdminSession,
    of: &SubscriptionArgs,
) -> Result<CommandReply, CommandError> {
    let SubscriptionArgs { topic, name } = of;
    let forced: ForcedView = session.request_json(
        Method::POST,
        &["topics", topic, "subscriptions", name, "force"],
    )?;
    let reply = CommandReply::new(json!(forced)).line(format!("{topic}/{name}: {}", forced.detail));
    Ok(if forced.forced.is_empty() {
        reply
    } else {
        links::add_table(reply, &forced.forced)
    })
}

/// A subscription of a topic.
pub(super) fn table_row(name: &str, settings: &SubscriptionSettings) -> [String; 5] {
    let types = &settings.filter.included_event_types;
    let types = if types.is_empty() {
        "all".to_owned()
    } else {
        types.join(" ")
    };
    let state = settings
        .status
        .as_ref()
        .map(|status| format!("{:?}", status.state))
        .unwrap_or_default();
    let reason = settings
        .status
        .as_ref()
        .and_then(|status| status.reason.clone())
        .unwrap_or_default();
    [
        name.to_owned(),
        settings.endpoint.url.clone(),
        types,
        state,
        reason,
    ]
}

/// A subscription in a list, with what waits for it.
fn list_row(settings: &SubscriptionSettings) -> [String; 9] {
    let name = settings
        .name
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let [name, endpoint, types, state, reason] = table_row(&name, settings);
    let waiting = settings.waiting.as_deref();
    [
        name,
        endpoint,
        types,
        state,
        waiting.map(links::waiting_text).unwrap_or_default(),
        links::time_cell(waiting.and_then(|waiting| waiting.oldest_accepted_at)),
        links::time_cell(waiting.and_then(|waiting| waiting.next_attempt_at)),
        settings
            .health
            .as_deref()
            .map(health_cell)
            .unwrap_or_default(),
        reason,
    ]
}

/// Whether events arrive, and how the last one failed where they do not.
fn health_cell(view: &SubscriptionHealthView) -> String {
    let state = view.state.to_string();
    if !matches!(view.state, HealthState::Failing | HealthState::Down) {
        return state;
    }
    let share = view.arrived_percent.map(|percent| format!(" {percent} %"));
    let last = links::last_outcome_text(view.last_outcome, view.last_http_status_code);
    let last = (!last.is_empty()).then(|| format!(": {last}"));
    [state, share.unwrap_or_default(), last.unwrap_or_default()].concat()
}

fn list_subscriptions(session: &AdminSession, topic: &str) -> Result<CommandReply, CommandError> {
    let subscriptions = session.read_list(
        &["topics", topic, "subscriptions"],
        |page: SubscriptionPage| (page.subscriptions, page.cursor),
    )?;
    Ok(list_reply(topic, &subscriptions))
}

fn list_reply(topic: &str, subscriptions: &[SubscriptionSettings]) -> CommandReply {
    let rows = subscriptions.iter().map(list_row).collect();
    CommandReply::new(json!({ "subscriptions": subscriptions })).list(
        LIST_HEADER,
        rows,
        empty_list_text(topic),
    )
}

/// Text in the place of a list of a topic's subscriptions, where there are none.
pub(super) fn empty_list_text(topic: &str) -> String {
    format!("{topic} has no subscriptions yet; `posthaste apply -f FILE` creates those of a file")
}

/// The new secret, the key that receivers verify with, and the older secrets with the time of their
/// end.
fn rotated_reply(rotated: &RotatedSecret) -> CommandReply {
    let mut reply = CommandReply::new(json!(rotated)).line(rotated.secret.expose());
    if let Some(public_key) = &rotated.public_key {
        reply = reply.line(format!("receivers verify with {public_key}"));
    }
    reply = reply.line("It signs first from now on, and is not shown again.");
    let rows: Vec<_> = older_secret_rows(&rotated.signing)
        .chain(rotated.ended.iter().map(ended_secret_row))
        .collect();
    if !rows.is_empty() {
        reply = reply.table(["older secret", "signs until"], rows);
    }
    if rotated.ended.is_empty() {
        reply
    } else {
        reply.line(ENDED)
    }
}

/// The secrets behind the first one, and the time until which they sign.
fn older_secret_rows(signing: &SigningSettings) -> impl Iterator<Item = [String; 2]> {
    signing.timed_secrets().skip(1).map(|(masked, time)| {
        let until = time.map_or("for good".to_owned(), |time| time.0.to_string());
        [masked.expose().to_owned(), until]
    })
}

fn ended_secret_row(masked: &SecretText) -> [String; 2] {
    [masked.expose().to_owned(), "now: it has ended".to_owned()]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::output::OutputStyle;

    #[test]
    fn enabled_subscription_names_the_replay_of_missed_events() {
        let of = SubscriptionArgs {
            topic: "orders".to_owned(),
            name: "billing".to_owned(),
        };
        let text = |state: &str, dead_letter: Value| {
            let before = json!({
                "endpoint": { "url": "https://a.example/" },
                "status": { "state": state, "since": "2026-11-21T10:00:00Z" },
                "deadLetter": dead_letter,
            });
            let before = serde_json::from_value(before).unwrap();
            let reply = add_replay_command(CommandReply::without_json(), &of, &before);
            reply.render(OutputStyle::Plain).into_string()
        };
        let expected = "What became a dead letter while it was disabled is delivered by:\n\
            posthaste dead-letters replay orders billing --from 2026-11-21T10:00:00.000Z\n\
            Run it PT7M from now: what it missed last is a dead letter only then.\n";
        assert_eq!(text("Disabled", json!({})), expected);
        let longer = expected.replace("PT7M", "PT17M");
        assert_eq!(text("Disabled", json!({ "delay": "PT15M" })), longer);
        assert_eq!(text("Failed", json!({})), "");
    }

    #[test]
    fn a_list_shows_what_waits_as_far_as_it_is_known() {
        let billing = json!({
            "name": "billing", "endpoint": { "url": "https://a.example/" },
            "status": { "state": "Active", "since": "2026-11-21T10:00:00Z" },
            "waiting": {
                "count": 12, "queued": 7, "parked": 1, "held": 4,
                "oldestAcceptedAt": "2026-11-21T10:00:00Z", "nextAttemptAt": "2026-11-21T10:20:00Z",
            },
            "health": { "state": "down", "since": "2026-11-21T10:00:00Z", "arrivedPercent": 0,
                "tried": 13, "lastOutcome": "Busy", "lastHttpStatusCode": 503 },
            "circuit": { "link": "https://a.example:443", "scope": "link", "state": "retry" },
        });
        let crm = json!({
            "name": "crm", "endpoint": { "url": "https://b.example/" },
            "status": { "state": "Paused", "reason": "paused by an operator",
                "since": "2026-11-21T10:00:00Z" },
            "waiting": { "count": 1000, "atLeast": true, "parked": 0, "held": 1000 },
            "health": { "state": "paused" },
        });
        let erp = json!({ "name": "erp", "endpoint": { "url": "https://c.example/" } });
        let subscriptions: Vec<_> = [billing, crm, erp]
            .map(|it| serde_json::from_value(it).unwrap())
            .into();
        let expected = r"
SUBSCRIPTION  ENDPOINT            EVENT TYPES  STATE   WAITING  OLDEST                    NEXT ATTEMPT              HEALTH                REASON
billing       https://a.example/  all          Active  12       2026-11-21T10:00:00.000Z  2026-11-21T10:20:00.000Z  down 0 %: Busy (503)
crm           https://b.example/  all          Paused  1000+                                                        paused                paused by an operator
erp           https://c.example/  all
";
        assert_eq!(
            list_reply("orders", &subscriptions)
                .render(OutputStyle::Plain)
                .into_string(),
            expected.trim_start()
        );
    }

    #[test]
    fn new_secret_is_printed_first_and_old_ones_with_their_end() {
        let rotated: RotatedSecret = serde_json::from_value(json!({
            "secret": "whsk_abc", "kind": "v1a", "publicKey": "whpk_def",
            "signing": {
                "secrets": ["(masked:00000003)", "(masked:00000002)", "(masked:00000001)"],
                "expiresAt": [null, null, "2026-11-22T10:00:00.000Z"],
            },
            "ended": ["(masked:00000000)"],
        }))
        .unwrap();
        let expected = "whsk_abc\n\
            receivers verify with whpk_def\n\
            It signs first from now on, and is not shown again.\n\
            OLDER SECRET       SIGNS UNTIL\n\
            (masked:00000002)  for good\n\
            (masked:00000001)  2026-11-22T10:00:00.000Z\n\
            (masked:00000000)  now: it has ended\n\
            A receiver that knows only a secret that has ended refuses what comes: give it the new one.\n";
        assert_eq!(
            rotated_reply(&rotated)
                .render(OutputStyle::Plain)
                .into_string(),
            expected
        );
    }
}
