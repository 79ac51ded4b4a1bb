//! `pressure`: what the monitor measures, and what it does to producers.

use std::time::Duration;

use posthaste_core::api::{PressureFreshness, PressureResource, PressureTopic, PressureView};
use posthaste_core::model::ProducerTier;
use posthaste_core::pressure::PressureLevel;
use serde_json::json;
use ureq::http::Method;

use super::session::AdminSession;
use crate::error::CommandError;
use crate::output::{CommandReply, api_word};

const HEADER: [&str; 10] = [
    "resource",
    "level",
    "reading",
    "unit",
    "normal",
    "medium",
    "high",
    "history",
    "refused from",
    "other actions",
];

pub fn run(session: &AdminSession) -> Result<CommandReply, CommandError> {
    let view: PressureView = session.request_json(Method::GET, &["pressure"])?;
    let rows = view.resources.iter().map(resource_row).collect();
    let reply = CommandReply::new(json!(view)).line(producers_sentence(&view));
    let reply = view
        .topics
        .iter()
        .map(topic_sentence)
        .fold(reply, CommandReply::line);
    Ok(reply.table(HEADER, rows))
}

/// One sentence on a topic that is slowed by one of its own subscriptions.
fn topic_sentence(topic: &PressureTopic) -> String {
    let waits = if topic.tarpit.0.is_zero() {
        "acknowledgements do not wait".to_owned()
    } else {
        format!("acknowledgements wait {}", seconds_text(topic.tarpit.0))
    };
    let refused = match &*topic.refused_tiers {
        [] => String::new(),
        tiers => format!(", refused: {}", join_tiers(tiers)),
    };
    format!(
        "topic {}: {} since {}: its subscription {} needs {} s for {} messages; {waits}{refused}",
        topic.topic, topic.level, topic.since.0, topic.subscription, topic.drain_seconds, topic.due
    )
}

/// One sentence on how producers are treated, and why.
fn producers_sentence(view: &PressureView) -> String {
    let polled_at = view
        .polled_at
        .map(|at| at.0.to_string())
        .unwrap_or_default();
    match view.freshness {
        PressureFreshness::Missing => {
            "nothing was measured yet; producers are treated as at normal".to_owned()
        }
        PressureFreshness::Unreadable => {
            "unknown: what the monitor wrote cannot be understood; producers are treated as at normal"
                .to_owned()
        }
        PressureFreshness::Forgotten => format!(
            "the monitor has stopped: it measured last at {polled_at}, and producers are treated as at normal"
        ),
        _ if !view.monitored => "resources are not watched".to_owned(),
        PressureFreshness::Stale => format!(
            "the monitor has missed polls: it measured last at {polled_at}; until it does again {}",
            treatment_text(view)
        ),
        PressureFreshness::Current => {
            let since = view.since.map(|since| format!(" since {}", since.0)).unwrap_or_default();
            format!("{}{since}: {} (measured {polled_at})", view.level, treatment_text(view))
        }
    }
}

/// The treatment of producers, in words.
fn treatment_text(view: &PressureView) -> String {
    let refused = match &*view.refused_tiers {
        [] => "no producer is refused".to_owned(),
        tiers => format!("refused: {}", join_tiers(tiers)),
    };
    format!("{}, {refused}", tarpit_text(view))
}

fn tarpit_text(view: &PressureView) -> String {
    let next = view.next_tarpit.filter(|next| *next != view.tarpit);
    let next = next
        .map(|next| format!(", {} after the next poll", seconds_text(next.0)))
        .unwrap_or_default();
    if view.tarpit.0.is_zero() {
        return format!("acknowledgements do not wait{next}");
    }
    // Refused producers do not wait; delayed ones are named only where that says more.
    let all = view.delayed_tiers.len() + view.refused_tiers.len() >= ProducerTier::ALL.len();
    let whose = if all {
        String::new()
    } else {
        format!(" of {}", join_tiers(&view.delayed_tiers))
    };
    format!(
        "acknowledgements{whose} wait {}{next}",
        seconds_text(view.tarpit.0)
    )
}

fn join_tiers(tiers: &[ProducerTier]) -> String {
    tiers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn seconds_text(length: Duration) -> String {
    format!("{} s", length.as_secs_f64())
}

fn resource_row(resource: &PressureResource) -> [String; 10] {
    [
        resource.resource.to_string(),
        level_cell(resource),
        resource.reading.to_string(),
        resource.unit.clone(),
        resource.thresholds.normal.to_string(),
        resource.thresholds.medium.to_string(),
        resource.thresholds.high.to_string(),
        history_cell(resource),
        resource
            .refused_from
            .map(|tier| tier.to_string())
            .unwrap_or_default(),
        other_actions(resource),
    ]
}

fn level_cell(resource: &PressureResource) -> String {
    // At normal there is no difference.
    if resource.acts || resource.level == PressureLevel::Normal {
        return resource.level.to_string();
    }
    format!("{} (does not act)", resource.level)
}

fn history_cell(resource: &PressureResource) -> String {
    match resource.history_depth {
        Some(depth) => format!("{} of {depth} polls", resource.polls.min(depth)),
        None => String::new(),
    }
}

/// Further actions, in the words of the API.
fn other_actions(resource: &PressureResource) -> String {
    resource
        .measures
        .iter()
        .map(api_word)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
