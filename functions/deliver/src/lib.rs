//! deliver: takes due deliveries, posts their events, and puts what failed where it waits.
//!
//! Every rule is a decision of `posthaste_core`; here they are loaded for, asked, and applied in crash-safe order:
//! a successor is durable before its message is deleted, message by message. What this is not: it keeps no state
//! between invocations but caches and the bounds on concurrency.

mod activity;
mod announce;
mod attempt;
mod concurrency;
mod health;
mod intake;
mod invocation;
mod late;
mod park;
mod payloads;
mod posted;
mod rates;
mod report;
mod retire;
mod settle;
mod shares;
mod texts;
mod times;

use std::time::Duration;

use http::HeaderValue;
use posthaste_ports::{BatchResponse, Clock, Ports, ReceivedMessage};
use posthaste_services::{Activity, DrainMeter, LinkHealth, Registry};

use concurrency::{Bound, ConcurrencyLimits, subscription_max};
use health::Health;
use invocation::Invocation;
use late::LateAnswers;
use payloads::PayloadBudget;
use rates::Rates;
pub use times::{QUEUE_TIME, SETTLING_TIME, TAKING_IN_TIME};

/// What deliver needs from outside.
pub struct DeliverPorts<P: Ports> {
    /// The delivery queue.
    pub queue: P::Queue,
    /// The state bucket.
    pub state: P::Store,
    /// Topics and subscriptions.
    pub registry: Registry<P::Store, P::Clock>,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The way to the endpoints.
    pub webhook: P::Webhook,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
    /// Where the drain rate is measured.
    pub drain: DrainMeter,
}

/// What an operator may set.
#[derive(Debug, Clone)]
pub struct DeliverSettings {
    /// Most requests open at once, over all endpoints.
    pub requests_max: usize,
    /// Requests open at once to one link while few wait for it.
    pub requests_per_link_start: usize,
    /// For every so many requests that wait for a link, one more is open at once.
    pub waiting_per_connection: usize,
    /// Most requests open at once to one link however many wait, so that a slow one cannot take all. A quarter of them is
    /// kept for subscriptions that have none open.
    pub requests_per_link_max: usize,
    /// Most bytes of stored payloads held at once, over all requests. A request that needs more is made alone. Its
    /// body takes as much again.
    pub payload_bytes_max: u32,
    /// Most stored payloads read at once.
    pub payload_reads_max: usize,
    /// Who asks, for `WebHook-Request-Origin` and `Origin`.
    pub origin: HeaderValue,
}

/// The bounds of requests to one link contradict each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{start} requests to one link while few wait are more than {max}, the most that are ever open to it")]
pub struct LinkBoundsError {
    start: usize,
    max: usize,
}

/// The function.
pub struct Deliver<P: Ports> {
    ports: DeliverPorts<P>,
    settings: DeliverSettings,
    limits: ConcurrencyLimits,
    payloads: PayloadBudget,
    activity: Activity,
    rates: Rates,
    late: LateAnswers,
    health: Health,
}

impl DeliverSettings {
    /// Whether the bounds of requests to one link fit each other.
    pub fn check_link_bounds(&self) -> Result<(), LinkBoundsError> {
        let Self { requests_per_link_start: start, requests_per_link_max: max, .. } = *self;
        if start > max { Err(LinkBoundsError { start, max }) } else { Ok(()) }
    }
}

impl Default for DeliverSettings {
    fn default() -> Self {
        Self {
            requests_max: 8192,
            requests_per_link_start: 10,
            waiting_per_connection: 20,
            requests_per_link_max: 64,
            payload_bytes_max: 256 << 20,
            payload_reads_max: 64,
            origin: posthaste_core::model::origin::DEFAULT,
        }
    }
}

impl DeliverSettings {
    fn per_subscription(&self) -> Bound {
        let max = subscription_max(self.requests_per_link_max);
        Bound::new(self.requests_per_link_start, self.waiting_per_connection, max)
    }
}

impl<P: Ports> Deliver<P> {
    /// Wires the function up.
    pub fn new(ports: DeliverPorts<P>, settings: DeliverSettings) -> Self {
        let limits = ConcurrencyLimits::new(
            settings.requests_max,
            settings.per_subscription(),
            settings.requests_per_link_max,
        );
        let payloads = PayloadBudget::new(settings.payload_bytes_max, settings.payload_reads_max);
        let (rates, late) = (Rates::default(), LateAnswers::new());
        Self {
            ports,
            settings,
            limits,
            payloads,
            activity: Activity::default(),
            rates,
            late,
            health: Health::default(),
        }
    }

    /// Begins no attempt any more, and waits for no late answer: what has not begun goes back to the queue. For a process
    /// that is to end.
    pub fn stop(&self) {
        self.limits.close();
        self.late.close();
    }

    /// Works on a batch, and answers by `deadline`, a time of the clock's `monotonic`. An attempt is begun only if its
    /// timeout ends [`SETTLING_TIME`] before that, and what was not begun goes back to the queue without delay.
    ///
    /// Each message is settled by itself as soon as its last event has a verdict. The answer names those for which
    /// nothing durable could be done in time.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let mut invocation = Invocation::new(self.ports.clock.monotonic(), deadline, &batch);
        if self.before(deadline, self.work(&mut invocation, batch)).await.is_none() {
            tracing::error!("out of time, messages handed back that are not settled yet");
        }
        invocation.response()
    }

    async fn work(&self, invocation: &mut Invocation, batch: Vec<ReceivedMessage>) {
        self.take_in(invocation, batch).await;
        let requests = self.plan(invocation);
        self.attempt_all(invocation, requests).await;
        self.note_invocation(invocation).await;
        self.park(invocation).await;
    }
}
