//! The table of what fails: who, since when, why, how much waits, and what can be pressed.

use maud::{Markup, html};
use posthaste_core::api::{
    FailingPart, FailingState, FailingTarget, FailingView, LinkScope, LinkState, WaitingView,
};
use posthaste_core::health::HealthState;
use posthaste_core::model::Timestamp;

use super::row_buttons::row_actions;
use crate::address::{PageAddress, page_path, subscription_path};
use crate::display::{foreign_text, number, relative_time};
use crate::pages::subscription::waiting::count_in_words;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;
use crate::visit::PageVisit;
use crate::words::{StateWord, health_word, link_word};

const COLUMNS: [TableColumn; 7] = [
    Text("Subscription, host"),
    Text("State, since"),
    Text("Last answer"),
    Number("Arrived, last hour"),
    Number("Waiting"),
    Text("Next attempt"),
    Text("Actions"),
];

/// The table of what fails, for one visit.
pub(crate) struct FailingTable<'a> {
    pub(crate) view: &'a FailingView,
    pub(crate) visit: &'a PageVisit,
    /// The page to which its buttons lead back.
    pub(crate) back: &'a str,
    /// The state that its rows were selected by.
    pub(crate) state: Option<FailingState>,
}

impl FailingTable<'_> {
    /// The table, in the order of the API: a row keeps its place while its counts change.
    pub(crate) fn render(&self) -> Markup {
        let rows = self.view.failing.iter();
        data_table(
            "Failing now",
            &COLUMNS,
            rows.map(|row| self.render_row(row)),
        )
    }

    fn render_row(&self, row: &FailingTarget) -> [Markup; 7] {
        let now = self.visit.now;
        [
            target_cell(row, self.state),
            state_cell(row, now),
            answer_cell(row, now),
            share_cell(row, now),
            waiting_cell(row, now),
            next_cell(row, now),
            row_actions(row, self.visit, self.back),
        ]
    }
}

/// The parts that the API could not read or count, if there are any.
pub(crate) fn what_is_missing(view: &FailingView) -> Markup {
    let parts: Vec<_> = view.left_out.iter().map(|part| part_text(*part)).collect();
    html! {
        @if !parts.is_empty() {
            p.hint {
                "This is not all: " (parts.join(", ")) " could not be read in time, so rows or parts of them may \
                 be missing."
            }
        }
        @if view.truncated {
            p.hint {
                "Not everything could be looked at: more than 1,000 subscriptions may fail, or there was no time to \
                 count all that waits."
            }
        }
    }
}

const fn part_text(part: FailingPart) -> &'static str {
    match part {
        FailingPart::Circuit => "which endpoints are asked",
        FailingPart::Health => "the tries of the last hour",
        FailingPart::Waiting => "what waits",
        FailingPart::Topics => "the settings of some topics",
        FailingPart::Unknown => "something that a newer server knows",
    }
}

/// The word for a state, as on other pages.
const fn state_word(state: FailingState) -> StateWord {
    match state {
        FailingState::Failing => health_word(HealthState::Failing),
        FailingState::Down => health_word(HealthState::Down),
        FailingState::AskedToWait => link_word(LinkState::RetryAfter),
        FailingState::Recovering => link_word(LinkState::Recovering),
        FailingState::Paused => health_word(HealthState::Paused),
        FailingState::Pending => health_word(HealthState::Pending),
        FailingState::Refused => health_word(HealthState::Refused),
        FailingState::Disabled => health_word(HealthState::Disabled),
        FailingState::Unknown => link_word(LinkState::Unknown),
    }
}

fn target_cell(row: &FailingTarget, state: Option<FailingState>) -> Markup {
    let host = row.link.as_deref();
    let host = html! { @if let Some(host) = host { (foreign_text(host)) } };
    html! {
        @if let (Some(topic), Some(name)) = (&row.topic, &row.subscription) {
            a href=(subscription_path(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
            br;
            span.hint { (host) @if row.scope == LinkScope::Link { ", as all on this host" } }
        } @else {
            (host)
            br;
            span.hint { "all on this host" }
        }
        @if let Some(told) = told_text(row) { br; span.hint { (told) } }
        @if let (Some(link), true) = (&row.link, row.others > 0) {
            br;
            a href=(PageAddress::new(&["failing"]).query("name", Some(link)).query("state", state)) {
                "and " (number(row.others)) " more on this host"
            }
        }
    }
}

fn state_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    let word = state_word(row.state);
    html! {
        (word.badge())
        @if row.state == FailingState::Unknown {
            br;
            span.hint { "its topic, or the state of its endpoint, cannot be read" }
        }
        @if let Some(reason) = &row.reason { br; span.hint { (foreign_text(reason)) } }
        @if let Some(since) = row.since { br; (relative_time(since.0, now)) }
    }
}

/// The topics that are told that it fails; `None` where that is not known, or it is stopped.
fn told_text(row: &FailingTarget) -> Option<Markup> {
    // Its topic, which could not be read, may name another.
    let is_topic_unknown = row.topic.is_none() || row.state == FailingState::Unknown;
    let is_nobody = row.notices_topics.is_empty();
    if row.state.is_stopped() || (is_nobody && is_topic_unknown) {
        return None;
    }
    let words = match row.told {
        Some(true) => "notice sent",
        _ if is_nobody => "nobody is told",
        _ => "notices go",
    };
    Some(html! {
        a href=(page_path(&["told"])) { (words) }
        @for (at, topic) in row.notices_topics.iter().enumerate() {
            @if at == 0 { " to " } @else { ", " }
            (topic)
        }
    })
}

fn answer_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    html! {
        @match &row.last_outcome {
            Some(outcome) => (foreign_text(&outcome.to_string())),
            None => "not known",
        }
        @if let Some(status) = row.last_http_status_code { " (" (status) ")" }
        @if let Some(at) = row.last_failure_at { br; (relative_time(at.0, now)) }
    }
}

