//! An installation under test: all functions over one store, several workers, producers and
//! operators, on a clock that is moved by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures_util::future::join_all;
use http::Request as HttpRequest;
use posthaste_core::attempt::SendFailure;
use posthaste_core::model::Timestamp;
use posthaste_local::{LocalQueue, StateStore};
use posthaste_ports::{Clock, ErrorKind, QueueName};
use posthaste_publish::{Advice, BodyBudget, Publish, PublishSettings};
use posthaste_services::{Activity, PressureReader, Registry, WrongKeys};
use posthaste_simulation::{Answer, Api, Faults, Request, Worker, World};
use posthaste_testkit::faulty::Plan;
use posthaste_testkit::{Fault, Faulty, ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};

use crate::course::{Behaviour, Course, Subscriber};

type Ports = TestPorts<Faulty<LocalQueue<ManualClock>>, Faulty<StateStore>>;

/// The topic of all courses.
pub(crate) const TOPIC: &str = "orders";

/// Steps of time. Short passes are watched closely, long ones coarsely.
const STEP: Duration = Duration::from_secs(1);
const LONG_STEP: Duration = Duration::from_secs(20);
const LONG_PASS: Duration = Duration::from_mins(10);

/// The time of a slow answer: longer than what makes a target slow.
const SLOW: Duration = Duration::from_secs(3);

/// Moves of the clock within one call, after which the call counts as stuck: it has limits of
/// minutes.
const MOVES_MAX: u32 = 10_000;

/// Faults that are armed while the installation runs. Its processes share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trouble {
    /// The calls until the next fault; below zero there is none.
    calls_left: Arc<AtomicI64>,
    /// Whether that call happens all the same.
    is_done: Arc<AtomicU64>,
    /// The faults so far.
    faults: Arc<AtomicU64>,
}

impl Trouble {
    fn new() -> Self {
        let trouble = Self::default();
        trouble.calls_left.store(-1, Ordering::Relaxed);
        trouble
    }

    fn plan(&self) -> Plan {
        let trouble = self.clone();
        Plan::by(move |_| {
            if trouble.calls_left.load(Ordering::Relaxed) < 0
                || trouble.calls_left.fetch_sub(1, Ordering::Relaxed) > 0
            {
                return None;
            }
            trouble.faults.fetch_add(1, Ordering::Relaxed);
            Some(match trouble.is_done.load(Ordering::Relaxed) {
                0 => Fault::Before(ErrorKind::Other),
                _ => Fault::After(ErrorKind::Other),
            })
        })
    }
}

/// The installation.
pub(crate) struct Installation {
    world: World,
    others: Vec<Worker>,
    workers: usize,
    behaviours: Vec<(&'static str, Behaviour)>,
    trouble: Trouble,
    publish_key: String,
    requests: Vec<Request>,
    minute: u64,
}

impl Installation {
    /// One with the topic and the subscriptions of a course.
    pub(crate) async fn of(course: &Course) -> Self {
        let trouble = Trouble::new();
        let world = World::with(&faults(&trouble));
        let minute = minute_of(world.clock.now());
        let mut installation = Self {
            world,
            others: Vec::new(),
            workers: course.workers,
            behaviours: Vec::new(),
            trouble,
            publish_key: String::new(),
            requests: Vec::new(),
            minute,
        };
        installation.employ();
        installation.subscribe(&course.subscribers).await;
        installation
    }

    async fn subscribe(&mut self, subscribers: &[Subscriber]) {
        let settings: serde_json::Map<_, _> = subscribers
            .iter()
            .map(|it| (it.name.to_owned(), it.settings.clone()))
            .collect();
        let topic = json!({ "subscriptions": settings });
        let (status, answer) = self.api().ask("PUT", "/topics/orders", &topic).await;
        assert_eq!(status, 201, "the settings of a course are right: {answer}");
        let (_, keys) = self
            .api()
            .ask("GET", "/topics/orders/keys", &Value::Null)
            .await;
        keys["key1"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut self.publish_key);
        for subscriber in subscribers {
            self.behave(subscriber.name, Behaviour::Well);
        }
    }

