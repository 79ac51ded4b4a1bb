//! Loads, and what was measured of each.

use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{SUBSCRIPTIONS_PER_TOPIC_MAX, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::Clock as _;
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{ManualClock, PortOperation, RecordedCalls, records};
use serde_json::{Map, Value, json};

use super::clockwork;
use super::endpoints::{AnswerTime, Endpoints};
use super::lambda::{Invocations, Lambda, Pollers, QUICK, SlowPollers};
use super::published::publish;
use super::queue::{Counts, Order, Sqs};
use crate::prices::{DELIVER_GB, PUBLISH_GB};
use crate::world::{BATCH_MAX, START, TOPIC, record, topic_name};

/// The host of the first subscription.
pub(super) const SLOW_HOST: &str = "s0.example.com";

/// The topic of this number.
fn topic(number: usize) -> TopicName {
    match number {
        0 => topic_name(),
        _ => records::topic_name(&format!("{TOPIC}{number}")),
    }
}

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
    /// Memory of publish and of deliver.
    pub(super) publish_gb: f64,
    pub(super) deliver_gb: f64,
    /// The slow lane, where there is one.
    pub(super) slow: Option<SlowPollers>,
    /// Subscriptions, each with a host of its own, that get every event.
    pub(super) subscribers: usize,
    pub(super) events: usize,
    pub(super) per_request: usize,
    /// The time between two publish requests. Zero: all wait from the beginning.
    pub(super) pace: Duration,
    pub(super) is_batching: bool,
    /// `maxRequestsPerSecond` of the first subscription.
    pub(super) rate: Option<f64>,
    /// The `maxConcurrentRequests` of its subscription.
    pub(super) concurrency: Option<u32>,
    pub(super) order: Order,
    /// The time of the endpoints for their answer. The first subscription's host is [`SLOW_HOST`].
    pub(super) answer_time: AnswerTime,
    /// The first so many subscriptions are not healthy.
    pub(super) unhealthy: usize,
    /// The time from which they are not.
    pub(super) slow_from: Duration,
}

/// The result of a run.
pub(super) struct Measured {
    pub(super) endpoints: Endpoints,
    pub(super) invocations: Invocations,
    pub(super) queue: Counts,
    /// Those of the slow lane's queue.
    pub(super) slow_queue: Counts,
    /// Requests to S3: reads, and writes and lists.
    pub(super) gets: usize,
    pub(super) puts: usize,
    /// Leftovers in the queue and in the state bucket: messages and keys.
    pub(super) left: usize,
}

/// A backlog of 1,000 deliveries to twenty healthy subscribers.
pub(super) const BACKLOG: Case = Case {
    name: "",
    pollers: Pollers::Ready(50),
    batch: BATCH_MAX,
    publish_gb: PUBLISH_GB,
    deliver_gb: DELIVER_GB,
    slow: None,
    subscribers: 20,
    events: 50,
    per_request: 1,
    pace: Duration::ZERO,
    is_batching: false,
    rate: None,
    concurrency: None,
    order: Order::Plain,
    answer_time: |_, _| QUICK,
    unhealthy: 1,
    slow_from: Duration::ZERO,
};

