//! The pressure as operators see it: log events with the documents' ids, and gauges. There are few
//! gauges, because CloudWatch bills each.

use posthaste_core::pressure::{
    DISK_CRITICALLY_LOW, LevelTransition, MEMORY_CRITICALLY_LOW, PRESSURE_FELL, PRESSURE_ROSE,
    PressureLevel, PressureState, Resource, ResourceState, SettingsError, TopicPressure,
};
use posthaste_services::notifier::count_not_sent;

/// Logs what changed about one resource.
pub(crate) fn log_transition(change: LevelTransition, state: &PressureState) {
    let LevelTransition {
        resource,
        previous,
        current,
        ..
    } = change;
    let seen = state.resource(resource);
    let reading = seen.map(|r| r.reading);
    let in_flight = seen.is_some_and(|r| r.in_flight);
    for id in change.log_ids() {
        match id {
            PRESSURE_ROSE => tracing::error!(
                id, %resource, %previous, %current, reading,
                "resource pressure increased from {previous} to {current}"
            ),
            PRESSURE_FELL => tracing::info!(
                id, %resource, %previous, %current, reading,
                "resource pressure decreased from {previous} to {current}"
            ),
            // On AWS there is no disk, but a share of the messages that may be in flight.
            DISK_CRITICALLY_LOW if in_flight => tracing::error!(
                id, %resource, %previous, %current, reading,
                "rejecting events because more messages are in flight than the configured threshold; \
                 endpoints must answer, or slow ones be disabled, for the service to continue operations"
            ),
            DISK_CRITICALLY_LOW => tracing::error!(
                id, %resource, %previous, %current, reading,
                "rejecting events because available disk space is below the configured threshold; \
                 administrative action may be required to free disk space for the service to continue \
                 operations"
            ),
            MEMORY_CRITICALLY_LOW => tracing::error!(
                id, %resource, %previous, %current, reading,
                "rejecting events because the service continues to consume more memory than the configured \
                 threshold; it may have to be restarted to continue normal operation"
            ),
            _ => {}
        }
    }
}

/// Logs which topics' producers are slowed or refused from now on, and which no longer are, and
/// sets their gauges.
pub(crate) fn log_topics(before: &PressureState, after: &PressureState) {
    for now in &after.topics {
        let was = before.topic(&now.topic);
        let topic = &now.topic;
        let subscription = &now.subscription;
        let level_now = now.effective_level();
        let drain_s = now.drain_time.reading;
        let due = now.due;
        if is_refused(now) && !was.is_some_and(is_refused) {
            tracing::warn!(
                %topic, %subscription, current = %level_now, drain_s, due,
                "producers of a topic are refused: one of its subscriptions drains slowly"
            );
        } else if level_now > level_of(was) {
            tracing::warn!(
                %topic, %subscription, current = %level_now, drain_s, due,
                "producers of a topic are slowed: one of its subscriptions drains slowly"
            );
        }
    }
    for was in &before.topics {
        let level_now = level_of(after.topic(&was.topic));
        if is_slowed(was) && level_now == PressureLevel::Normal {
            let topic = &was.topic;
            let subscription = &was.subscription;
            tracing::info!(
                %topic, %subscription,
                "producers of a topic are slowed no longer: it drains fast enough"
            );
        }
    }
    topic_gauges(before, after);
}

/// The level of a topic; normal for one that is not named.
fn level_of(topic: Option<&TopicPressure>) -> PressureLevel {
    topic
        .map(TopicPressure::effective_level)
        .unwrap_or_default()
}

fn is_refused(topic: &TopicPressure) -> bool {
    topic.drain_time.refused_from.is_some()
}

fn is_slowed(topic: &TopicPressure) -> bool {
    topic.effective_level() > PressureLevel::Normal
}

/// Sets the gauges of the topics whose producers are slowed, and for the last time those of topics
/// that no longer are. No other topic has any.
fn topic_gauges(before: &PressureState, after: &PressureState) {
    let over = before.topics.iter().filter(|of| {
        let now = after.topic(&of.topic);
        is_slowed(of) && now.is_none_or(|now| now.effective_level() == PressureLevel::Normal)
    });
    let over = over.map(|of| (of, PressureLevel::Normal, 0));
    let slowed = after.topics.iter().filter(|of| is_slowed(of));
    let slowed = slowed.map(|of| (of, of.effective_level(), of.drain_time.reading));
    for (of, level, drain_secs) in over.chain(slowed) {
        let topic = of.topic.to_string();
        metrics::gauge!("TopicPressureLevel", "topic" => topic.clone()).set(level.as_number());
        metrics::gauge!("TopicDrainTimeInSeconds", "topic" => topic).set(as_f64(drain_secs));
    }
}

/// Logs that a resource can no longer be judged.
pub(crate) fn log_misfit(resource: Resource, error: &SettingsError) {
    tracing::error!(
        %resource,
        error = error as &dyn std::error::Error,
        "thresholds do not fit any more, the resource keeps its level and is watched no more after 15 minutes"
    );
}

/// Sets the gauges of the resources that could be read: 0 Normal, 1 Medium, 2 High, as in logs and
/// notices. A resource that is never read has no gauge, because CloudWatch bills each.
pub(crate) fn set_levels(state: &PressureState) {
    for resource in Resource::ALL {
        if let Some(level) = state.resource(resource).map(ResourceState::told_level) {
            metrics::gauge!("PressureLevel", "resource" => resource.as_str())
                .set(level.as_number());
        }
    }
}

/// Sets the gauges of resources that are no longer watched to 0. Otherwise they would show the last
/// level and reading until the process ends.
pub(crate) fn clear_forgotten(before: &PressureState, after: &PressureState) {
    let gone = before
        .resources
        .iter()
        .filter(|seen| after.resource(seen.resource).is_none());
    for resource in gone.map(|seen| seen.resource) {
        metrics::gauge!("PressureLevel", "resource" => resource.as_str())
            .set(PressureLevel::Normal.as_number());
        if !is_counted_by_sqs(before, resource) {
            metrics::gauge!("PressureReading", "resource" => resource.as_str()).set(0.0);
        }
    }
}

/// Sets the gauges of the treatment of producers, and of the readings that lead to it.
pub(crate) fn set_treatment(state: &PressureState) {
    metrics::gauge!("PressureTarpitInMs").set(as_f64(state.tarpit_ms));
    metrics::gauge!("PressureRefusedTierCount").set(as_f64(state.refused_tiers().len() as u64));
    for seen in state
        .resources
        .iter()
        .filter(|seen| !is_counted_by_sqs(state, seen.resource))
    {
        metrics::gauge!("PressureReading", "resource" => seen.resource.as_str())
            .set(as_f64(seen.reading));
    }
}

/// Whether SQS has a metric for this reading: on AWS for all counts of queues, where messages in
/// flight take the place of a disk.
fn is_counted_by_sqs(state: &PressureState, resource: Resource) -> bool {
    state
        .resource(Resource::DatabaseDisk)
        .is_some_and(|disk| disk.in_flight)
        && matches!(
            resource,
            Resource::SubmissionQueue | Resource::DatabaseDisk | Resource::DeadLetterBacklog
        )
}

#[expect(
    clippy::cast_precision_loss,
    reason = "readings are far below 2^52, and a gauge is for looking at"
)]
fn as_f64(reading: u64) -> f64 {
    reading as f64
}

/// Counts and logs changes whose notices will not be sent any more.
pub(crate) fn given_up(changes: usize) {
    if changes > 0 {
        count_not_sent(None, changes);
        tracing::error!(
            notices = changes,
            "notices of pressure are dropped: too many wait to be sent"
        );
    }
}