    fn employ(&mut self) {
        let seeds = 1..self.workers as u64;
        self.others = seeds.map(|seed| self.world.another_worker(seed)).collect();
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// The faults that have happened.
    pub(crate) fn faults(&self) -> u64 {
        self.trouble.faults.load(Ordering::Relaxed)
    }

    /// A call fails, so many calls from now.
    pub(crate) fn arm(&self, calls: u64, is_done: bool) {
        self.trouble
            .is_done
            .store(u64::from(is_done), Ordering::Relaxed);
        let calls = i64::try_from(calls).unwrap_or(i64::MAX);
        self.trouble.calls_left.store(calls, Ordering::Relaxed);
    }

    /// No armed fault happens any more.
    pub(crate) fn disarm(&self) {
        self.trouble.calls_left.store(-1, Ordering::Relaxed);
    }

    pub(crate) fn api(&self) -> Api {
        self.world.api()
    }

    /// The endpoint of a subscription behaves so from now on.
    pub(crate) fn behave(&mut self, name: &'static str, behaviour: Behaviour) {
        self.behaviours.retain(|(of, _)| *of != name);
        self.behaviours.push((name, behaviour));
        let answer = answer(behaviour);
        self.world.endpoint.answer_at(format!("/{name}/"), answer);
    }

    /// Publishes events, and answers the status.
    pub(crate) async fn publish(&self, headers: &[(&str, String)], events: &[Value]) -> u16 {
        let mut request = HttpRequest::post("/")
            .header("content-type", "application/cloudevents-batch+json")
            .header("aeg-sas-key", &self.publish_key);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let body = Body::from(json!(events).to_string());
        let request = request.body(body).expect("a request");
        let publish = self.publish_function();
        let work = Box::pin(publish.publish(TOPIC, request));
        match self.in_time(work).await {
            Ok(_) => 200,
            Err(error) => error.problem().status.as_u16(),
        }
    }

    /// publish, as an instance that knows nothing yet.
    fn publish_function(&self) -> Arc<Publish<Ports>> {
        let clock = self.world.clock.clone();
        let plan = self.trouble.plan();
        let state = || Faulty::new(self.world.local.state(), "state", &plan);
        let queue = |name, label| Faulty::new(self.world.local.queue(name), label, &plan);
        Arc::new(Publish {
            deliveries: queue(QueueName::Deliveries, "deliveries"),
            records: Some(queue(QueueName::Records, "records")),
            slow_lane: None,
            registry: Registry::new(state(), clock.clone(), Duration::ZERO),
            payloads: state(),
            pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
            entropy: SeededEntropy::new(clock.now().as_millis()),
            clock,
            activity: Activity::default(),
            bodies: BodyBudget::new(10_000_000),
            advice: Advice::default(),
            wrong_keys: WrongKeys::default(),
            settings: PublishSettings {
                stores_for_log: true,
                ..PublishSettings::default()
            },
        })
    }

    /// Moves the clock on by a millisecond: requests of one have the same keys here.
    pub(crate) fn tick(&self) {
        self.world.clock.advance(Duration::from_millis(1));
    }

    /// Time passes, and everything runs that is due.
    pub(crate) async fn pass(&mut self, length: Duration) {
        let step = if length < LONG_PASS { STEP } else { LONG_STEP };
        let end = self.now() + length;
        self.run().await;
        while self.now() < end {
            self.world.clock.advance(step.min(end.since(self.now())));
            self.run().await;
        }
    }

    /// Every function runs that has work.
    async fn run(&mut self) {
        self.deliver().await;
        let minute = minute_of(self.now());
        if minute > self.minute {
            self.minute = minute;
            // A run that fails is made again in the next minute.
            let run = Box::pin(self.world.try_wake());
            drop(self.in_time(run).await);
            self.deliver().await;
        }
        if self.world.visible(QueueName::DeadLetters).await > 0 {
            self.in_time(Box::pin(self.world.bury())).await;
        }
        if self.world.visible(QueueName::Redrive).await > 0 {
            self.in_time(Box::pin(self.world.bury_redriven())).await;
        }
        if self.world.visible(QueueName::Records).await > 0 {
            self.in_time(Box::pin(self.world.record_some(100))).await;
        }
        self.requests.extend(self.world.endpoint.take());
    }

    /// All workers take what is visible, side by side.
    async fn deliver(&self) {
        // What is handed back is hidden, so that this ends.
        while self.world.visible(QueueName::Deliveries).await > 0 {
            let all = self.others.iter().map(Worker::deliver);
            let all = Box::pin(async {
                tokio::join!(self.world.deliver(), join_all(all));
            });
            self.in_time(all).await;
        }
    }

    /// Works, and whenever that waits for time, so much time passes.
    async fn in_time<F: Future>(&self, work: F) -> F::Output {
        let moves = async {
            for _ in 0..MOVES_MAX {
                self.world.rest().await;
                self.world.clock.advance_to_next();
            }
        };
        tokio::select! {
            biased;
            output = work => output,
            () = moves => panic!("a call is stuck"),
        }
    }

    /// All processes end in order, and others begin over what they left.
    pub(crate) async fn restart(self) -> Self {
        let now = self.now();
        let trouble = self.trouble.clone();
        let folder = self.world.end().await;
        let mut next = Self {
            world: World::over_with(folder, now, &faults(&trouble)),
            others: Vec::new(),
            ..self
        };
        next.employ();
        for (name, behaviour) in next.behaviours.clone() {
            next.behave(name, behaviour);
        }
        next
    }

    /// The requests that endpoints have seen since the last time.
    pub(crate) fn take_requests(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.requests)
    }

    /// Whether nothing waits any more.
    pub(crate) async fn is_at_rest(&self) -> bool {
        self.world.is_at_rest().await
            && self.world.visible(QueueName::DeadLetters).await == 0
            && self.world.delayed(QueueName::DeadLetters).await == 0
    }
}

fn faults(trouble: &Trouble) -> Faults {
    let plan = trouble.plan();
    Faults {
        queues: plan.clone(),
        state: plan.clone(),
        bucket: plan,
        log: Plan::none(),
    }
}

fn answer(behaviour: Behaviour) -> Answer {
    match behaviour {
        Behaviour::Well => Answer::Status(204),
        Behaviour::Busy => Answer::Status(503),
        Behaviour::AsksToWait => Answer::With(503, "retry-after", "120"),
        Behaviour::TooMany => Answer::Status(429),
        Behaviour::Refuses => Answer::Status(400),
        Behaviour::Unauthorized => Answer::Status(401),
        Behaviour::Gone => Answer::Status(410),
        Behaviour::Silent => Answer::Failure(SendFailure::TimedOut),
        Behaviour::Closes => Answer::Failure(SendFailure::Closed),
        Behaviour::Slow => Answer::Late(SLOW, 204),
    }
}

fn minute_of(time: Timestamp) -> u64 {
    time.as_millis() / 60_000
}
