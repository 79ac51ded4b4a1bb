//! `pressure`: what the monitor measures, and what it does to producers.

use std::time::Duration;

use posthaste_core::api::{PressureFreshness, PressureResource, PressureTopic, PressureView};
use posthaste_core::pressure::{PressureLevel, ProducerTier};
use serde_json::json;
use ureq::http::Method;

use super::session::Session;
use crate::error::CommandError;
use crate::output::{Reply, word};

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

pub(crate) fn run(session: &Session) -> Result<Reply, CommandError> {
    let view: PressureView = session.ask(Method::GET, &["pressure"])?;
    let rows = view.resources.iter().map(row).collect();
    let reply = Reply::new(json!(view)).line(headline(&view));
    let reply = view.topics.iter().map(of_topic).fold(reply, Reply::line);
    Ok(reply.table(HEADER, rows))
}

/// One sentence on a topic that is slowed by one of its own subscriptions.
fn of_topic(topic: &PressureTopic) -> String {
    let waits = if topic.tarpit.0.is_zero() {
        "acknowledgements do not wait".to_owned()
    } else {
        format!("acknowledgements wait {}", seconds(topic.tarpit.0))
    };
    let refused = match &*topic.refused_tiers {
        [] => String::new(),
        tiers => format!(", refused: {}", listed(tiers)),
    };
    format!(
        "topic {}: {} since {}: its subscription {} needs {} s for {} messages; {waits}{refused}",
        topic.topic, topic.level, topic.since.0, topic.subscription, topic.drain_seconds, topic.due
    )
}

/// One sentence on how producers are treated, and why.
fn headline(view: &PressureView) -> String {
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
            treatment(view)
        ),
        PressureFreshness::Current => {
            let since = view.since.map(|since| format!(" since {}", since.0)).unwrap_or_default();
            format!("{}{since}: {} (measured {polled_at})", view.level, treatment(view))
        }
    }
}

/// The treatment of producers, in words.
fn treatment(view: &PressureView) -> String {
    let refused = match &*view.refused_tiers {
        [] => "no producer is refused".to_owned(),
        tiers => format!("refused: {}", listed(tiers)),
    };
    format!("{}, {refused}", tarpit(view))
}

fn tarpit(view: &PressureView) -> String {
    let next = view.next_tarpit.filter(|next| *next != view.tarpit);
    let next = next
        .map(|next| format!(", {} after the next poll", seconds(next.0)))
        .unwrap_or_default();
    if view.tarpit.0.is_zero() {
        return format!("acknowledgements do not wait{next}");
    }
    // Refused producers do not wait; delayed ones are named only where that says more.
    let all = view.delayed_tiers.len() + view.refused_tiers.len() >= ProducerTier::ALL.len();
    let whose = if all {
        String::new()
    } else {
        format!(" of {}", listed(&view.delayed_tiers))
    };
    format!(
        "acknowledgements{whose} wait {}{next}",
        seconds(view.tarpit.0)
    )
}

fn listed(tiers: &[ProducerTier]) -> String {
    tiers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn seconds(length: Duration) -> String {
    format!("{} s", length.as_secs_f64())
}

fn row(resource: &PressureResource) -> [String; 10] {
    [
        resource.resource.to_string(),
        level(resource),
        resource.reading.to_string(),
        resource.unit.clone(),
        resource.thresholds.normal.to_string(),
        resource.thresholds.medium.to_string(),
        resource.thresholds.high.to_string(),
        history(resource),
        resource
            .refused_from
            .map(|tier| tier.to_string())
            .unwrap_or_default(),
        other_actions(resource),
    ]
}

fn level(resource: &PressureResource) -> String {
    // At normal there is no difference.
    if resource.acts || resource.level == PressureLevel::Normal {
        return resource.level.to_string();
    }
    format!("{} (does not act)", resource.level)
}

fn history(resource: &PressureResource) -> String {
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
        .map(word)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
