//! The tries that records are about, for the book of failing subscriptions. On AWS, where many
//! instances deliver, the delivery log is what knows of all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::delivery_log::LogRecord;
use posthaste_core::health::{SeenTry, SubscriptionTries, TryResult};
use posthaste_ports::Ports;
use posthaste_services::{ArrivalTracker, WakeSignaller};

/// The ports of health.
#[derive(Debug)]
pub struct HealthPorts<P: Ports> {
    /// The tries, which are counted here.
    pub arrivals: ArrivalTracker<P::Store, P::Clock>,
    /// The way to wake, which sends the notices.
    pub wake: WakeSignaller<P::Store, P::Clock>,
    /// The age of an undelivered event of which an operator is told.
    pub delayed_after: Duration,
}

/// The tries of subscriptions, by their keys in the book.
pub(crate) type TriesByKey = BTreeMap<String, SubscriptionTries>;

impl<P: Ports> HealthPorts<P> {
    /// The tries of these records, in the order of time; none where all is well.
    pub(crate) fn tries_by_key(&self, records: &[LogRecord]) -> TriesByKey {
        let mut seen: Vec<_> = records
            .iter()
            .filter_map(|record| Some((record, SeenTry::from_record(record, self.delayed_after)?)))
            .collect();
        // One that failed before is news: the record of its failure may come later.
        let is_all_well = seen
            .iter()
            .all(|(_, seen)| seen.result == TryResult::Arrived && seen.is_first);
        if !self.arrivals.is_watching() && is_all_well {
            return BTreeMap::new();
        }
        seen.sort_by_key(|(_, seen)| seen.at);
        let mut by_key = BTreeMap::<_, SubscriptionTries>::new();
        for (record, seen) in &seen {
            let names = (&record.topic, &record.subscription);
            by_key.entry(names).or_default().add_try(seen);
        }
        by_key
            .into_iter()
            .map(|((topic, subscription), tries)| ([topic, ".", subscription].concat(), tries))
            .collect()
    }
}
