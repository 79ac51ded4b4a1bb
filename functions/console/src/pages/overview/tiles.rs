//! The figures of the overview, each with the page that says more.

use maud::{Markup, html};
use posthaste_core::api::{LinkState, PressureView};
use posthaste_core::pressure::Resource;

use super::seen::Seen;
use crate::chart::Unit;
use crate::console::PATH;
use crate::history::Counts;
use crate::pages::links::is_down;
use crate::pages::pressure::{level_badge, tiers, wait};
use crate::recent::Recent;
use crate::shown::number;

/// The tiles.
pub(super) struct Tiles<'a> {
    pub(super) seen: &'a Seen,
    pub(super) recent: Option<&'a Recent>,
}

impl Tiles<'_> {
    pub(super) fn render(&self) -> Markup {
        html! {
            div.tiles {
                @if let Some(recent) = self.recent {
                    (deliveries(recent)) (success(recent)) (answers(recent))
                }
                (self.waiting())
                @if let Some(recent) = self.recent { (dead_letters(recent)) }
                (self.links())
                (self.pressure())
                (self.replays())
            }
        }
    }

    fn waiting(&self) -> Markup {
        let due = |view: &PressureView| {
            let queue = view
                .resources
                .iter()
                .find(|it| it.resource == Resource::SubmissionQueue);
            queue.map(|queue| number(queue.reading))
        };
        let Some(waiting) = self.recent.and_then(|recent| recent.now.waiting) else {
            // Where nobody looks step by step, the queue's own count is the least that waits.
            let due = self.seen.pressure.as_ref().ok().and_then(due);
            let hint = html! { "messages are due in the queue, of one event or more" };
            return tile("Waiting", "/links", &figure(due), &hint);
        };
        let more = if waiting.is_partial { " or more" } else { "" };
        let total = figure(Some(format!("{}{more}", number(waiting.total()))));
        let [due, later, held] = [waiting.due, waiting.later, waiting.held].map(u64::from);
        let hint = html! {
            "events: " (number(due)) " due or under way, " (number(later)) " for a retry, "
            (number(held)) " held"
        };
        tile("Waiting", "/links", &total, &hint)
    }

    fn links(&self) -> Markup {
        let Ok(view) = &self.seen.links else {
            return unread("Links down", "/links");
        };
        let down = view.links.iter().filter(|link| is_down(link)).count();
        let more = if view.truncated { " or more" } else { "" };
        let figure = html! { span.bad[down > 0] { (number(down as u64)) (more) } };
        let recovering = view
            .links
            .iter()
            .filter(|link| link.state == LinkState::Recovering)
            .count();
        tile(
            "Links down",
            "/links",
            &figure,
            &links_hint(down, recovering),
        )
    }

    fn pressure(&self) -> Markup {
        let Ok(view) = &self.seen.pressure else {
            return unread("Pressure", "/pressure");
        };
        let hint = html! {
            @if view.tarpit.0.is_zero() { "producers do not wait" } @else {
                "the tarpit makes producers wait " (wait(view.tarpit))
            }
            @if !view.refused_tiers.is_empty() { "; refused: " (tiers(&view.refused_tiers)) }
        };
        tile("Pressure", "/pressure", &level_badge(view.level), &hint)
    }

    fn replays(&self) -> Markup {
        let Ok(page) = &self.seen.replays else {
            return unread("Replays", "/replays");
        };
        let more = if page.cursor.is_some() {
            " or more"
        } else {
            ""
        };
        let figure = html! { (number(page.replays.len() as u64)) (more) };
        tile("Replays", "/replays", &figure, &html! { "under way" })
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

fn deliveries(recent: &Recent) -> Markup {
    let minute = &recent.minute;
    let rate = minute
        .rate(minute.counts.delivered)
        .map(|rate| Unit::PerSecond.text(rate));
    let hint =
        html! { (number(recent.total.counts.delivered.into())) " in " (recent.window.words()) };
    tile("Deliveries", "/events", &figure(rate), &hint)
}

fn success(recent: &Recent) -> Markup {
    let Counts {
        delivered, failed, ..
    } = recent.total.counts;
    let share = recent
        .total
        .success_percent()
        .map(|share| Unit::Percent.text(share));
    let all = u64::from(delivered) + u64::from(failed);
    let hint = html! { (number(failed.into())) " of " (number(all)) " sent events failed" };
    tile("Success", "/events?result=retry", &figure(share), &hint)
}

fn answers(recent: &Recent) -> Markup {
    let answers = &recent.total.counts.answers;
    let [p50, p99] =
        [0.5, 0.99].map(|share| answers.percentile(share).map(|ms| Unit::Millis.text(ms)));
    let hint = html! {
        @if let Some(p99) = p99 { "p50 of the answers; p99 is " (p99) }
        @else { "no answer in " (recent.window.words()) }
    };
    tile("Answers", "/events", &figure(p50), &hint)
}

fn dead_letters(recent: &Recent) -> Markup {
    let written = recent.total.counts.dead_lettered;
    let figure = html! { span.bad[written > 0] { (number(written.into())) } };
    tile(
        "Dead letters",
        "/dead-letters",
        &figure,
        &html! { "in " (recent.window.words()) },
    )
}

fn figure(text: Option<String>) -> Markup {
    html! { @if let Some(text) = text { (text) } @else { "–" } }
}

fn unread(title: &str, path: &str) -> Markup {
    tile(
        title,
        path,
        &figure(None),
        &html! { "cannot be read at the moment" },
    )
}

fn tile(title: &str, path: &str, figure: &Markup, hint: &Markup) -> Markup {
    html! {
        div.tile {
            h2 { a href={ (PATH) (path) } { (title) } }
            p.figure { (figure) }
            p.hint { (hint) }
        }
    }
}
