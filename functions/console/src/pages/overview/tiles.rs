//! The figures of the overview. Each names its time, and leads to the page that continues its
//! sentence.

use maud::{Markup, html};
use posthaste_core::api::{FailingView, PressureView, WaitingView};
use posthaste_core::pressure::Resource;

use super::data::OverviewData;
use crate::address::PageAddress;
use crate::chart::ChartUnit;
use crate::display::number;
use crate::history::StepCounts;
use crate::pages::failing::{count_failing, nothing_fails_text};
use crate::pages::hours::ShownHours;
use crate::pages::pressure::{level_badge, tier_names, wait_text};
use crate::recent::RecentHistory;
use crate::words::{RESPONSE_TIME, WAITING_FOR_RECOVERY};

/// The tiles.
pub(super) struct OverviewTiles<'a> {
    pub(super) data: &'a OverviewData,
    pub(super) recent: Option<&'a RecentHistory>,
    pub(super) hours: ShownHours,
}

impl OverviewTiles<'_> {
    pub(super) fn render(&self) -> Markup {
        html! {
            div.tiles {
                (self.failing_tile())
                (self.waiting_tile())
                @if let Some(recent) = self.recent {
                    (self.dead_letters_tile(recent))
                    (self.deliveries_tile(recent)) (self.success_tile(recent)) (self.response_time_tile(recent))
                }
                (self.pressure_tile())
                (self.replays_tile())
            }
        }
    }

    fn failing_tile(&self) -> Markup {
        let page = PageAddress::new(&["failing"]);
        let Ok(view) = &self.data.failing else {
            return unread_tile("Failing now", &page);
        };
        let failing = count_failing(view);
        let is_bad = failing + view.unknown > 0;
        let more = if view.truncated || !view.left_out.is_empty() {
            " or more"
        } else {
            ""
        };
        let figure = html! { span.bad[is_bad] { (number(failing)) (more) } };
        render_tile("Failing now", &page, &figure, &failing_hint(failing, view))
    }

    fn waiting_tile(&self) -> Markup {
        let page = PageAddress::new(&["failing"]);
        if let Some(waiting) = self.recent.and_then(|recent| recent.now.waiting) {
            let more = if waiting.is_partial { " or more" } else { "" };
            let total = html! { (number(waiting.total())) (more) };
            let [due, later, held] = [waiting.due, waiting.later, waiting.held].map(u64::from);
            let hint = html! {
                "events: " (number(due)) " due or under way, " (number(later)) " for a retry, "
                (number(held)) " " (WAITING_FOR_RECOVERY)
            };
            return render_tile("Waiting now", &page, &total, &hint);
        }
        let counted = self.data.failing.as_ref().ok();
        let counted = counted.and_then(|view| view.waiting.as_deref());
        let due = self.data.pressure.as_ref().ok().and_then(queue_count);
        let figure = html! {
            @match counted {
                Some(waiting) => { (number(waiting.count)) @if waiting.at_least { " or more" } },
                None => "–",
            }
        };
        let hint = html! {
            "events" (waiting_hint(counted))
            @if let Some(due) = due { "; messages that are due in the queue: " (due) }
        };
        render_tile("Waiting now", &page, &figure, &hint)
    }

    fn pressure_tile(&self) -> Markup {
        let page = PageAddress::new(&["pressure"]);
        let Ok(view) = &self.data.pressure else {
            return unread_tile("Pressure now", &page);
        };
        let hint = html! {
            @if view.tarpit.0.is_zero() { "producers do not wait" } @else {
                "producers are slowed: they wait " (wait_text(view.tarpit))
            }
            @if !view.refused_tiers.is_empty() { "; refused: " (tier_names(&view.refused_tiers)) }
        };
        render_tile("Pressure now", &page, &level_badge(view.level), &hint)
    }

    fn replays_tile(&self) -> Markup {
        let page = PageAddress::new(&["work"]);
        let Ok(replays) = &self.data.replays else {
            return unread_tile("Replays", &page);
        };
        let more = if replays.cursor.is_some() {
            " or more"
        } else {
            ""
        };
        let figure = html! { (number(replays.replays.len() as u64)) (more) };
        render_tile("Replays", &page, &figure, &html! { "under way now" })
    }

    fn deliveries_tile(&self, recent: &RecentHistory) -> Markup {
        let minute = &recent.minute;
        let rate = minute
            .per_second(minute.counts.delivered)
            .map(|rate| ChartUnit::PerSecond.format_value(rate));
        let hint = html! {
            "in " (recent.window.in_words())
            @if let Some(rate) = rate { "; " (rate) " in the last minute" }
        };
        let figure = html! { (number(recent.total.counts.delivered.into())) };
        let page = self.events_since("delivered");
        render_tile("Delivered", &page, &figure, &hint)
    }

    fn success_tile(&self, recent: &RecentHistory) -> Markup {
        let StepCounts {
            delivered, failed, ..
        } = recent.total.counts;
        let share = recent
            .total
            .success_percent()
            .map(|share| ChartUnit::Percent.format_value(share));
        let all = u64::from(delivered) + u64::from(failed);
        let hint = html! {
            (number(failed.into())) " of " (number(all)) " sent events failed in " (recent.window.in_words())
        };
        let page = self.events_since("retry");
        render_tile("Success", &page, &figure_or_dash(share), &hint)
    }

    fn response_time_tile(&self, recent: &RecentHistory) -> Markup {
        let answers = &recent.total.counts.answers;
        let [p50, p99] = [0.5, 0.99].map(|share| {
            answers
                .percentile(share)
                .map(|ms| ChartUnit::Millis.format_value(ms))
        });
        let hint = html! {
            @if let Some(p99) = p99 { "p50 in " (recent.window.in_words()) "; p99 is " (p99) }
            @else { "no answer in " (recent.window.in_words()) }
        };
        let page = self.events_since("delivered");
        render_tile(RESPONSE_TIME, &page, &figure_or_dash(p50), &hint)
    }

    fn dead_letters_tile(&self, recent: &RecentHistory) -> Markup {
        let written = recent.total.counts.dead_lettered;
        let figure = html! { span.bad[written > 0] { (number(written.into())) } };
        let page = PageAddress::new(&["dead-letters"]);
        let page = page.query("from", Some(self.hours.filter_time()));
        let hint = html! { "in " (recent.window.in_words()) };
        render_tile("Dead letters", &page, &figure, &hint)
    }

    /// The events with this result in the time that is shown.
    fn events_since(&self, result: &str) -> PageAddress {
        PageAddress::new(&["events"])
            .query("result", Some(result))
            .query("from", Some(self.hours.filter_time()))
    }
}

