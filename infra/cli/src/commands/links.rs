//! `links`: links and subscriptions that are not well, and those whose events are held.

use posthaste_core::api::{IsoTimestamp, LinkScope, LinkState, LinkView, LinksView, WaitingView};
use posthaste_core::model::OutcomeName;
use serde_json::json;
use ureq::http::Method;

use super::session::AdminSession;
use crate::error::CommandError;
use crate::output::{CommandReply, api_word};

const HEADER: [&str; 9] = [
    "link",
    "subscription",
    "state",
    "since",
    "failing since",
    "failures",
    "last",
    "next probe",
    "waiting",
];

/// The meaning of a next probe.
const PROBES: &str = "What fails gets no requests until its next probe, which is one request. To try at \
    once: posthaste subscriptions force TOPIC NAME";

pub fn run(session: &AdminSession) -> Result<CommandReply, CommandError> {
    Ok(links_reply(&session.request_json(Method::GET, &["links"])?))
}

fn links_reply(view: &LinksView) -> CommandReply {
    let reply = CommandReply::new(json!(view));
    if view.links.is_empty() {
        return add_slow_lane(reply.line("every link is well, and nothing is held"), view);
    }
    let reply = add_table(reply, &view.links);
    let is_probed = view.links.iter().any(|link| link.next_probe.is_some());
    let reply = if is_probed { reply.line(PROBES) } else { reply };
    let reply = if view.truncated {
        reply.line("there are more than are shown")
    } else {
        reply
    };
    add_slow_lane(reply, view)
}

/// Adds those that take the slow lane, a line each.
fn add_slow_lane(reply: CommandReply, view: &LinksView) -> CommandReply {
    view.slow.iter().fold(reply, |reply, slow| {
        let whose = match (&slow.topic, &slow.subscription) {
            (Some(topic), Some(name)) => format!("{topic}/{name} on {}", slow.link),
            _ => format!("all on {}", slow.link),
        };
        let until = slow.slow_until.0;
        reply.line(format!(
            "slow lane: {whose} answers slowly, until {until} at least"
        ))
    })
}

/// These rows under their header.
pub(super) fn add_table(reply: CommandReply, links: &[LinkView]) -> CommandReply {
    reply.table(HEADER, links.iter().map(link_row).collect())
}

fn link_row(view: &LinkView) -> [String; 9] {
    [
        view.link
            .clone()
            .unwrap_or_else(|| missing_link_text(view.state).to_owned()),
        scope_cell(view),
        api_word(&view.state),
        time_cell(view.since),
        time_cell(view.failing_since),
        view.failures
            .map(|failures| failures.to_string())
            .unwrap_or_default(),
        last_outcome_text(view.last_outcome, view.last_http_status_code),
        time_cell(view.next_probe),
        view.waiting
            .as_deref()
            .map(waiting_text)
            .unwrap_or_default(),
    ]
}

/// A time in a table, or nothing.
pub(super) fn time_cell(time: Option<IsoTimestamp>) -> String {
    time.map(|time| time.0.to_string()).unwrap_or_default()
}

/// Placeholder for the link of a subscription that has none.
fn missing_link_text(state: LinkState) -> &'static str {
    if state == LinkState::Unknown {
        "(unknown)"
    } else {
        "(deleted)"
    }
}

fn scope_cell(view: &LinkView) -> String {
    match (view.scope, &view.topic, &view.subscription) {
        (LinkScope::Subscription, Some(topic), Some(name)) => format!("{topic}/{name}"),
        _ => "all on it".to_owned(),
    }
}

/// The outcome of the last request that failed.
pub(super) fn last_outcome_text(outcome: Option<OutcomeName>, status: Option<u16>) -> String {
    let outcome = outcome
        .map(|outcome| format!("{outcome:?}"))
        .unwrap_or_default();
    match status {
        Some(status) => format!("{outcome} ({status})"),
        None => outcome,
    }
}

/// A count of what waits; `12+` where there may be more.
pub(super) fn waiting_text(waiting: &WaitingView) -> String {
    if waiting.at_least {
        format!("{}+", waiting.count)
    } else {
        waiting.count.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputStyle;
    use serde_json::Value;

    fn check(view: Value, expected: &str) {
        let view: LinksView = serde_json::from_value(view).unwrap();
        assert_eq!(
            links_reply(&view).render(OutputStyle::Plain).into_string(),
            expected
        );
    }

    #[test]
    fn healthy_links_are_reported_in_one_line() {
        check(
            json!({ "links": [] }),
            "every link is well, and nothing is held\n",
        );
    }

    #[test]
    fn slow_targets_are_named_after_the_table() {
        let view = json!({ "links": [], "slow": [
            { "link": "https://a.example:443", "scope": "link", "slowUntil": "2026-11-21T10:13:00Z" },
            { "link": "https://b.example:443", "scope": "subscription", "topic": "orders",
              "subscription": "crm", "slowUntil": "2026-11-21T10:14:00Z" },
        ] });
        let expected = r"
every link is well, and nothing is held
slow lane: all on https://a.example:443 answers slowly, until 2026-11-21T10:13:00.000Z at least
slow lane: orders/crm on https://b.example:443 answers slowly, until 2026-11-21T10:14:00.000Z at least
";
        check(view, expected.trim_start());
    }

    #[test]
    fn a_row_says_what_is_known_and_leaves_empty_what_is_not() {
        let view = json!({ "truncated": true, "links": [
            { "link": "https://a.example:443", "scope": "link", "state": "retry",
              "since": "2026-11-21T10:03:00Z", "failingSince": "2026-11-21T10:00:00Z", "failures": 13,
              "lastOutcome": "Busy", "lastHttpStatusCode": 503, "nextProbe": "2026-11-21T10:13:00Z",
              "heldObjects": 1000, "waiting": { "count": 4180, "atLeast": true, "parked": 0, "held": 4180 } },
            { "scope": "subscription", "topic": "orders", "subscription": "crm", "state": "releasing",
              "heldObjects": 1, "waiting": { "count": 7, "parked": 0, "held": 7 } },
            { "scope": "subscription", "topic": "orders", "subscription": "erp", "state": "unknown",
              "heldObjects": 2 },
        ] });
        let expected = r"
LINK                   SUBSCRIPTION  STATE      SINCE                     FAILING SINCE             FAILURES  LAST        NEXT PROBE                WAITING
https://a.example:443  all on it     retry      2026-11-21T10:03:00.000Z  2026-11-21T10:00:00.000Z  13        Busy (503)  2026-11-21T10:13:00.000Z  4180+
(deleted)              orders/crm    releasing                                                                                                      7
(unknown)              orders/erp    unknown
What fails gets no requests until its next probe, which is one request. To try at once: posthaste subscriptions force TOPIC NAME
there are more than are shown
";
        check(view, expected.trim_start());
    }
}
