//! Long work: replays, recoveries by themselves, and dead letters that are being resolved or
//! deleted, each with what it has done so far.

mod display;
mod letter_work;
pub(crate) mod speed;
mod tables;

use axum::routing::{get, post};
use futures_util::future::join3;
use maud::{Markup, html};
use posthaste_core::api::{DeadLetterPage, LetterWorkPage, ReplayPage};

use self::display::DONE;
use self::letter_work::{cancel, show_letter_work};
use self::tables::{letter_work_table, recovery_table, replay_table};
use crate::address::PageAddress;
use crate::api::{ApiRefusal, RequestTarget};
use crate::console::{PageContext, PageRoutes};
use crate::display::foreign_text;
use crate::extract::PageQuery;
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::parts::DoneNoticeQuery;
use crate::visit::PageVisit;

/// Most rows of each part, so that the three of them stay within 100 KB.
const PART_ROWS_MAX: usize = 20;

/// Most work with dead letters that is read for the first rows: the API has it in no order that says
/// which is new.
const LETTER_WORK_READ_MAX: usize = 200;

/// The routes of what is long.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/work", get(show_page))
        .route("/work/{id}", get(show_letter_work))
        .route("/work/{id}/cancel", post(cancel))
}

/// The page with all that is under way. What cannot be read is said, and hides no other.
async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let replays = RequestTarget::new(&["replays"])
        .query("active", Some(true))
        .query("newestFirst", Some(true))
        .query("limit", Some(PART_ROWS_MAX));
    let letters =
        RequestTarget::new(&["dead-letters", "work"]).query("limit", Some(LETTER_WORK_READ_MAX));
    // The first page of all dead letters tells of recoveries.
    let recoveries = RequestTarget::new(&["dead-letters"]).query("limit", Some(1));
    let (replays, letters, recoveries) = join3(
        pages.api.get::<ReplayPage>(replays),
        pages.api.get::<LetterWorkPage>(letters),
        pages.api.get::<DeadLetterPage>(recoveries),
    )
    .await;
    let all_replays = PageAddress::new(&["replays"]);
    let body = html! {
        (done.notice(visit.now, &DONE))
        section #work data-live aria-label="Work" {
            h2 { "Replays" }
            (loaded_part(replays.as_ref(), |page| replay_table(page, &visit)))
            h2 { "Recoveries by themselves" }
            (loaded_part(recoveries.as_ref(), |page| recovery_table(&page.recoveries, &visit)))
            h2 { "Resolved or deleted dead letters" }
            (loaded_part(letters.as_ref(), |page| letter_work_table(page, PART_ROWS_MAX, &visit)))
        }
        p.hint {
            "You may leave any of these: it goes on without a page. "
            a href=(all_replays) { "All replays of the last 30 days" }
        }
    };
    Ok(ConsolePage::new("Work", body).in_section(MenuSection::Work))
}

/// A part of the page, or the reason why it is not there.
fn loaded_part<T>(loaded: Result<&T, &ApiRefusal>, show: impl FnOnce(&T) -> Markup) -> Markup {
    match loaded {
        Ok(loaded) => show(loaded),
        Err(refusal) => {
            let reason = refusal.detail.as_deref().unwrap_or(&refusal.title);
            html! { p.problem { "This cannot be read now: " (foreign_text(reason)) } }
        }
    }
}
