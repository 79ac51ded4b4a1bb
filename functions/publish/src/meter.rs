//! The metrics of the function, under Event Grid's names, all with the label `topic`.
//!
//! Everything is counted in events, as Event Grid does. A request that was refused before its
//! events were known counts as one failed event; one for a topic that does not exist is not
//! counted, so that no client can make up labels.
//!
//! The effects of back pressure are counted in requests, with the label `tier`: it decides before
//! their events are known.

use std::time::Duration;

use posthaste_core::model::{ProducerTier, TopicName};

/// Counts a request that was published: its events, the events that at least one subscription
/// receives, and the time it took, the tarpit's wait included.
pub(crate) fn count_published(topic: &TopicName, events: usize, matched: usize, took: Duration) {
    count_events("PublishSuccessCount", topic, events);
    metrics::histogram!("PublishSuccessLatencyInMs", "topic" => topic.shared())
        .record(took.as_secs_f64() * 1000.0);
    if matched > 0 {
        count_events("MatchedEventCount", topic, matched);
    }
    if events > matched {
        count_events("UnmatchedEventCount", topic, events - matched);
    }
}

/// Counts a request that the tarpit holds, or asks to come back later.
pub(crate) fn count_delayed(topic: &TopicName, tier: ProducerTier) {
    count_of_tier("PublishDelayedCount", topic, tier);
}

/// Counts a request that is refused for its tier.
pub(crate) fn count_refused(topic: &TopicName, tier: ProducerTier) {
    count_of_tier("PublishRefusedCount", topic, tier);
}

/// Counts events that were not published.
pub(crate) fn count_failed(topic: &TopicName, events: usize) {
    count_events("PublishFailCount", topic, events);
}

fn count_events(metric: &'static str, topic: &TopicName, events: usize) {
    metrics::counter!(metric, "topic" => topic.shared()).increment(events as u64);
}

fn count_of_tier(metric: &'static str, topic: &TopicName, tier: ProducerTier) {
    metrics::counter!(metric, "topic" => topic.shared(), "tier" => tier.as_str()).increment(1);
}
