//! The table of what fails: who, since when, why, how much waits, and what can be pressed.

use maud::{Markup, html};
use posthaste_core::api::{
    FailingPart, FailingState, FailingTarget, FailingView, LinkScope, LinkState,
};
use posthaste_core::health::HealthState;
use posthaste_core::model::Timestamp;

use super::row_buttons::row_actions;
use crate::address::{PageAddress, subscription_path};
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
    Number("Arrived in the last hour"),
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
            target_cell(row),
            state_cell(row, now),
            answer_cell(row, now),
            share_cell(row),
            waiting_cell(row, now),
            next_cell(row, now),
            row_actions(row, self.visit, self.back),
        ]
    }
}

/// What the API could not read or count, if there is anything.
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
            p.hint { "More than 1,000 subscriptions may fail; the first 1,000 were looked at." }
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

fn target_cell(row: &FailingTarget) -> Markup {
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
        @if let (Some(link), true) = (&row.link, row.others > 0) {
            br;
            a href=(PageAddress::new(&["failing"]).query("name", Some(link))) {
                "and " (number(row.others)) " more on this host"
            }
        }
    }
}

fn state_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    let word = state_word(row.state);
    html! {
        (word.badge())
        @if row.state == FailingState::Unknown { br; span.hint { (word.meaning) } }
        @if let Some(since) = row.since { br; (relative_time(since.0, now)) }
    }
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

fn share_cell(row: &FailingTarget) -> Markup {
    html! {
        @match row.hour {
            Some(hour) => {
                (hour.arrived_percent()) " %"
                br;
                span.hint { (number(hour.arrived.into())) " of " (number(hour.tried.into())) }
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
                    br; span.hint { "oldest " (relative_time(oldest.0, now)) }
                }
            }
            None => "–",
        }
    }
}

fn next_cell(row: &FailingTarget, now: Timestamp) -> Markup {
    html! {
        @match row.next_attempt_at {
            Some(next) if next.0 > now => (relative_time(next.0, now)),
            Some(_) => "now",
            None if row.state == FailingState::Recovering => "little by little",
            None if row.state.is_stopped() => "none while it is stopped",
            None => "with the next event",
        }
    }
}
