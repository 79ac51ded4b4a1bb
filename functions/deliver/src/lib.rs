#![doc = include_str!("../README.md")]

mod circuit;
mod concurrency;
mod current;
mod deadlines;
mod disable;
mod invocation;
mod kept;
mod lanes;
mod late_answers;
mod limits;
mod notify;
mod outages;
mod payloads;
mod plan;
mod rate_limit;
mod receive;
mod records;
mod replace;
mod send;
mod settle;
mod shared_state;
mod slots;
#[cfg(test)]
mod testing;
mod waiting_place;

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::attempt::DrawnJitter;
use posthaste_core::lane::DeliveryLane;
use posthaste_ports::{BatchResponse, Clock, Entropy, Ports, ReceivedMessage};
use posthaste_services::{
    ActivityNotes, DrainMeter, EventTraces, LinkHealth, TopicRegistry, WakeSignaller, stop_at,
};
use tokio_util::sync::CancellationToken;

use circuit::CircuitBreaker;
use current::CurrentSubscriptions;
use deadlines::InvocationDeadlines;
pub use deadlines::{QUEUE_TIME, RECEIVING_TIME, SETTLING_TIME};
use disable::SubscriptionDisabler;
use invocation::Invocation;
use lanes::{DeliveryQueues, LaneWatch};
use late_answers::LateAnswers;
pub use limits::{
    DELAY_STEP_AWS, DeliverSettings, DisablingMode, LinkBoundsError, RecordsSettings, SlowLaneMode,
};
use notify::{DroppedNotices, NoticePorts};
use outages::OutageLookup;
use payloads::PayloadReader;
use plan::{RequestPlan, plan_requests};
use rate_limit::RateLimiter;
use receive::MessageReceiver;
pub use send::UNANSWERED;
use send::{AttemptMaker, EventPoster, RequestAdmission, RequestSender};
use settle::MessageSettler;
use settle::ending::MessageEnder;
use settle::records_queue::RecordsQueue;
use settle::waiting::WaitingObjects;
use slots::SlotLimiter;

/// The ports of deliver.
pub struct DeliverPorts<P: Ports> {
    /// The delivery queue.
    pub queue: P::Queue,
    /// The delivery queue of the slow lane, where there is one.
    pub slow_queue: Option<P::Queue>,
    /// The queue of records.
    pub records: P::Queue,
    /// The state bucket.
    pub state: P::Store,
    /// Topics and subscriptions.
    pub registry: TopicRegistry<P::Store, P::Clock>,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The way to the endpoints.
    pub webhook: P::Webhook,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
    /// The meter of the drain rate.
    pub drain: DrainMeter,
}

/// The function.
pub struct Deliver<P: Ports> {
    clock: P::Clock,
    entropy: P::Entropy,
    circuit: Arc<CircuitBreaker<P>>,
    late_answers: Arc<LateAnswers<P>>,
    /// `None` where there is one lane.
    lanes: Option<Arc<LaneWatch<P>>>,
    receiver: MessageReceiver<P>,
    sender: RequestSender<P>,
    settler: MessageSettler<P>,
    stopped: CancellationToken,
}

impl<P: Ports> Deliver<P> {
    /// Works on a batch, and answers by `deadline`, a time of the clock's `monotonic`. An attempt
    /// begins only if its timeout ends [`SETTLING_TIME`] before that. Events whose attempts did
    /// not begin go back to the queue without delay.
    ///
    /// Each message is settled as soon as its last event has a verdict, by itself or in a group
    /// that shares a message of records. The answer names those for which nothing could be made
    /// durable in time.
    pub fn handle(
        &self,
        batch: Vec<ReceivedMessage>,
        deadline: Duration,
    ) -> impl Future<Output = BatchResponse> + Send {
        self.handle_in(DeliveryLane::Quick, batch, deadline)
    }

    /// The same for a batch of the queue of this lane.
    pub async fn handle_in(
        &self,
        lane: DeliveryLane,
        batch: Vec<ReceivedMessage>,
        deadline: Duration,
    ) -> BatchResponse {
        let deadlines = InvocationDeadlines {
            began: self.clock.monotonic(),
            end: deadline,
        };
        let mut invocation = Invocation::new(deadlines, &batch);
        invocation.lane = lane;
        let work = async {
            Box::pin(self.circuit.know_start()).await;
            if let Some(lanes) = &self.lanes {
                invocation.slow_targets = Box::pin(lanes.known_slow_targets(&invocation)).await;
            }
            invocation.jobs = self.receiver.receive_batch(&invocation, batch).await;
            let invocation = &invocation;
            self.settler
                .settle_while(invocation, |settling| async move {
                    let requests = self.plan_requests(invocation);
                    self.sender.send_all(invocation, requests, &settling).await;
                })
                .await;
        };
        if stop_at(&self.clock, deadline, work).await.is_none() {
            tracing::error!("out of time, messages handed back that are not settled yet");
        }
        invocation.into_response()
    }

    /// The requests that an invocation makes, in their order.
    fn plan_requests(&self, invocation: &Invocation) -> Vec<RequestPlan> {
        plan_requests(
            &invocation.jobs,
            |delivery, subscription| self.circuit.is_problem(delivery, subscription),
            || DrawnJitter::new(self.entropy.fraction()),
        )
    }