impl Case {
    /// Runs it until every event is delivered and nothing is left to do.
    pub(super) fn run(&self) -> Measured {
        let lambda = self.lambda();
        let topics: Vec<_> = (0..self.topics()).map(topic).collect();
        let published = publish(&lambda.state, &topics, self.events, self.per_request);
        let deliveries = self.events * self.subscribers;
        let is_over = || {
            let is_late = lambda.clock.monotonic() > LENGTH_MAX;
            assert!(
                !is_late,
                "{}: {} of {deliveries}",
                self.name,
                lambda.endpoints.delivered()
            );
            let slow = lambda
                .slow
                .as_ref()
                .map_or(0, |(queue, _)| queue.in_flight());
            lambda.endpoints.delivered() == deliveries && lambda.queue.in_flight() + slow == 0
        };
        let run = lambda.run((self.pollers, self.batch), (published, self.pace), is_over);
        clockwork::run(&lambda.clock, run);
        let waiting = [layout::PARKED, layout::HELD].map(|prefix| lambda.state.keys(prefix).len());
        let slow = lambda.slow.as_ref().map(|(queue, _)| queue);
        let slow_queue = slow.map_or_else(Counts::default, Sqs::counts);
        let slow_left = slow.map_or(0, |queue| queue.take_messages().len());
        let queue_left = lambda.queue.take_messages().len() + slow_left;
        Measured {
            invocations: *lambda.invocations.lock(),
            queue: lambda.queue.counts(),
            slow_queue,
            gets: lambda.calls.count(PortOperation::Get)
                + lambda.calls.count(PortOperation::GetIfChanged),
            puts: lambda.calls.count(PortOperation::Put) + lambda.calls.count(PortOperation::List),
            left: queue_left + waiting.iter().sum::<usize>(),
            endpoints: lambda.endpoints,
        }
    }

    fn lambda(&self) -> Lambda {
        let clock = ManualClock::new(START);
        let state = MemoryStore::default();
        for number in 0..self.topics() {
            let topic = topic(number);
            let record = TopicRecord {
                name: topic.clone(),
                ..record(&self.subscriptions(number))
            };
            state.write(&layout::topic_record_key(&topic), record.render());
        }
        let queue = Sqs::new(clock.clone(), self.order);
        let slow = self
            .slow
            .map(|pollers| (Sqs::of_slow_lane(clock.clone()), pollers));
        let queue = match &slow {
            Some((slow, _)) => queue.beside_slow(slow),
            None => queue,
        };
        Lambda {
            queue,
            slow,
            calls: RecordedCalls::default(),
            endpoints: Endpoints::new(clock.clone(), self.answer_time),
            state,
            clock,
            invocations: Mutex::default(),
        }
    }

    /// The number of topics that the subscriptions need. Each event is published to all of them.
    fn topics(&self) -> usize {
        self.subscribers.div_ceil(SUBSCRIPTIONS_PER_TOPIC_MAX)
    }

    /// The subscriptions of the topic of this number.
    fn subscriptions(&self, topic: usize) -> Value {
        let batching = self
            .is_batching
            .then(|| json!({ "maxEventsPerBatch": 100 }));
        let subscription = |n: usize| {
            let mut endpoint = json!({ "url": format!("https://s{n}.example.com/hook") });
            if let Some(rate) = self.rate.filter(|_| n == 0) {
                endpoint["maxRequestsPerSecond"] = json!(rate);
            }
            if let Some(most) = self.concurrency.filter(|_| n == 0) {
                endpoint["maxConcurrentRequests"] = json!(most);
            }
            (
                format!("s{n}"),
                json!({ "endpoint": endpoint, "batching": batching }),
            )
        };
        let first = topic * SUBSCRIPTIONS_PER_TOPIC_MAX;
        (first..self.subscribers.min(first + SUBSCRIPTIONS_PER_TOPIC_MAX))
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
        self.healthy_waits_in(case, Duration::ZERO..Duration::MAX)
    }

    /// The same of those that are published in this time.
    pub(super) fn healthy_waits_in(&self, case: &Case, time: Range<Duration>) -> Vec<Duration> {
        let published = |id: &str| case.pace * id.parse::<u32>().expect("a number");
        let unhealthy: Vec<_> = (0..case.unhealthy)
            .map(|n| format!("s{n}.example.com"))
            .collect();
        let of = |((id, host), at): (&(String, String), &Vec<Duration>)| {
            let published = published(id);
            let counts = time.contains(&published) && !unhealthy.contains(host);
            counts.then(|| at[0].saturating_sub(published))
        };
        let mut waits: Vec<_> = self
            .endpoints
            .seen(|seen| seen.taken.iter().filter_map(of).collect());
        waits.sort();
        waits
    }
}
