//! The page of who is signed in.

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_core::stored::{ConsoleSessions, OpenSession};

use crate::address::PageAddress;
use crate::console::PATH;
use crate::display::{number, relative_time, time_tag};
use crate::page::{ConsolePage, MenuSection};
use crate::parts::{DoneNoticeQuery, button_form};
use crate::session::ConsoleSession;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

/// Most sessions that the page shows, the newest. All 200 that can be open would make it too long.
const SHOWN_MAX: usize = 100;

/// The words of notices: the session was ended just now, or was not open any more.
pub(crate) const ENDED: &str = "ended";
pub(crate) const ENDED_BEFORE: &str = "ended-before";

/// The texts of the notices.
const NOTICES: [(&str, &str); 2] = [
    (
        ENDED,
        "The session has ended. Its browser is signed out within 5 seconds.",
    ),
    (ENDED_BEFORE, "No such session was open any more."),
];

/// The columns.
const COLUMNS: [TableColumn; 5] = [
    Text("Session"),
    Text("Signed in"),
    Text("Until"),
    Text("From"),
    Text("End"),
];

/// The page, the newest sign-in first. Sessions of a former key are worth nothing and are left out.
pub(crate) fn render_page(
    visit: &PageVisit,
    list: &ConsoleSessions,
    done: &DoneNoticeQuery,
) -> ConsolePage {
    let key = visit.key.tag();
    let open = list.sessions.iter().rev();
    let open: Vec<_> = open
        .filter(|session| session.key == key && visit.now < session.ends_at)
        .collect();
    let older = open.len().saturating_sub(SHOWN_MAX);
    let rows = open.iter().take(SHOWN_MAX);
    let rows = rows.map(|session| session_row(visit, session));
    let body = html! {
        (done.notice(visit.now, &NOTICES))
        p {
            "All of them have shown the admin key. A session is known by its tag, which the "
            a href=(PageAddress::new(&["audit"])) { "audit trail" }
            " has with each change that was made in it."
        }
        section aria-label="Sessions" {
            (data_table("Sessions, the newest first", &COLUMNS, rows))
            @if older > 0 { p.hint { "and " (number(older as u64)) " that began earlier" } }
        }
        (end_all_form(visit, open.len()))
    };
    ConsolePage::new("Who is signed in", body).in_section(MenuSection::Audit)
}

fn session_row(visit: &PageVisit, session: &OpenSession) -> [Markup; COLUMNS.len()] {
    let is_own = session.id == visit.session.digest();
    let tag = session.id.tag();
    let address = session.address.map(|address| address.to_string());
    [
        html! { code { (tag) } @if is_own { " " span.badge { "this browser" } } },
        relative_time(session.began_at, visit.now),
        time_tag(session.ends_at),
        html! { (address.as_deref().unwrap_or("not known")) },
        end_form(visit, &tag),
    ]
}

fn end_form(visit: &PageVisit, tag: &str) -> Markup {
    let action = PageAddress::new(&["sessions", "end", tag]).to_string();
    html! {
        details {
            summary { "End " (tag) }
            (button_form(visit, &action, "danger", &format!("End session {tag}")))
        }
    }
}

fn end_all_form(visit: &PageVisit, open: usize) -> Markup {
    let action = PageAddress::new(&["sessions", "end"]).to_string();
    let label = match open {
        1 => "End this session".to_owned(),
        open => format!("End all {} sessions", number(open as u64)),
    };
    html! {
        details {
            summary { "Sign out everywhere" }
            p {
                "Every session ends, this one too. Who has the admin key can sign in again: replace the \
                 key if somebody has it who should not."
            }
            (button_form(visit, &action, "danger", &label))
        }
    }
}

/// The page of a browser that is signed out, where the end of its session was not written.
pub(crate) fn signed_out_here_page(session: Option<&ConsoleSession>, reason: &str) -> ConsolePage {
    let tag = session.map(|session| session.digest().tag());
    let body = html! {
        p { "This browser is signed out." }
        p { (reason) }
        p {
            "It is not known whether the end of the session "
            @if let Some(tag) = &tag { code { (tag) } " " }
            "was written down: who has a copy of its cookie may still be signed in, until "
            @if let Some(session) = session { (time_tag(session.ends_at)) } @else { "12 hours after the sign-in" }
            " at the latest."
        }
        p {
            "To end it for everybody, sign in again and end "
            @if let Some(tag) = &tag { code { (tag) } } @else { "it" }
            " under Who is signed in."
        }
        p { a.button href={ (PATH) "/sign-in?next=" (PATH) "/sessions" } { "Sign in again" } }
    };
    ConsolePage::new("This browser is signed out", body)
        .signing_out()
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
}

/// The page where the store failed before other sessions were known to have ended.
pub(crate) fn not_ended_page(reason: &str) -> ConsolePage {
    let body = html! {
        p { (reason) }
        p { "What was to end may still be open. If this browser still shows pages, try again." }
        p { a href=(PageAddress::new(&["sessions"])) { "Who is signed in" } }
    };
    ConsolePage::new("Sessions may still be open", body)
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
}
