//! The producers: the usual ones, which have a rate and obey, and those of the flood, which have
//! neither.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use posthaste_tests::api::{CLOUD_EVENT, Topic};
use posthaste_tests::events::cloud_event;
use posthaste_tests::patience::{now, rest, wait_until};

use crate::endpoint::arrived;

/// Between two events of a usual producer.
const USUAL_INTERVAL: Duration = Duration::from_millis(100);

/// Between two events of a flooding one: it is a program, not a machine.
const FLOOD_INTERVAL: Duration = Duration::from_millis(40);

/// Time between two looks of a waiting producer whether the run is over.
const LOOK: Duration = Duration::from_millis(100);

/// Most requests of one producer.
const REQUESTS_MAX: usize = 200_000;

/// Counts of one kind of producers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    accepted: AtomicU64,
    refused: AtomicU64,
    took_ms: Mutex<Vec<(Duration, f64)>>,
}

/// All producers.
#[derive(Debug)]
pub(crate) struct Load {
    topic: Topic,
    /// A topic beside the flooded one, whose endpoint answers at once.
    quick_topic: Topic,
    next: AtomicU64,
    pub(crate) usual: Counts,
    pub(crate) flood: Counts,
    /// The usual producer of the quick topic.
    pub(crate) quick: Counts,
}

impl Counts {
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The slowest accepted publish that began in this time, in milliseconds.
    pub(crate) fn slowest_ms(&self, from: Duration, to: Duration) -> f64 {
        self.took_ms(from, to).last().copied().unwrap_or(0.0)
    }

    /// The times of accepted publishes that began in this time, in milliseconds, sorted.
    pub(crate) fn took_ms(&self, from: Duration, to: Duration) -> Vec<f64> {
        let took = self.took_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let mut took: Vec<f64> = took
            .iter()
            .filter(|(at, _)| (from..to).contains(at))
            .map(|(_, ms)| *ms)
            .collect();
        took.sort_by(f64::total_cmp);
        took
    }
}

impl Load {
    pub(crate) fn new(topic: Topic, quick_topic: Topic) -> Self {
        Self {
            topic,
            quick_topic,
            next: AtomicU64::new(0),
            usual: Counts::default(),
            flood: Counts::default(),
            quick: Counts::default(),
        }
    }

    /// A usual producer of the flooded topic.
    pub(crate) fn usual(&self, is_over: &AtomicBool) {
        self.publish_at_rate(&self.topic, &self.usual, is_over);
    }

    /// A usual producer of the quick topic.
    pub(crate) fn quick(&self, is_over: &AtomicBool) {
        self.publish_at_rate(&self.quick_topic, &self.quick, is_over);
    }

    /// A usual producer: it goes on at its rate, and waits as long as the server asks it to.
    fn publish_at_rate(&self, topic: &Topic, counts: &Counts, is_over: &AtomicBool) {
        for _ in 0..REQUESTS_MAX {
            let wait = self.publish(topic, counts).unwrap_or(USUAL_INTERVAL);
            let end = now() + wait;
            while !is_over.load(Ordering::Relaxed) && now() < end {
                rest(LOOK.min(end.saturating_sub(now())));
            }
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// A producer of the flood: it publishes on, whatever the server answers.
    pub(crate) fn flood(&self, is_over: &AtomicBool) {
        for _ in 0..REQUESTS_MAX {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            self.publish(&self.topic, &self.flood);
            rest(FLOOD_INTERVAL);
        }
    }

    /// Every accepted event must arrive.
    pub(crate) fn wait_for_arrivals(&self) {
        let accepted = self.usual.accepted() + self.flood.accepted();
        let mut seen = arrived();
        while seen < accepted {
            let before = seen;
            seen = wait_until("more arrivals", || {
                Some(arrived()).filter(|seen| *seen > before)
            });
        }
    }

    /// Publishes once. Answers how long to wait if it was refused.
    fn publish(&self, topic: &Topic, counts: &Counts) -> Option<Duration> {
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let body = cloud_event(&id).to_string();
        let begin = now();
        let answer = topic
            .send(CLOUD_EVENT, body.as_bytes())
            .expect("the server answers");
        let took = now().saturating_sub(begin);
        if answer.status == 200 {
            counts.accepted.fetch_add(1, Ordering::Relaxed);
            let mut all = counts
                .took_ms
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.push((begin, took.as_secs_f64() * 1e3));
            return None;
        }
        assert_eq!(answer.status, 503, "{answer:?}");
        counts.refused.fetch_add(1, Ordering::Relaxed);
        let secs = answer
            .header("retry-after")
            .and_then(|secs| secs.parse().ok());
        Some(Duration::from_secs(
            secs.expect("a refusal says when to come back"),
        ))
    }
}