fn share_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    html! {
        @match row.hour {
            Some(hour) => {
                (hour.arrived_percent()) " %"
                br;
                span.hint {
                    (number(hour.arrived.into())) " of " (number(hour.tried.into()))
                    @if let Some(minutes) = minutes_counted(hour.from.0, now) { " in " (minutes) " min" }
                }
            }
            None => { "–" br; span.hint { "no tries known" } }
        }
    }
}

fn waiting_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    html! {
        @match row.waiting.as_deref() {
            Some(waiting) => {
                (count_in_words(waiting))
                @if let Some(oldest) = waiting.oldest_accepted_at {
                    div.hint { "oldest " (relative_time(oldest.0, now)) }
                }
            }
            None => "–",
        }
        @if row.missed > 0 { div.hint { (missed_link(row)) } }
    }
}

/// The way to the events that came while it was disabled.
fn missed_link(row: &FailingTarget) -> Markup {
    let letters = PageAddress::new(&["dead-letters"])
        .query("topic", row.topic.as_ref())
        .query("subscription", row.subscription.as_ref());
    html! { a href=(letters) { (number(row.missed)) " missed" } ", kept as dead letters" }
}

/// The minutes for which tries are counted, which is from the first one that failed on; `None` for
/// a whole hour.
fn minutes_counted(from: Timestamp, now: Timestamp) -> Option<u64> {
    let minutes = now.since(from).as_secs().div_ceil(60).max(1);
    (minutes < 60).then_some(minutes)
}

fn next_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    html! {
        @match row.next_attempt_at {
            Some(next) if next.0 > now => (relative_time(next.0, now)),
            Some(_) => "now",
            None if row.state == FailingState::Recovering => "little by little",
            None if row.state.is_stopped() => "none while it is stopped",
            None => (untimed_attempt(row)),
        }
    }
}

/// When a request goes out without a time of its own: what is due goes at once, and the next event
/// where none waits.
fn untimed_attempt(row: &FailingTarget) -> &'static str {
    let is_known = row.state != FailingState::Unknown;
    let counted = row.waiting.as_deref().filter(|waiting| !waiting.at_least);
    match counted.filter(|_| is_known) {
        Some(waiting) if is_any_due(waiting) => "now",
        Some(waiting) if waiting.count > 0 => "when a retry is due",
        Some(_) => "with the next event",
        None => "not known",
    }
}

/// Whether any of these events can go at once.
fn is_any_due(waiting: &WaitingView) -> bool {
    let in_queue = [waiting.due, waiting.under_way];
    in_queue.into_iter().flatten().any(|events| events > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(members: &Value) -> FailingTarget {
        let mut row = json!({ "scope": "subscription", "topic": "orders", "subscription": "crm",
            "state": "failing" });
        let members = members.as_object().unwrap().clone();
        row.as_object_mut().unwrap().extend(members);
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn next_attempt_without_a_time_is_said_as_far_as_it_is_known() {
        let waiting = |count: u64, at_least: bool| {
            let waiting = json!({ "count": count, "due": count, "atLeast": at_least, "parked": 0, "held": 0 });
            row(&json!({ "waiting": waiting }))
        };
        let delayed =
            json!({ "count": 2, "due": 0, "delayed": 2, "underWay": 0, "parked": 0, "held": 0 });
        let delayed = row(&json!({ "waiting": delayed }));
        let unknown = row(&json!({ "state": "unknown" }));
        for (row, expected) in [
            (waiting(0, false), "with the next event"),
            (waiting(2, false), "now"),
            (delayed, "when a retry is due"),
            (waiting(2, true), "not known"),
            (row(&json!({})), "not known"),
            (unknown, "not known"),
        ] {
            let cell = next_cell(&row, Timestamp::EPOCH).into_string();
            assert_eq!(cell, expected, "{row:?}");
        }
    }

    #[test]
    fn minutes_are_said_until_they_are_an_hour() {
        let from = Timestamp::from_millis(600_000);
        let check = |seconds: u64, minutes| {
            let now = Timestamp::from_millis(600_000 + seconds * 1_000);
            assert_eq!(minutes_counted(from, now), minutes, "{seconds}");
        };
        check(0, Some(1));
        check(61, Some(2));
        check(3_540, Some(59));
        check(3_541, None);
    }

    #[test]
    fn row_says_who_is_told_as_far_as_it_is_known() {
        let ops = json!(["ops", "pager"]);
        for (members, expected) in [
            (json!({}), Some("nobody is told</a>")),
            (
                json!({ "noticesTopics": ops }),
                Some("notices go</a> to ops, pager"),
            ),
            (
                json!({ "noticesTopics": ops, "told": false }),
                Some("notices go</a> to ops, pager"),
            ),
            (
                json!({ "noticesTopics": ops, "told": true }),
                Some("notice sent</a> to ops, pager"),
            ),
            (json!({ "state": "paused" }), None),
            (json!({ "state": "unknown" }), None),
            (json!({ "topic": null, "subscription": null }), None),
        ] {
            let told = told_text(&row(&members)).map(Markup::into_string);
            let told = told
                .as_deref()
                .map(|told| told.split_once("\">").unwrap().1);
            assert_eq!(told, expected, "{members}");
        }
    }
}
