//! What the function counts, under Event Grid's names, all with the label `topic`.
//!
//! Everything is counted in events, as Event Grid does. A request that was refused before its events were
//! known counts as one failed event; one for a topic that does not exist is not counted, so that nobody can
//! make up labels.
//!
//! What back pressure does is counted in requests, with the label `tier`: it decides before their events are
//! known.

use std::time::Duration;

use posthaste_core::model::TopicName;
use posthaste_core::pressure::Tier;

/// Counts a request that was published: its events, those of them that at least one subscription receives,
/// and the time it took, the tarpit's wait included.
pub(crate) fn published(topic: &TopicName, events: usize, matched: usize, took: Duration) {
    let topic = topic.as_str();
    metrics::counter!("PublishSuccessCount", "topic" => topic.to_owned()).increment(events as u64);
    metrics::histogram!("PublishSuccessLatencyInMs", "topic" => topic.to_owned())
        .record(took.as_secs_f64() * 1000.0);
    if matched > 0 {
        metrics::counter!("MatchedEventCount", "topic" => topic.to_owned()).increment(matched as u64);
    }
    if events > matched {
        let unmatched = (events - matched) as u64;
        metrics::counter!("UnmatchedEventCount", "topic" => topic.to_owned()).increment(unmatched);
    }
}

/// Counts a request that the tarpit holds, or asks to come back later.
pub(crate) fn delayed(topic: &TopicName, tier: Tier) {
    metrics::counter!("PublishDelayedCount", "topic" => topic.as_str().to_owned(), "tier" => tier.as_str())
        .increment(1);
}

/// Counts a request that is refused for its tier.
pub(crate) fn refused(topic: &TopicName, tier: Tier) {
    metrics::counter!("PublishRefusedCount", "topic" => topic.as_str().to_owned(), "tier" => tier.as_str())
        .increment(1);
}

/// Counts events that were not published.
pub(crate) fn failed(topic: &TopicName, events: usize) {
    metrics::counter!("PublishFailCount", "topic" => topic.as_str().to_owned()).increment(events as u64);
}