    /// Waits for the answers of requests that timed out, each for at most
    /// [`LATE_ANSWER_MAX`](posthaste_core::model::LATE_ANSWER_MAX), until [`stop`](Self::stop) is
    /// called. Dropping it ends those requests. To be awaited once at a time, beside
    /// [`handle`](Self::handle).
    pub async fn hear_late_answers(&self) {
        self.late_answers.listen_until_closed().await;
    }

    /// The number of requests to endpoints that are open. Those that timed out are not among them.
    pub fn open_requests(&self) -> usize {
        self.sender.admission.limits.open_requests()
    }

    /// Begins no more attempts, and stops waiting for late answers. Events whose attempts did not
    /// begin go back to the queue. Called before the process ends.
    pub fn stop(&self) {
        self.stopped.cancel();
    }

    /// The same function, with the spans of its requests.
    #[must_use]
    pub fn with_traces(mut self, traces: EventTraces) -> Self {
        self.sender.attempts.poster.traces = traces;
        self
    }

    /// Wires the function up.
    pub fn new(ports: DeliverPorts<P>, settings: DeliverSettings) -> Self {
        let clock = ports.clock;
        let entropy = ports.entropy;
        let drain = ports.drain;
        let queue = Arc::new(ports.queue);
        let state = Arc::new(ports.state);
        let records = Arc::new(ports.records);
        let queues = DeliveryQueues::new(&queue, ports.slow_queue);
        let lanes = LaneWatch::for_worker(&queues, &state, &clock, &settings);
        let registry = Arc::new(ports.registry);
        let links = Arc::new(ports.links);
        let webhook = Arc::new(ports.webhook);
        let stopped = CancellationToken::new();
        let payloads = Arc::new(PayloadReader::new(state.clone(), clock.clone(), &settings));
        let late_max = settings.late_answers_max;
        let late_answers =
            LateAnswers::new(state.clone(), clock.clone(), late_max, stopped.clone());
        let late_answers = Arc::new(late_answers);
        let wake = Arc::new(WakeSignaller::new(state.clone(), clock.clone()));
        let circuit = Arc::new(CircuitBreaker::new(
            links.clone(),
            wake.clone(),
            webhook.clone(),
            clock.clone(),
            entropy.clone(),
        ));
        let current =
            CurrentSubscriptions::new(registry.clone(), clock.clone(), settings.disabling);
        let current = Arc::new(current);
        let notice_ports = Arc::new(NoticePorts::new(queue, &state, &registry, &clock, &entropy));
        Self {
            receiver: MessageReceiver {
                queues: queues.clone(),
                registry,
                state: state.clone(),
                clock: clock.clone(),
                drain: drain.clone(),
                delivery_log: settings.delivery_log,
            },
            sender: RequestSender {
                admission: RequestAdmission {
                    clock: clock.clone(),
                    limits: settings.concurrency_limits(drain.clone(), stopped.clone()),
                    slots: SlotLimiter::new(&state, clock.clone(), entropy.clone()),
                    rates: RateLimiter::new(state.clone(), clock.clone()),
                    circuit: circuit.clone(),
                    current: current.clone(),
                },
                payloads: payloads.clone(),
                attempts: AttemptMaker {
                    poster: EventPoster {
                        webhook,
                        clock: clock.clone(),
                        origin: settings.origin,
                        sender_headers: settings.sender_headers,
                        late_answers: late_answers.clone(),
                        traces: EventTraces::default(),
                        lanes: lanes.clone(),
                    },
                    current: current.clone(),
                    clock: clock.clone(),
                    entropy: entropy.clone(),
                    delay_step: settings.delay_step,
                },
                requests_per_link_start: settings.requests_per_link_start,
            },
            settler: MessageSettler {
                circuit: circuit.clone(),
                disabler: SubscriptionDisabler {
                    ports: notice_ports.clone(),
                    wake: wake.clone(),
                    current: current.clone(),
                },
                ender: MessageEnder {
                    queues: queues.clone(),
                    state: state.clone(),
                    clock: clock.clone(),
                    drain,
                    current,
                    activity: ActivityNotes::default(),
                    outages: OutageLookup::new(links.clone(), clock.clone()),
                    notices: DroppedNotices::new(notice_ports, payloads),
                },
                records: RecordsQueue::new(records, clock.clone(), settings.records),
                waiting: WaitingObjects {
                    queues,
                    state,
                    clock: clock.clone(),
                    entropy: entropy.clone(),
                    wake,
                },
                links,
            },
            clock,
            entropy,
            circuit,
            late_answers,
            lanes,
            stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestPorts;

    /// Event sources spawn invocations.
    #[test]
    fn an_invocation_may_move_between_threads() {
        fn check<T: Send>(_: impl Fn(&'static Deliver<TestPorts>) -> T) {}
        check(|deliver| deliver.handle(Vec::new(), Duration::ZERO));
        check(Deliver::hear_late_answers);
    }

    /// An invocation is one piece of memory, made and freed for each message that comes alone. What
    /// is rare is boxed, so that it takes no room in it.
    #[test]
    fn an_invocation_is_small() {
        const BYTES_MAX: usize = 4750;
        fn check<T>(make: impl Fn(&'static Deliver<TestPorts>) -> T) -> usize {
            drop(make);
            size_of::<T>()
        }
        let bytes = check(|deliver| deliver.handle(Vec::new(), Duration::ZERO));
        assert!(bytes <= BYTES_MAX, "{bytes}");
    }
}
