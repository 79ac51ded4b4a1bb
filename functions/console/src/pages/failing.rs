//! The whole list of what fails now: every subscription whose events do not arrive, and what
//! answers slowly.

mod row_buttons;
mod search;
mod slow;
mod table;

use axum::response::Redirect;
use axum::routing::get;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::{FailingView, LinksView};

use self::search::FailingSearch;
pub(crate) use self::table::{FailingTable, what_is_missing};
use crate::address::page_path;
use crate::api::{ApiRefusal, RequestTarget};
use crate::console::{PageContext, PageRoutes};
use crate::display::number;
use crate::extract::PageQuery;
use crate::filters::pager;
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::parts::DoneNoticeQuery;
use crate::visit::PageVisit;

/// The notices of actions that lead back to a table of what fails.
pub(crate) const NOTICES: [(&str, &str); 5] = [
    (
        "pause",
        "The subscription is paused: its events wait until it is resumed.",
    ),
    (
        "resume",
        "The subscription is resumed, and tried again now.",
    ),
    ("no-hold", "Nothing kept its events back."),
    (
        "hold-ended",
        "It is tried again now, and so are others whose endpoint has the same scheme, host and port.",
    ),
    (
        "forced",
        "Events that wait go out within a minute, little by little at first.",
    ),
];

/// The routes of the page, also under its former name.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/failing", get(show_page))
        .route("/links", get(redirect_from_former_page))
}

async fn redirect_from_former_page() -> Redirect {
    Redirect::to(&page_path(&["failing"]))
}

/// The page.
async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(search): PageQuery<FailingSearch>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    // Only AWS has a slow lane, and it has no history.
    let has_slow_lane = pages.history.is_none();
    let slow = async {
        if has_slow_lane {
            pages.api.get(RequestTarget::new(&["links"])).await
        } else {
            Ok(LinksView::default())
        }
    };
    let failing = pages.api.get::<FailingView>(search.request_target());
    let (view, slow) = join(failing, slow).await;
    let view = view?;
    let back = search.page_address(search.cursor()).to_string();
    let table = FailingTable {
        view: &view,
        visit: &visit,
        back: &back,
        state: search.state(),
    };
    let body = html! {
        (done.notice(visit.now, &NOTICES))
        @if !view.failing.is_empty() || search.is_narrow() { (search.filter_form()) }
        section #failing data-live {
            @if view.failing.is_empty() {
                p.empty { (nothing_text(&search, &view)) }
            } @else {
                (count_line(&view))
                (table.render())
            }
            (what_is_missing(&view))
            (slow_part(&slow))
        }
        (pager(search.cursor().map(|_| search.page_address(None)), view.cursor.as_deref().map(|next| search.page_address(Some(next)))))
    };
    Ok(ConsolePage::new("Failing now", body).in_section(MenuSection::Failing))
}

fn nothing_text(search: &FailingSearch, view: &FailingView) -> &'static str {
    if search.cursor().is_some() {
        "There are no more rows."
    } else if search.is_narrow() {
        "No subscription is like this. Change the filters."
    } else {
        nothing_fails_text(view)
    }
}

/// The sentence where nothing is known to fail: all is well only if everything was read.
pub(crate) fn nothing_fails_text(view: &FailingView) -> &'static str {
    if view.left_out.is_empty() && !view.truncated {
        "Nothing fails: the events of every subscription arrive."
    } else {
        "Nothing is known to fail, but not everything could be read."
    }
}

/// The number of rows that are known to fail.
pub(crate) fn count_failing(view: &FailingView) -> u64 {
    let others = [view.stopped, view.recovering, view.unknown];
    others.into_iter().fold(view.total, u64::saturating_sub)
}

/// The number of rows in a sentence.
fn count_line(view: &FailingView) -> Markup {
    html! {
        p {
            (number(count_failing(view))) " failing, " (number(view.recovering)) " recovering, "
            (number(view.stopped)) " stopped while events wait or are missed"
            @if view.unknown > 0 { ", " (number(view.unknown)) " not known" }
            "."
        }
    }
}

fn slow_part(slow: &Result<LinksView, ApiRefusal>) -> Markup {
    html! {
        @match slow {
            Ok(view) => (slow::slow_section(&view.slow)),
            Err(_) => p.hint { "What answers slowly cannot be read at the moment." },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_is_well_only_where_everything_was_read() {
        let text = |member: &str, value: serde_json::Value| {
            let mut view = json!({
                "failing": [], "total": 0, "recovering": 0, "stopped": 0,
                "countedAt": "2026-11-30T10:00:00Z",
            });
            view[member] = value;
            nothing_fails_text(&serde_json::from_value(view).unwrap())
        };
        assert!(text("truncated", json!(false)).starts_with("Nothing fails:"));
        for (member, value) in [
            ("truncated", json!(true)),
            ("leftOut", json!(["health"])),
            ("leftOut", json!(["waiting"])),
        ] {
            let text = text(member, value);
            assert!(
                text.starts_with("Nothing is known to fail"),
                "{member}: {text}"
            );
        }
    }
}
