//! The audit trail: who changed what.

use axum::http::StatusCode;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::{
    AuditActor, AuditDoor, AuditEntry, AuditOutcome, AuditPage, MemberChange,
};
use serde::Deserialize;

use super::topic_names::TopicNames;
use crate::address::{self, Address};
use crate::api::{Api, Refusal, Target};
use crate::asked::Query;
use crate::console::Pages;
use crate::filters::{Field, ROWS_MAX, TIME_EXAMPLE, pager_of, refused};
use crate::page::{Answer, Page, Section};
use crate::shown::{CELL_CHARS_MAX, foreign_cut, number, time};
use crate::table::Column::{self, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [Column; 6] = [
    Text("Time"),
    Text("Who"),
    Text("From"),
    Text("What"),
    Text("Outcome"),
    Text("Before and after"),
];

/// The fields of the form that the API may refuse.
const FIELDS: [&str; 3] = ["topic", "from", "to"];

/// Most changes of one entry that the page shows: a topic with many subscriptions may have
/// thousands.
const CHANGES_SHOWN_MAX: usize = 20;

/// Most characters of a change.
const CHANGE_CHARS_MAX: usize = 200;

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AuditAsked {
    topic: Option<String>,
    from: Option<String>,
    to: Option<String>,
    cursor: Option<String>,
}

/// The page, the newest change first.
pub(crate) async fn audit(pages: Pages, Query(asked): Query<AuditAsked>) -> Answer {
    let (topics, found) = join(TopicNames::ask(&pages.api), asked.entries(&pages.api)).await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let body = html! {
        (asked.form(&topics, refusal))
        @if let Some(refusal) = refusal { (refused(refusal, &FIELDS)) }
        section aria-label="Changes" {
            @if let Ok(page) = &found { (asked.rows(page)) }
        }
        @if let Ok(page) = &found {
            (pager_of(&asked.address(), asked.cursor.as_deref(), page.cursor.as_deref()))
        }
        p.hint { "Changes of the last 180 days. A key is shown by its tag, and secrets by masks." }
    };
    let status = refusal.map_or(StatusCode::OK, Refusal::status);
    Ok(Page::new("Who changed what", body)
        .of(Section::Audit)
        .with_status(status))
}

impl AuditAsked {
    async fn entries(&self, api: &Api) -> Result<AuditPage, Refusal> {
        let target = Target::new(&["audit"]).query("limit", Some(ROWS_MAX));
        let target = self
            .filters()
            .into_iter()
            .fold(target, |target, (name, value)| target.query(name, value));
        api.get(target.query("cursor", self.cursor.as_deref()))
            .await
    }

    /// The address of the first page.
    fn address(&self) -> Address {
        let list = Address::new(&["audit"]);
        self.filters()
            .into_iter()
            .fold(list, |list, (name, value)| list.query(name, value))
    }

    fn filters(&self) -> [(&'static str, Option<&str>); 3] {
        let values = [&self.topic, &self.from, &self.to];
        std::array::from_fn(|at| (FIELDS[at], values[at].as_deref()))
    }

    fn form(&self, topics: &TopicNames, refusal: Option<&Refusal>) -> Markup {
        let field = |name, label, value| Field {
            name,
            label,
            value,
            example: TIME_EXAMPLE,
            refusal,
        };
        html! {
            form.filters method="get" action=(Address::new(&["audit"])) {
                (topics.field("(any topic)", self.topic.as_deref(), refusal))
                (field("from", "From (UTC)", self.from.as_deref()).text())
                (field("to", "To (UTC)", self.to.as_deref()).text())
                div { button.primary type="submit" { "Search" } }
            }
        }
    }

    fn rows(&self, page: &AuditPage) -> Markup {
        html! {
            @if page.entries.is_empty() {
                p.empty {
                    @if page.cursor.is_some() {
                        "No change was found so far. The next page searches further back."
                    } @else if self.cursor.is_some() {
                        "There are no more changes. Go back to the first page."
                    } @else if self.filters().iter().any(|(_, value)| value.is_some()) {
                        "No change has these values. Leave a filter out to see more."
                    } @else {
                        "Nothing was changed yet."
                    }
                }
            } @else {
                (table("Changes, the newest first", &COLUMNS, page.entries.iter().map(row)))
            }
        }
    }
}

fn row(entry: &AuditEntry) -> Markup {
    html! {
        tr {
            td { (time(entry.at.0)) }
            td { (who(entry)) }
            td { (from(entry)) }
            td { (what(entry)) }
            td { (outcome(entry)) }
            td { (changes(entry)) }
        }
    }
}

fn who(entry: &AuditEntry) -> Markup {
    let name = match entry.actor {
        AuditActor::AdminKey => "admin key",
        AuditActor::Endpoint => "endpoint",
        AuditActor::Posthaste => "posthaste",
        AuditActor::Unknown => "unknown",
    };
    html! {
        (name)
        @if let Some(key) = &entry.key { " " code { (foreign_cut(key, CELL_CHARS_MAX)) } }
    }
}

fn from(entry: &AuditEntry) -> Markup {
    let door = match entry.via {
        Some(AuditDoor::Api) => "API",
        Some(AuditDoor::Cli) => "command line",
        Some(AuditDoor::Console) => "console",
        Some(AuditDoor::Unknown) | None => "",
    };
    html! {
        (door)
        @if let Some(address) = entry.address { br; span.hint { (address) } }
    }
}

/// The operation, and what it was on.
fn what(entry: &AuditEntry) -> Markup {
    html! {
        (entry.action)
        @if let Some(topic) = &entry.topic {
            br;
            @match &entry.subscription {
                Some(name) => {
                    a href=(address::subscription(topic.as_str(), name.as_str(), &[])) {
                        (topic) " / " (name)
                    }
                }
                None => { a href=(Address::topic(topic.as_str())) { (topic) } }
            }
        }
        @if let Some(target) = entry.target.as_deref().filter(|target| !target.is_empty()) {
            br;
            span.hint { (foreign_cut(target, CELL_CHARS_MAX)) }
        }
    }
}

fn outcome(entry: &AuditEntry) -> Markup {
    let (class, word) = match entry.outcome {
        AuditOutcome::Begun => ("warn", "begun, end not known"),
        AuditOutcome::Done => ("good", "done"),
        AuditOutcome::Refused => ("", "refused"),
        AuditOutcome::Failed => ("bad", "failed"),
        AuditOutcome::Unknown => ("", "unknown"),
    };
    html! {
        span class={ "badge " (class) } { (word) }
        @if let Some(detail) = &entry.detail {
            br;
            span.hint { (foreign_cut(detail, CHANGE_CHARS_MAX)) }
        }
        @if let Some(count) = entry.count {
            br;
            span.hint { (number(count)) " in the hour from then" }
        }
    }
}

fn changes(entry: &AuditEntry) -> Markup {
    let hidden = entry.changes.len().saturating_sub(CHANGES_SHOWN_MAX);
    let hidden = entry
        .changes_left_out
        .saturating_add(u64::try_from(hidden).unwrap_or(u64::MAX));
    html! {
        @for change in entry.changes.iter().take(CHANGES_SHOWN_MAX) { (line(change)) }
        @if hidden > 0 { p.hint { "and " (number(hidden)) " more" } }
    }
}

fn line(change: &MemberChange) -> Markup {
    html! { div { (foreign_cut(&change.to_string(), CHANGE_CHARS_MAX)) } }
}
