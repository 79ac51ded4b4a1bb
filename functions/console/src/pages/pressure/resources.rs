//! The resources, each with its reading and what follows from it.

use maud::{Markup, html};
use posthaste_core::api::{PressureResource, PressureTopic, PressureView};
use posthaste_core::model::ProducerTier;
use posthaste_core::pressure::{PressureLevel, PressureMeasure, Resource};

use super::{level_badge, tier_names, wait_text};
use crate::chart::{Chart, ChartMark, ChartShape, ChartUnit};
use crate::display::{foreign_text, number, time_tag};
use crate::recent::RecentHistory;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 9] = [
    Text("Resource"),
    Text("Level"),
    Number("Reading"),
    Number("Normal below"),
    Number("Medium from"),
    Number("High from"),
    Number("Polls"),
    Text("Refused"),
    Text("Other measures"),
];

/// The columns of topics.
const TOPIC_COLUMNS: [TableColumn; 7] = [
    Text("Topic"),
    Text("Subscription"),
    Text("Level"),
    Number("Due messages"),
    Number("Seconds for them"),
    Number("Producers wait"),
    Text("Refused"),
];

/// The table.
pub(super) fn reading_table(view: &PressureView) -> Markup {
    html! {
        h2 { "Resources" }
        @if view.resources.is_empty() {
            p.empty { "No resource has been read yet." }
        } @else {
            (data_table("Resources", &COLUMNS, view.resources.iter().map(resource_cells)))
            p.hint {
                "Polls: how many times in a row a resource was found above normal. After as many as stand \
                 behind \u{201c}of\u{201d} producers are refused."
            }
        }
    }
}

/// The topics that are slowed by one of their own subscriptions.
pub(super) fn topic_table(view: &PressureView) -> Markup {
    html! {
        @if !view.topics.is_empty() {
            h2 { "Topics that wait for themselves" }
            (data_table("Topics that wait for themselves", &TOPIC_COLUMNS, view.topics.iter().map(topic_cells)))
            p.hint {
                "Only producers of these topics are slowed or refused. The endpoint of the subscription \
                 must answer faster or take batches, or the subscription be paused."
            }
        }
    }
}

fn topic_cells(it: &PressureTopic) -> [Markup; 7] {
    [
        foreign_text(it.topic.as_str()),
        foreign_text(it.subscription.as_str()),
        html! { (level_badge(it.level)) br; span.hint { "since " (time_tag(it.since.0)) } },
        html! { (number(it.due)) },
        html! { (number(it.drain_seconds)) },
        html! { (wait_text(it.tarpit)) },
        html! { (tier_names(&it.refused_tiers)) },
    ]
}

fn resource_cells(it: &PressureResource) -> [Markup; 9] {
    [
        html! { code { (it.resource) } br; span.hint { (resource_meaning(it)) } },
        level_cell(it),
        html! { (number(it.reading)) br; span.hint { (foreign_text(&it.unit)) } },
        html! { (number(it.thresholds.normal)) },
        html! { (number(it.thresholds.medium)) },
        html! { (number(it.thresholds.high)) },
        polls_cell(it),
        refused_cell(it.refused_from),
        measures_cell(&it.measures),
    ]
}

fn level_cell(it: &PressureResource) -> Markup {
    html! {
        (level_badge(it.level))
        @if !it.acts && it.level != PressureLevel::Normal { " " span.hint { "without consequences" } }
        br;
        span.hint { "since " (time_tag(it.since.0)) }
    }
}

fn resource_meaning(it: &PressureResource) -> &'static str {
    match it.resource {
        Resource::SubmissionQueue => "deliveries that are due",
        Resource::VersionBuckets => "publishes that wait for the disk",
        Resource::BatchPoints => "batches on their way to the disk",
        Resource::DatabaseDisk if it.unit == it.resource.unit() => "the disk with the data folder",
        Resource::DatabaseDisk => "messages in flight, which AWS bounds",
        Resource::LogDisk => "the disk with the journal",
        Resource::ProcessMemory => "memory of this program",
        Resource::SystemMemory => "memory of the machine",
        Resource::DeadLetterBacklog => "dead letters that are not stored yet",
        Resource::DrainTime => "time until the due deliveries are sent",
    }
}

fn polls_cell(it: &PressureResource) -> Markup {
    html! {
        (number(it.polls.into()))
        @if let Some(depth) = it.history_depth {
            " of " (number(depth.into()))
            @if it.history_passed == Some(true) { br; span.hint { "passed" } }
        }
    }
}

fn refused_cell(from: Option<ProducerTier>) -> Markup {
    html! {
        @match from {
            Some(from) => { span.badge.bad { (from.as_str()) } @if from != ProducerTier::Bulk { " and below" } }
            None => { "nobody" }
        }
    }
}

fn measures_cell(measures: &[PressureMeasure]) -> Markup {
    let words = measures.iter().map(|measure| match measure {
        PressureMeasure::TrimCaches => "empties caches",
        PressureMeasure::FlushDns => "forgets host names",
        PressureMeasure::Dehydrate => "stores events beside their messages",
        PressureMeasure::Alarm => "alarm",
    });
    html! { (words.collect::<Vec<_>>().join(", ")) }
}

/// The readings of a resource over time. The thresholds are drawn where it comes near them.
pub(super) fn reading_chart(it: &PressureResource, recent: &RecentHistory) -> Chart {
    let readings =
        recent.gauge_values(|gauges| Some(gauges.pressure?.reading(it.resource)?.value.into()));
    let unit = match it.resource {
        resource if resource.is_percentage() => ChartUnit::Percent,
        Resource::DrainTime => ChartUnit::Seconds,
        _ => ChartUnit::Count,
    };
    let marks = [
        ("medium", it.thresholds.medium),
        ("high", it.thresholds.high),
    ];
    let marks = marks.map(|(name, value)| ChartMark {
        name,
        value: f64::from(crate::history::saturated_count(value)),
    });
    Chart::new(it.resource.as_str(), unit, ChartShape::Line)
        .with_series("reading", readings)
        .with_marks(marks)
}
