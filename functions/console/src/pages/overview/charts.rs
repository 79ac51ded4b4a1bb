//! The last hour of the installation.

use maud::{Markup, html};
use posthaste_core::pressure::PressureLevel;

use crate::chart::{Chart, Shape, Unit};
use crate::recent::Recent;

/// The charts.
pub(super) fn section(recent: &Recent) -> Markup {
    html! {
        h2 { "The last hour" }
        div.charts { @for chart in all(recent) { (chart.render(&recent.window)) } }
        p.hint {
            "A gap is a time of which nothing is known. Counts from before the start of this server come \
             from the delivery log, which leaves out topics with " code { "deliveryLog: off" } "."
        }
    }
}

fn all(recent: &Recent) -> [Chart; 8] {
    let percentile = |share| recent.counted(|sum| sum.counts.answers.percentile(share));
    [
        Chart::new("Events a second", Unit::PerSecond, Shape::Line)
            .with(
                "delivered",
                recent.counted(|sum| sum.rate(sum.counts.delivered)),
            )
            .with("failed", recent.counted(|sum| sum.rate(sum.counts.failed))),
        Chart::new("Sent events that succeeded", Unit::Percent, Shape::Line).with(
            "succeeded",
            recent.counted(crate::recent::Sum::success_percent),
        ),
        Chart::new("Answers of endpoints", Unit::Millis, Shape::Line)
            .with("p50", percentile(0.5))
            .with("p99", percentile(0.99)),
        Chart::new("Waiting events", Unit::Count, Shape::Line)
            .with(
                "due",
                recent.gauge(|it| it.waiting.map(|waiting| waiting.due.into())),
            )
            .with(
                "for a retry",
                recent.gauge(|it| it.waiting.map(|waiting| waiting.later.into())),
            )
            .with(
                "held",
                recent.gauge(|it| it.waiting.map(|waiting| waiting.held.into())),
            ),
        Chart::new("Dead letters", Unit::Count, Shape::Bars).with(
            "written",
            recent.counted(|sum| Some(sum.counts.dead_lettered.into())),
        ),
        Chart::new("Links that are down", Unit::Count, Shape::Steps)
            .with("down", recent.gauge(|it| it.down.map(f64::from))),
        level(recent),
        tarpit(recent),
    ]
}

/// The level of back pressure.
pub(crate) fn level(recent: &Recent) -> Chart {
    let number = |level: PressureLevel| f64::from(level.as_number());
    let values = recent.gauge(|it| it.pressure.map(|pressure| number(pressure.level)));
    Chart::new("Pressure", Unit::Level, Shape::Steps).with("level", values)
}

/// The wait of producers.
pub(crate) fn tarpit(recent: &Recent) -> Chart {
    let values = recent.gauge(|it| it.pressure.map(|pressure| pressure.tarpit_ms.into()));
    Chart::new(
        "Tarpit: how long producers wait",
        Unit::Millis,
        Shape::Steps,
    )
    .with("wait", values)
}
