//! The figures of the overview, each with the page that says more.

use maud::{Markup, html};
use posthaste_core::api::{LinkState, PressureView};
use posthaste_core::pressure::Resource;

use super::data::OverviewData;
use crate::chart::ChartUnit;
use crate::console::PATH;
use crate::display::number;
use crate::history::StepCounts;
use crate::pages::links::is_down;
use crate::pages::pressure::{level_badge, tier_names, wait_text};
use crate::recent::RecentHistory;
use crate::words::RESPONSE_TIME;

/// The tiles.
pub(super) struct OverviewTiles<'a> {
    pub(super) data: &'a OverviewData,
    pub(super) recent: Option<&'a RecentHistory>,
}

impl OverviewTiles<'_> {
    pub(super) fn render(&self) -> Markup {
        html! {
            div.tiles {
                @if let Some(recent) = self.recent {
                    (deliveries_tile(recent)) (success_tile(recent)) (response_time_tile(recent))
                }
                (self.waiting_tile())
                @if let Some(recent) = self.recent { (dead_letters_tile(recent)) }
                (self.links_tile())
                (self.pressure_tile())
                (self.replays_tile())
            }
        }
    }

    fn waiting_tile(&self) -> Markup {
        let Some(waiting) = self.recent.and_then(|recent| recent.now.waiting) else {
            // Without a history, the queue's own count is the least that waits.
            let due = self.data.pressure.as_ref().ok().and_then(queue_count);
            let hint = html! { "messages are due in the queue, of one event or more" };
            return render_tile("Waiting", "/links", &figure_or_dash(due), &hint);
        };
        let more = if waiting.is_partial { " or more" } else { "" };
        let total = figure_or_dash(Some(format!("{}{more}", number(waiting.total()))));
        let [due, later, held] = [waiting.due, waiting.later, waiting.held].map(u64::from);
        let hint = html! {
            "events: " (number(due)) " due or under way, " (number(later)) " for a retry, "
            (number(held)) " held"
        };
        render_tile("Waiting", "/links", &total, &hint)
    }

    fn links_tile(&self) -> Markup {
        let Ok(view) = &self.data.links else {
            return unread_tile("Links down", "/links");
        };
        let down = view.links.iter().filter(|link| is_down(link)).count();
        let more = if view.truncated { " or more" } else { "" };
        let figure = html! { span.bad[down > 0] { (number(down as u64)) (more) } };
        let recovering = view
            .links
            .iter()
            .filter(|link| link.state == LinkState::Recovering)
            .count();
        render_tile(
            "Links down",
            "/links",
            &figure,
            &links_hint(down, recovering),
        )
    }

    fn pressure_tile(&self) -> Markup {
        let Ok(view) = &self.data.pressure else {
            return unread_tile("Pressure", "/pressure");
        };
        let hint = html! {
            @if view.tarpit.0.is_zero() { "producers do not wait" } @else {
                "the tarpit makes producers wait " (wait_text(view.tarpit))
            }
            @if !view.refused_tiers.is_empty() { "; refused: " (tier_names(&view.refused_tiers)) }
        };
        render_tile("Pressure", "/pressure", &level_badge(view.level), &hint)
    }

    fn replays_tile(&self) -> Markup {
        let Ok(page) = &self.data.replays else {
            return unread_tile("Replays", "/replays");
        };
        let more = if page.cursor.is_some() {
            " or more"
        } else {
            ""
        };
        let figure = html! { (number(page.replays.len() as u64)) (more) };
        render_tile("Replays", "/replays", &figure, &html! { "under way" })
    }
}

fn links_hint(down: usize, recovering: usize) -> Markup {
    let recovering = (recovering > 0).then(|| format!("{} recovering", number(recovering as u64)));
    html! {
        @match (down, recovering) {
            (0, None) => "every link answers",
            (0, Some(recovering)) => (recovering),
            (_, None) => "requests to them pause",
            (_, Some(recovering)) => { "requests to them pause; " (recovering) }
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

fn deliveries_tile(recent: &RecentHistory) -> Markup {
    let minute = &recent.minute;
    let rate = minute
        .per_second(minute.counts.delivered)
        .map(|rate| ChartUnit::PerSecond.format_value(rate));
    let hint =
        html! { (number(recent.total.counts.delivered.into())) " in " (recent.window.in_words()) };
    render_tile("Deliveries", "/events", &figure_or_dash(rate), &hint)
}

fn success_tile(recent: &RecentHistory) -> Markup {
    let StepCounts {
        delivered, failed, ..
    } = recent.total.counts;
    let share = recent
        .total
        .success_percent()
        .map(|share| ChartUnit::Percent.format_value(share));
    let all = u64::from(delivered) + u64::from(failed);
    let hint = html! { (number(failed.into())) " of " (number(all)) " sent events failed" };
    render_tile(
        "Success",
        "/events?result=retry",
        &figure_or_dash(share),
        &hint,
    )
}

fn response_time_tile(recent: &RecentHistory) -> Markup {
    let answers = &recent.total.counts.answers;
    let [p50, p99] = [0.5, 0.99].map(|share| {
        answers
            .percentile(share)
            .map(|ms| ChartUnit::Millis.format_value(ms))
    });
    let hint = html! {
        @if let Some(p99) = p99 { "p50 of the answers; p99 is " (p99) }
        @else { "no answer in " (recent.window.in_words()) }
    };
    render_tile(RESPONSE_TIME, "/events", &figure_or_dash(p50), &hint)
}

fn dead_letters_tile(recent: &RecentHistory) -> Markup {
    let written = recent.total.counts.dead_lettered;
    let figure = html! { span.bad[written > 0] { (number(written.into())) } };
    render_tile(
        "Dead letters",
        "/dead-letters",
        &figure,
        &html! { "in " (recent.window.in_words()) },
    )
}

fn figure_or_dash(text: Option<String>) -> Markup {
    html! { @if let Some(text) = text { (text) } @else { "–" } }
}

fn unread_tile(title: &str, path: &str) -> Markup {
    render_tile(
        title,
        path,
        &figure_or_dash(None),
        &html! { "cannot be read at the moment" },
    )
}

fn render_tile(title: &str, path: &str, figure: &Markup, hint: &Markup) -> Markup {
    html! {
        div.tile {
            h2 { a href={ (PATH) (path) } { (title) } }
            p.figure { (figure) }
            p.hint { (hint) }
        }
    }
}
