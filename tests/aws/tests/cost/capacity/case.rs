//! Loads, and what was measured of each.

use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::stored::layout;
use posthaste_ports::Clock as _;
use posthaste_testkit::ManualClock;
use posthaste_testkit::memory::MemoryStore;
use serde_json::{Map, Value, json};

use super::clockwork;
use super::endpoints::{AnswerTime, Endpoints};
use super::lambda::{Invocations, Lambda, Pollers, QUICK};
use super::published::publish;
use super::queue::{Counts, Order, Sqs};
use crate::world::{BATCH_MAX, START, record, topic_name};

/// The host of the first subscription.
pub(super) const SLOW_HOST: &str = "s0.example.com";

/// The longest run.
const LENGTH_MAX: Duration = Duration::from_hours(6);

/// A load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    /// The name in the tables.
    pub(super) name: &'static str,
    pub(super) pollers: Pollers,
    /// The most messages of an invocation.
    pub(super) batch: usize,
    /// Subscriptions, each with a host of its own, that get every event.
    pub(super) subscribers: usize,
    pub(super) events: usize,
    pub(super) per_request: usize,
    /// The time between two publish requests. Zero: all wait from the beginning.
    pub(super) pace: Duration,
    pub(super) is_batching: bool,
    /// `maxRequestsPerSecond` of the first subscription.
    pub(super) rate: Option<f64>,
    pub(super) order: Order,
    /// The time of the endpoints for their answer. The first subscription's host is [`SLOW_HOST`].
    pub(super) answer_time: AnswerTime,
}

/// The result of a run.
pub(super) struct Measured {
    pub(super) endpoints: Endpoints,
    pub(super) invocations: Invocations,
    pub(super) queue: Counts,
    /// Leftovers in the queue and in the state bucket: messages and keys.
    pub(super) left: usize,
}

/// A backlog of 1,000 deliveries to twenty healthy subscribers.
pub(super) const BACKLOG: Case = Case {
    name: "",
    pollers: Pollers::Ready(50),
    batch: BATCH_MAX,
    subscribers: 20,
    events: 50,
    per_request: 1,
    pace: Duration::ZERO,
    is_batching: false,
    rate: None,
    order: Order::Plain,
    answer_time: |_, _| QUICK,
};

impl Case {
    /// Runs it until every event is delivered and nothing is left to do.
    pub(super) fn run(&self) -> Measured {
        let lambda = self.lambda();
        let published = publish(&lambda.state, self.events, self.per_request);
        let deliveries = self.events * self.subscribers;
        let is_over = || {
            let is_late = lambda.clock.monotonic() > LENGTH_MAX;
            assert!(
                !is_late,
                "{}: {} of {deliveries}",
                self.name,
                lambda.endpoints.delivered()
            );
            lambda.endpoints.delivered() == deliveries && lambda.queue.in_flight() == 0
        };
        let run = lambda.run((self.pollers, self.batch), (published, self.pace), is_over);
        clockwork::run(&lambda.clock, run);
        let waiting = [layout::PARKED, layout::HELD].map(|prefix| lambda.state.keys(prefix).len());
        Measured {
            invocations: *lambda.invocations.lock(),
            queue: lambda.queue.counts(),
            left: lambda.queue.take_messages().len() + waiting.iter().sum::<usize>(),
            endpoints: lambda.endpoints,
        }
    }

    fn lambda(&self) -> Lambda {
        let (clock, state) = (ManualClock::new(START), MemoryStore::default());
        state.write(
            &layout::topic(&topic_name()),
            record(&self.subscriptions()).render(),
        );
        Lambda {
            queue: Sqs::new(clock.clone(), self.order),
            endpoints: Endpoints::new(clock.clone(), self.answer_time),
            state,
            clock,
            invocations: Mutex::default(),
        }
    }

    fn subscriptions(&self) -> Value {
        let batching = self
            .is_batching
            .then(|| json!({ "maxEventsPerBatch": 100 }));
        let subscription = |n: usize| {
            let mut endpoint = json!({ "url": format!("https://s{n}.example.com/hook") });
            if let Some(rate) = self.rate.filter(|_| n == 0) {
                endpoint["maxRequestsPerSecond"] = json!(rate);
            }
            (
                format!("s{n}"),
                json!({ "endpoint": endpoint, "batching": batching }),
            )
        };
        (0..self.subscribers)
            .map(subscription)
            .collect::<Map<_, _>>()
            .into()
    }
}

impl Measured {
    /// Deliveries a second, until the end of the last invocation.
    pub(super) fn per_second(&self) -> f64 {
        self.endpoints.delivered() as f64 / self.invocations.end.as_secs_f64()
    }

    /// Messages of an invocation, on average.
    pub(super) fn batch(&self) -> f64 {
        f64::from(self.invocations.messages) / f64::from(self.invocations.count)
    }

    /// The time of an invocation, on average.
    pub(super) fn seconds(&self) -> f64 {
        self.invocations.time.as_secs_f64() / f64::from(self.invocations.count)
    }

    /// The most requests that were open at once.
    pub(super) fn open_most(&self) -> usize {
        self.endpoints.seen(|seen| seen.open_most)
    }

    /// Requests that began before this time.
    pub(super) fn requests_before(&self, time: Duration) -> usize {
        self.endpoints
            .seen(|seen| seen.requests.iter().filter(|at| **at < time).count())
    }

    /// The most requests that began within any second.
    pub(super) fn most_in_a_second(&self) -> usize {
        self.endpoints.seen(|seen| {
            let of = |(n, from): (usize, &Duration)| {
                seen.requests[n..]
                    .iter()
                    .take_while(|at| **at < *from + Duration::from_secs(1))
                    .count()
            };
            seen.requests
                .iter()
                .enumerate()
                .map(of)
                .max()
                .unwrap_or_default()
        })
    }

    /// Everything was delivered once, and nothing is left.
    pub(super) fn assert_whole(&self, case: &Case) {
        let often = self
            .endpoints
            .seen(|seen| seen.taken.values().filter(|at| at.len() > 1).count());
        let found = (
            self.endpoints.delivered(),
            often,
            self.queue.dead,
            self.left,
        );
        assert_eq!(
            found,
            (case.events * case.subscribers, 0, 0, 0),
            "{}",
            case.name
        );
    }

    /// The waits of deliveries to healthy endpoints, from publish to arrival, the longest last.
    pub(super) fn healthy_waits(&self, case: &Case) -> Vec<Duration> {
        let wait = |((id, _), at): (&(String, String), &Vec<Duration>)| {
            at[0].saturating_sub(case.pace * id.parse::<u32>().expect("a number"))
        };
        let is_healthy = |(_, host): &(String, String)| host != SLOW_HOST;
        let mut waits: Vec<_> = self.endpoints.seen(|seen| {
            seen.taken
                .iter()
                .filter(|(delivery, _)| is_healthy(delivery))
                .map(wait)
                .collect()
        });
        waits.sort();
        waits
    }
}