fn failing_hint(failing: u64, view: &FailingView) -> Markup {
    let counts = [
        (view.recovering, "recovering"),
        (view.stopped, "stopped while events wait or are missed"),
        (view.unknown, "not known"),
    ];
    let others: Vec<_> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{} {word}", number(count)))
        .collect();
    html! {
        @if !others.is_empty() { (others.join(", ")) }
        @else if failing > 0 { "subscriptions and hosts" }
        @else { (nothing_fails_text(view)) }
    }
}

/// The age of what waits, where it is known.
fn waiting_hint(waiting: Option<&WaitingView>) -> Markup {
    html! {
        @match waiting {
            Some(waiting) => {
                @if waiting.held > 0 { ", " (number(waiting.held)) " " (WAITING_FOR_RECOVERY) }
            }
            None => ": they could not be counted in time",
        }
    }
}

/// The messages in the queue of submissions, if its count is known.
fn queue_count(view: &PressureView) -> Option<String> {
    let queue = view
        .resources
        .iter()
        .find(|it| it.resource == Resource::SubmissionQueue);
    queue.map(|queue| number(queue.reading))
}

fn figure_or_dash(text: Option<String>) -> Markup {
    html! { @if let Some(text) = text { (text) } @else { "–" } }
}

fn unread_tile(title: &str, page: &PageAddress) -> Markup {
    render_tile(
        title,
        page,
        &figure_or_dash(None),
        &html! { "cannot be read at the moment" },
    )
}

fn render_tile(title: &str, page: &PageAddress, figure: &Markup, hint: &Markup) -> Markup {
    html! {
        div.tile {
            h2 { a href=(page) { (title) } }
            p.figure { (figure) }
            p.hint { (hint) }
        }
    }
}
