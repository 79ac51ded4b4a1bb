//! The audit trail: who changed what.

use axum::http::StatusCode;
use axum::routing::get;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::{
    AuditActor, AuditDoor, AuditEntry, AuditOutcome, AuditPage, MemberChange,
};
use serde::Deserialize;

use super::topic_names::TopicNames;
use crate::address::{self, PageAddress};
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::{PageContext, PageRoutes};
use crate::display::{CELL_CHARS_MAX, foreign_cut, number, time_tag};
use crate::extract::PageQuery;
use crate::filters::{ROWS_MAX, TimeRangeFields, folded_filters, list_pager, refusal_note};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 6] = [
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
pub(crate) struct AuditPageQuery {
    topic: Option<String>,
    from: Option<String>,
    to: Option<String>,
    cursor: Option<String>,
}

/// The routes of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/audit", get(show_page))
}

/// The page, the newest change first.
async fn show_page(pages: PageContext, PageQuery(asked): PageQuery<AuditPageQuery>) -> PageResult {
    let (topics, found) = join(TopicNames::load(&pages.api), asked.load_entries(&pages.api)).await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let body = html! {
        (folded_filters(&asked.filters(), found.as_ref().map_or(true, |page| page.entries.is_empty()),
            &asked.filter_form(&topics, refusal)))
        @if let Some(refusal) = refusal { (refusal_note(refusal, &FIELDS)) }
        section aria-label="Changes" {
            @if let Ok(page) = &found { (asked.entry_table(page)) }
        }
        @if let Ok(page) = &found {
            (list_pager(&asked.list_address(), asked.cursor.as_deref(), page.cursor.as_deref()))
        }
        p.hint {
            "Changes of the last 180 days. A key is shown by its tag, and secrets by masks. "
            a href=(PageAddress::new(&["sessions"])) { "Who is signed in to the console" }
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    Ok(ConsolePage::new("Who changed what", body)
        .in_section(MenuSection::Audit)
        .with_status(status))
}

impl AuditPageQuery {
    async fn load_entries(&self, api: &ManageApi) -> Result<AuditPage, ApiRefusal> {
        let target = RequestTarget::new(&["audit"]).query("limit", Some(ROWS_MAX));
        let target = self
            .filters()
            .into_iter()
            .fold(target, |target, (name, value)| target.query(name, value));
        api.get(target.query("cursor", self.cursor.as_deref()))
            .await
    }

    /// The address of the first page.
    fn list_address(&self) -> PageAddress {
        let list = PageAddress::new(&["audit"]);
        self.filters()
            .into_iter()
            .fold(list, |list, (name, value)| list.query(name, value))
    }

    fn filters(&self) -> [(&'static str, Option<&str>); 3] {
        let values = [&self.topic, &self.from, &self.to];
        std::array::from_fn(|at| (FIELDS[at], values[at].as_deref()))
    }

    fn filter_form(&self, topics: &TopicNames, refusal: Option<&ApiRefusal>) -> Markup {
        let list = PageAddress::new(&["audit"]).query("topic", self.topic.as_deref());
        let times = TimeRangeFields::new(self.from.as_deref(), self.to.as_deref(), refusal);
        html! {
            form.filters method="get" action=(PageAddress::new(&["audit"])) {
                (topics.topic_field("(any topic)", self.topic.as_deref(), refusal))
                (times.with_presets(list).render())
                div { button.primary type="submit" { "Search" } }
            }
        }
    }

    fn entry_table(&self, page: &AuditPage) -> Markup {
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
                (data_table("Changes, the newest first", &COLUMNS, page.entries.iter().map(entry_cells)))
            }
        }
    }
}

fn entry_cells(entry: &AuditEntry) -> [Markup; 6] {
    [
        time_tag(entry.at.0),
        actor_cell(entry),
        origin_cell(entry),
        action_cell(entry),
        outcome_cell(entry),
        changes_cell(entry),
    ]
}

fn actor_cell(entry: &AuditEntry) -> Markup {
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

fn origin_cell(entry: &AuditEntry) -> Markup {
    let door = match entry.via {
        Some(AuditDoor::Api) => "API",
        Some(AuditDoor::Cli) => "command line",
        Some(AuditDoor::Console) => "console",
        Some(AuditDoor::Unknown) | None => "",
    };
    html! {
        (door)
        @if let Some(session) = &entry.session {
            br;
            span.hint { "session " code { (foreign_cut(session, CELL_CHARS_MAX)) } }
        }
        @if let Some(address) = entry.address { br; span.hint { (address) } }
    }
}

/// The operation, and what it was on.
fn action_cell(entry: &AuditEntry) -> Markup {
    html! {
        (entry.action)
        @if let Some(topic) = &entry.topic {
            br;
            @match &entry.subscription {
                Some(name) => {
                    a href=(address::subscription_path(topic.as_str(), name.as_str(), &[])) {
                        (topic) " / " (name)
                    }
                }
                None => { a href=(PageAddress::for_topic(topic.as_str())) { (topic) } }
            }
        }
        @if let Some(target) = entry.target.as_deref().filter(|target| !target.is_empty()) {
            br;
            span.hint { (foreign_cut(target, CELL_CHARS_MAX)) }
        }
    }
}

fn outcome_cell(entry: &AuditEntry) -> Markup {
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

fn changes_cell(entry: &AuditEntry) -> Markup {
    let hidden = entry.changes.len().saturating_sub(CHANGES_SHOWN_MAX);
    let hidden = entry
        .changes_left_out
        .saturating_add(u64::try_from(hidden).unwrap_or(u64::MAX));
    html! {
        @for change in entry.changes.iter().take(CHANGES_SHOWN_MAX) { (change_line(change)) }
        @if hidden > 0 { p.hint { "and " (number(hidden)) " more" } }
    }
}

fn change_line(change: &MemberChange) -> Markup {
    html! { div { (foreign_cut(&change.to_string(), CHANGE_CHARS_MAX)) } }
}
