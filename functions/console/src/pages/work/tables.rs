//! The tables of what is under way.

use std::cmp::Reverse;

use maud::{Markup, html};
use posthaste_core::api::{
    LetterWorkPage, LetterWorkView, RecoveryView, ReplayPage, ReplayState, ReplayView,
};

use super::display::{action_title, is_open, state_badge};
use super::speed::speed_text;
use crate::address::{PageAddress, page_path};
use crate::console::PATH;
use crate::display::{foreign_text, number, relative_time};
use crate::page::form_token;
use crate::pages::known_topic::subscription_link;
use crate::pages::replays::display::{state_badge as replay_badge, target_link};
use crate::parts::back_field;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

const REPLAY_COLUMNS: [TableColumn; 6] = [
    Text("Replay"),
    Text("Topic and subscription"),
    Text("State"),
    Text("So far"),
    Text("Began"),
    Text("Action"),
];

const RECOVERY_COLUMNS: [TableColumn; 5] = [
    Text("Topic and subscription"),
    Text("State"),
    Text("So far"),
    Text("Outage since"),
    Text("Action"),
];

const LETTER_COLUMNS: [TableColumn; 6] = [
    Text("Work"),
    Text("Topic and subscription"),
    Text("State"),
    Text("So far"),
    Text("Began"),
    Text("Action"),
];

/// Replays that have not ended.
pub(super) fn replay_table(page: &ReplayPage, visit: &PageVisit) -> Markup {
    let rows = page.replays.iter().map(|replay| replay_row(replay, visit));
    html! {
        @if page.replays.is_empty() {
            p.empty { "No replay is under way. " a href={ (PATH) "/dead-letters" } { "Choose dead letters" } " to send them again." }
        } @else {
            (data_table("Replays under way", &REPLAY_COLUMNS, rows))
        }
        @if page.cursor.is_some() {
            p.hint {
                "There may be more. "
                a href=(PageAddress::new(&["replays"]).query("active", Some(true))) { "All that have not ended" }
            }
        }
    }
}

fn replay_row(replay: &ReplayView, visit: &PageVisit) -> [Markup; 6] {
    let failed = replay.failed;
    let speed = speed_text(replay.queued, replay.created_at.0, replay.updated_at.0);
    let can_be_cancelled = matches!(replay.state, ReplayState::Running | ReplayState::Waiting);
    [
        html! { a href=(PageAddress::new(&["replays", &replay.id])) { (foreign_text(&replay.id)) } },
        target_link(replay),
        replay_badge(replay),
        html! {
            (number(replay.queued)) " of " (number(replay.found)) " found queued"
            @if failed > 0 { ", " (number(failed)) " failed" }
            @if let Some(speed) = speed { ", " (speed) }
        },
        relative_time(replay.created_at.0, visit.now),
        html! {
            @if can_be_cancelled {
                (cancel_button(visit, &["replays", &replay.id, "cancel"], &format!("Cancel the replay {}", replay.id)))
            }
        },
    ]
}

/// Dead letters of outages that are sent again by themselves.
pub(super) fn recovery_table(recoveries: &[RecoveryView], visit: &PageVisit) -> Markup {
    let rows = recoveries.iter().map(|it| recovery_row(it, visit));
    html! {
        @if recoveries.is_empty() {
            p.empty { "No outage is being recovered from." }
        } @else {
            (data_table("Recoveries by themselves", &RECOVERY_COLUMNS, rows))
        }
    }
}

fn recovery_row(recovery: &RecoveryView, visit: &PageVisit) -> [Markup; 5] {
    let topic = recovery.topic.as_str();
    let name = recovery.subscription.as_str();
    let is_sending = recovery.since.is_some() && !recovery.waits;
    [
        subscription_link(topic, name, false),
        html! {
            @if is_sending {
                span.badge.good { "running" }
            } @else {
                span.badge.warn { "waiting" } " " span.hint { "until the endpoint has been well for some minutes" }
            }
        },
        html! { (number(recovery.queued)) " of about " (number(recovery.letters)) " queued" },
        relative_time(recovery.outage_since.0, visit.now),
        html! {
            @if let Some(replay) = &recovery.replay {
                a href=(PageAddress::new(&["replays", replay])) { "Open" }
                (cancel_button(visit, &["replays", replay, "cancel"], &format!("Cancel the recovery of {topic} / {name}")))
            }
        },
    ]
}

/// Dead letters that are being resolved or deleted, and those of the last day: what is under way first,
/// and the newest first.
pub(super) fn letter_work_table(
    page: &LetterWorkPage,
    rows_max: usize,
    visit: &PageVisit,
) -> Markup {
    let mut work: Vec<_> = page.work.iter().collect();
    work.sort_by_key(|work| (!is_open(work), Reverse(work.began_at)));
    let rows = work.iter().take(rows_max);
    let rows = rows.map(|work| letter_work_row(work, visit));
    let more = work.len().saturating_sub(rows_max);
    html! {
        @if work.is_empty() {
            p.empty { "No dead letters are being resolved or deleted." }
        } @else {
            (data_table("Resolved or deleted dead letters", &LETTER_COLUMNS, rows))
            p.hint { "What has ended stays here for a day if it took long." }
        }
        @if page.cursor.is_some() {
            p.hint { "There is more than is shown, and it was not all read: newer work may be missing here." }
        } @else if more > 0 {
            p.hint { "And " (number(more as u64)) " more, which are older or have ended." }
        }
    }
}

fn letter_work_row(work: &LetterWorkView, visit: &PageVisit) -> [Markup; 6] {
    let title = action_title(work.action);
    let topic = work.topic.as_str();
    let name = work.subscription.as_str();
    [
        html! { a href=(PageAddress::new(&["work", &work.id])) { (title) } },
        subscription_link(topic, name, false),
        state_badge(work.state),
        html! {
            (number(work.events)) " dead letters"
            @if work.failed > 0 { ", " (number(work.failed)) " cannot be read" }
        },
        relative_time(work.began_at.0, visit.now),
        html! {
            @if is_open(work) {
                (cancel_button(visit, &["work", &work.id, "cancel"], &format!("Cancel: {title} dead letters of {topic} / {name}")))
            }
        },
    ]
}

/// The button that cancels one of the rows, and leads back here.
fn cancel_button(visit: &PageVisit, action: &[&str], label: &str) -> Markup {
    html! {
        form method="post" action=(PageAddress::new(action)) {
            (form_token(&visit.form_token))
            (back_field(&page_path(&["work"])))
            button.danger type="submit" aria-label=(label) { "Cancel" }
        }
    }
}
