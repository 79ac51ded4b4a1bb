//! Whether anything is lost: what is kept where, and the checks that the installation makes of itself.

use axum::routing::get;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::FailingView;
use posthaste_core::api::doctor::{CheckResult, CheckView, DoctorView};

use crate::address::PageAddress;
use crate::api::{ApiRefusal, RequestTarget};
use crate::console::{PATH, PageContext, PageRoutes};
use crate::display::{foreign_text, number, relative_time};
use crate::page::{ConsolePage, MenuSection};
use crate::pages::subscription::waiting::count_in_words;
use crate::parts::fact;
use crate::recent::RecentHistory;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

/// The time over which is counted what was given up.
const HOURS: u32 = 24;

/// Most checks that the page shows.
const CHECKS_MAX: usize = 100;

/// The columns of the checks.
const COLUMNS: [TableColumn; 4] = [
    Text("Check"),
    Text("Result"),
    Text("Found"),
    Text("What to do"),
];

/// The route of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/kept", get(show_page))
}

/// The page. It is not live: its checks look at every store.
async fn show_page(pages: PageContext, visit: PageVisit) -> ConsolePage {
    let recent = pages
        .history
        .as_deref()
        .map(|history| RecentHistory::read(history, HOURS, visit.now));
    let failing = RequestTarget::new(&["failing"]).query("limit", Some(1));
    let (doctor, failing) = join(
        pages.api.get(RequestTarget::new(&["doctor"])),
        pages.api.get(failing),
    )
    .await;
    let body = html! {
        p {
            "An event that was acknowledged is kept until each of its subscriptions has it, or has given it up. What is \
             given up is kept as a dead letter, unless the subscription's settings say otherwise."
        }
        dl.facts {
            (fact("Given up and not kept", &unkept_fact(recent.as_ref())))
            (fact("Given up and kept", &letters_fact(recent.as_ref())))
            (fact("Waiting now", &waiting_fact(failing.as_ref(), &visit)))
        }
        p.hint {
            "Counts from before the start of this server come from the delivery log, which leaves out topics with "
            code { "deliveryLog: off" } "."
        }
        h2 { "Checks" }
        (checks_section(doctor.as_ref()))
    };
    ConsolePage::new("Is anything lost?", body).in_section(MenuSection::Overview)
}

/// The number of events that were dropped or skipped.
fn unkept_fact(recent: Option<&RecentHistory>) -> Markup {
    let Some(recent) = recent else {
        return html! {
            "not counted here: on AWS the metrics " code { "DroppedEventCount" } " and "
            code { "SkippedEventCount" } " in CloudWatch have it"
        };
    };
    let unkept = recent.total.counts.unkept;
    html! {
        span.bad[unkept > 0] { (number(unkept.into())) } " events in " (recent.window.in_words())
        br;
        span.hint {
            "Dropped where a subscription keeps no dead letters for the reason, skipped where there was no more room \
             for those of disabled subscriptions."
        }
    }
}

fn letters_fact(recent: Option<&RecentHistory>) -> Markup {
    let letters = PageAddress::new(&["dead-letters"]).query("from", Some(format!("{HOURS}h")));
    html! {
        @if let Some(recent) = recent {
            (number(recent.total.counts.dead_lettered.into())) " in " (recent.window.in_words()) ": "
        }
        a href=(letters) { "the dead letters of the last " (HOURS) " hours" }
    }
}

fn waiting_fact(failing: Result<&FailingView, &ApiRefusal>, visit: &PageVisit) -> Markup {
    let waiting = failing.ok().and_then(|view| view.waiting.as_deref());
    let Some(waiting) = waiting else {
        return html! { "not known: it could not be counted in time" };
    };
    html! {
        (count_in_words(waiting)) " events"
        @if let Some(oldest) = waiting.oldest_accepted_at {
            ", the oldest accepted " (relative_time(oldest.0, visit.now))
        }
        ": " a href={ (PATH) "/failing" } { "what they wait for" }
    }
}

fn checks_section(doctor: Result<&DoctorView, &ApiRefusal>) -> Markup {
    let Ok(doctor) = doctor else {
        return html! { p.bad { "The checks could not be made. That is not good news." } };
    };
    let bad = doctor
        .checks
        .iter()
        .filter(|check| check.result != CheckResult::Ok)
        .count();
    let all = doctor.checks.len() as u64;
    let shown = doctor.checks.iter().take(CHECKS_MAX).map(check_row);
    html! {
        p role="status" {
            @if bad == 0 { "All " (number(all)) " checks pass." }
            @else { (number(bad as u64)) " of " (number(all)) " checks do not pass." }
        }
        (data_table("Checks", &COLUMNS, shown))
        @if doctor.checks.len() > CHECKS_MAX {
            p.hint { "The first " (CHECKS_MAX) " checks are shown; " code { "posthaste doctor" } " has all." }
        }
        p.hint { "The same as " code { "posthaste doctor" } ", made when this page was opened." }
    }
}

fn check_row(check: &CheckView) -> [Markup; 4] {
    let class = match check.result {
        CheckResult::Ok => "good",
        CheckResult::Warning | CheckResult::Unknown => "warn",
        CheckResult::Failed => "bad",
    };
    [
        html! { (foreign_text(&check.check)) br; span.hint { (foreign_text(&check.of)) } },
        html! { span class={ "badge " (class) } { (check.result.as_str()) } },
        foreign_text(&check.found),
        html! { @if let Some(advice) = &check.advice { (foreign_text(advice)) } },
    ]
}
