//! Dead letters by subscription and reason, with what an operator does about each group.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use futures_util::future::join3;
use maud::{Markup, html};
use posthaste_core::api::{IsoTimestamp, LetterGroupPage, LetterGroupView, LetterStatusCount};

use super::failures::failure_list;
use super::forms::{GROUP_FIELDS, group_filter_form};
use super::notices::DONE;
use super::search::DeadLetterSearch;
use super::send_since::send_since_address;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::PageContext;
use crate::display::{foreign_text, number, relative_time, time_tag};
use crate::extract::PageQuery;
use crate::filters::{
    ROWS_MAX, folded_filters, hidden_fields, load_outage_begin, pager, refusal_note,
};
use crate::page::{ConsolePage, MenuSection, form_token};
use crate::pages::known_topic::subscription_link;
use crate::pages::topic_names::TopicNames;
use crate::parts::DoneNoticeQuery;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

/// The columns.
const COLUMNS: [TableColumn; 6] = [
    Text("Topic and subscription"),
    Text("Reason"),
    Number("Dead letters"),
    Text("Last answers"),
    Text("Newest"),
    Text("Actions"),
];

/// The page of the groups. A reason or a type is a filter of the list alone.
pub(super) async fn show_groups(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(search): PageQuery<DeadLetterSearch>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> Result<Response, ConsolePage> {
    if search.reason.is_some() || search.event_type.is_some() {
        let list = search.page_address(None).to_string();
        return Ok(Redirect::to(&list).into_response());
    }
    let (topics, found, outage_since) = join3(
        TopicNames::load(&pages.api),
        load_groups(&pages.api, &search),
        load_outage_begin(
            &pages.api,
            search.topic.as_deref(),
            search.subscription.as_deref(),
        ),
    )
    .await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let is_open = found.as_ref().map_or(true, |page| page.groups.is_empty());
    let form = group_filter_form(&topics, &search, refusal, outage_since);
    let body = html! {
        (done.notice(visit.now, &DONE))
        (folded_filters(&search.chosen_filters(), is_open, &form))
        @match &found {
            Ok(page) => (group_section(&search, page, &visit)),
            Err(refusal) => (refusal_note(refusal, &GROUP_FIELDS)),
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    let page = ConsolePage::new("Dead letters", body)
        .in_section(MenuSection::DeadLetters)
        .with_status(status);
    Ok(page.into_response())
}

async fn load_groups(
    api: &ManageApi,
    search: &DeadLetterSearch,
) -> Result<LetterGroupPage, ApiRefusal> {
    let target = RequestTarget::new(&["dead-letters", "groups"])
        .query("topic", search.topic.as_deref())
        .query("subscription", search.subscription.as_deref())
        .query("from", search.from.as_deref())
        .query("to", search.to.as_deref())
        .query("includeResolved", search.include_resolved.then_some(true))
        .query("cursor", search.cursor.as_deref());
    api.get(target).await
}

fn group_section(search: &DeadLetterSearch, page: &LetterGroupPage, visit: &PageVisit) -> Markup {
    let shown = &page.groups[..page.groups.len().min(ROWS_MAX)];
    let rows = shown.iter().map(|group| group_row(search, group, visit));
    let next = page.cursor.as_deref();
    html! {
        @for recovery in &page.recoveries { p.hint { (foreign_text(&recovery.summary_line())) "." } }
        @if search.cursor.is_some() {
            p.hint { "Only dead letters that are older than those of the page before are counted here." }
        }
        @if shown.is_empty() {
            (empty_note(search, page))
        } @else {
            (data_table("Dead letters by subscription and reason, the newest first", &COLUMNS, rows))
        }
        @if page.groups.len() > shown.len() {
            p.hint {
                "The " (shown.len()) " groups with the newest dead letters are shown, of "
                (number(page.groups.len() as u64)) ". Choose a topic to see fewer."
            }
        }
        @if let Some(back_to) = page.counted_back_to { (counted_hint(back_to)) }
        (count_pager(search, next))
        @if let Some(note) = &page.note { p.hint { (foreign_text(note)) "." } }
        (failure_list(&page.failures, "What cannot be read"))
        (more_links(search))
    }
}

fn counted_hint(back_to: IsoTimestamp) -> Markup {
    html! {
        p.hint {
            "Counted back to " (time_tag(back_to.0)) ": there are at least as many. Older dead letters are not \
             counted yet."
        }
    }
}

/// The ways to count further back, and to the newest again.
fn count_pager(search: &DeadLetterSearch, next: Option<&str>) -> Markup {
    let first = search.cursor.is_some().then(|| search.groups_address(None));
    html! {
        @if let Some(cursor) = next {
            nav.pager aria-label="Pages" {
                @if let Some(first) = first { a.button href=(first) { "The newest" } }
                a.button href=(search.groups_address(Some(cursor))) rel="next" { "Count further back" }
            }
        } @else {
            (pager(first, None))
        }
    }
}

fn more_links(search: &DeadLetterSearch) -> Markup {
    html! {
        p.actions {
            a.button href=(search.page_address(None)) { "List them one by one" }
            @if let Some((topic, name)) = search.owner() {
                a.button href=(send_since_address(topic, name, search.from.as_deref())) {
                    "Send again since a time"
                }
            }
        }
    }
}

fn empty_note(search: &DeadLetterSearch, page: &LetterGroupPage) -> Markup {
    html! {
        p.empty {
            @if page.cursor.is_some() {
                "No dead letter was found so far. Count further back to see older ones."
            } @else if search.is_narrow() {
                "No dead letter has these values. Leave a filter out to see more."
            } @else {
                "There is no dead letter: no event was given up, or all of them are resolved. \
                 A dead letter appears some minutes after the last attempt."
            }
        }
    }
}

fn group_row(
    search: &DeadLetterSearch,
    group: &LetterGroupView,
    visit: &PageVisit,
) -> [Markup; COLUMNS.len()] {
    let of_group = search.narrowed_to(group);
    let reason = group.reason.map_or("another one", |reason| reason.as_str());
    [
        subscription_link(&group.topic, &group.subscription, group.owner_deleted),
        html! { (reason) },
        html! {
            (number(group.letters))
            @if group.resolved > 0 { " " span.hint { (number(group.resolved)) " resolved" } }
        },
        status_text(&group.statuses),
        relative_time(group.newest_at.0, visit.now),
        group_actions(&of_group, group, visit),
    ]
}

fn status_text(statuses: &[LetterStatusCount]) -> Markup {
    html! {
        @for (at, count) in statuses.iter().enumerate() {
            @if at > 0 { ", " }
            (count.status)
            @if statuses.len() > 1 { " (" (number(count.letters)) ")" }
        }
    }
}

/// The actions on a group. A group without a known reason cannot be selected by it.
fn group_actions(
    of_group: &DeadLetterSearch,
    group: &LetterGroupView,
    visit: &PageVisit,
) -> Markup {
    html! {
        div.actions {
            a.button href=(of_group.page_address(None)) { "Open" }
            @if group.reason.is_some() {
                @if !group.owner_deleted { (group_form(of_group, "replay", "Send again…", &[], visit)) }
                (group_form(of_group, "resolve", "Resolve…", &[("includeFormer", Some("true"))], visit))
            }
        }
    }
}

/// A form that begins with a dry run, and leads back to the groups.
fn group_form(
    of_group: &DeadLetterSearch,
    action: &str,
    label: &str,
    more: &[(&str, Option<&str>)],
    visit: &PageVisit,
) -> Markup {
    html! {
        form method="post" action=(PageAddress::new(&["dead-letters", action])) {
            (form_token(&visit.form_token))
            (hidden_fields(&of_group.hidden_fields()))
            (hidden_fields(more))
            button type="submit" { (label) }
        }
    }
}
