//! The last hour or day of the installation.

use maud::{Markup, html};

use crate::chart::{Chart, ChartShape, ChartUnit};
use crate::console::ConsoleState;
use crate::recent::RecentHistory;
use crate::words::{RESPONSE_TIME, WAITING_FOR_RECOVERY};

/// The charts.
pub(super) fn recent_section(recent: &RecentHistory) -> Markup {
    html! {
        h2 { "Over " (recent.window.in_words()) }
        div.charts { @for chart in all_charts(recent) { (chart.render(&recent.window)) } }
        p.hint {
            "A gap is a time of which nothing is known. Counts from before the start of this server come \
             from the delivery log, which leaves out topics with " code { "deliveryLog: off" } "."
        }
    }
}

/// The note of an installation without a history.
pub(crate) fn no_history_note(pages: &ConsoleState) -> Markup {
    html! {
        h2 { "Over time" }
        p {
            "Rates, durations and charts are not shown here: on AWS no process sees all deliveries. "
            @if let Some(url) = &pages.dashboard_url {
                "The " a href=(url) rel="noreferrer" { "CloudWatch dashboard" } " shows them."
            } @else {
                "The metrics in CloudWatch have them."
            }
        }
    }
}

fn all_charts(recent: &RecentHistory) -> [Chart; 8] {
    [
        Chart::new("Events a second", ChartUnit::PerSecond, ChartShape::Line)
            .with_series(
                "delivered",
                recent.count_values(|sum| sum.per_second(sum.counts.delivered)),
            )
            .with_series(
                "failed",
                recent.count_values(|sum| sum.per_second(sum.counts.failed)),
            ),
        Chart::new(
            "Sent events that succeeded",
            ChartUnit::Percent,
            ChartShape::Line,
        )
        .with_series(
            "succeeded",
            recent.count_values(crate::recent::CountSum::success_percent),
        ),
        Chart::new(RESPONSE_TIME, ChartUnit::Millis, ChartShape::Line)
            .with_series("p50", response_time_values(recent, 0.5))
            .with_series("p99", response_time_values(recent, 0.99)),
        Chart::new("Waiting events", ChartUnit::Count, ChartShape::Line)
            .with_series(
                "due",
                recent.gauge_values(|it| it.waiting.map(|waiting| waiting.due.into())),
            )
            .with_series(
                "for a retry",
                recent.gauge_values(|it| it.waiting.map(|waiting| waiting.later.into())),
            )
            .with_series(
                WAITING_FOR_RECOVERY,
                recent.gauge_values(|it| it.waiting.map(|waiting| waiting.held.into())),
            ),
        Chart::new("Dead letters", ChartUnit::Count, ChartShape::Bars).with_series(
            "written",
            recent.count_values(|sum| Some(sum.counts.dead_lettered.into())),
        ),
        Chart::new(
            "Hosts and subscriptions that are down",
            ChartUnit::Count,
            ChartShape::Steps,
        )
        .with_series("down", recent.gauge_values(|it| it.down.map(f64::from))),
        level_chart(recent),
        tarpit_chart(recent),
    ]
}

fn response_time_values(recent: &RecentHistory, share: f64) -> Vec<Option<f64>> {
    recent.count_values(|sum| sum.counts.answers.percentile(share))
}

/// The level of back pressure.
pub(crate) fn level_chart(recent: &RecentHistory) -> Chart {
    let values = recent.gauge_values(|it| Some(it.pressure?.level.as_number().into()));
    Chart::new("Pressure", ChartUnit::Level, ChartShape::Steps).with_series("level", values)
}

/// The wait of producers.
pub(crate) fn tarpit_chart(recent: &RecentHistory) -> Chart {
    let values = recent.gauge_values(|it| it.pressure.map(|pressure| pressure.tarpit_ms.into()));
    Chart::new(
        "How long producers wait",
        ChartUnit::Millis,
        ChartShape::Steps,
    )
    .with_series("wait", values)
}
