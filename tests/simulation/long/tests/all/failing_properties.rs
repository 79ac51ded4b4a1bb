//! An endpoint is not hammered, nothing is lost or stuck, and only sent requests are charged,
//! whatever the endpoint does and whatever happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, Observation, TargetPhase};
use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_ports::{Clock, QueueName};
use posthaste_simulation::{Answer, Request, World, event};
use proptest::prelude::*;
use serde_json::{Value, json};

const DAY: Duration = Duration::from_hours(24);

/// The shortest hold: no two requests that fail are closer while an endpoint is not well.
const PROBE_EVERY: Duration = Duration::from_mins(1);

/// Steps of a course, and courses. Each takes a part of a second.
const STEPS_MAX: usize = 40;
const CASES: u32 = 12;

/// Number of times that deliver and wake run during a course.
const STEP: Duration = Duration::from_secs(45);

/// Number of times that they run after it, and the most: everything expires within a day.
const END_STEP: Duration = Duration::from_mins(7);
const END_STEPS_MAX: u32 = 25 * 60 / 7;

#[derive(Debug, Clone)]
enum Step {
    Answers(Endpoint),
    Publish {
        events: usize,
        time_to_live: Duration,
    },
    Time(Duration),
    Force,
}

#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Well,
    Busy,
    Refused,
    Silent,
    BadRequest,
}

impl Endpoint {
    fn answer(self) -> Answer {
        match self {
            Self::Well => Answer::Status(204),
            Self::Busy => Answer::Status(503),
            Self::Refused => Answer::Failure(SendFailure::Socket),
            Self::Silent => Answer::Failure(SendFailure::TimedOut),
            Self::BadRequest => Answer::Status(400),
        }
    }

    /// True if it is asked no more often than a probe may be made.
    fn is_failing(self) -> bool {
        matches!(self, Self::Busy | Self::Refused | Self::Silent)
    }
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    prop_oneof![
        3 => Just(Endpoint::Well),
        3 => Just(Endpoint::Busy),
        3 => Just(Endpoint::Refused),
        2 => Just(Endpoint::Silent),
        1 => Just(Endpoint::BadRequest),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let time_to_live =
        prop_oneof![3 => Just(DAY), 1 => (60..3600_u64).prop_map(Duration::from_secs)];
    prop_oneof![
        2 => endpoint().prop_map(Step::Answers),
        5 => (1..5_usize, time_to_live)
            .prop_map(|(events, time_to_live)| Step::Publish { events, time_to_live }),
        4 => (1..300_u64).prop_map(|secs| Step::Time(Duration::from_secs(secs))),
        1 => (5..45_u64).prop_map(|minutes| Step::Time(Duration::from_mins(minutes))),
        1 => Just(Step::Force),
    ]
}

/// A world, and what was seen of it.
struct Course {
    world: World,
    endpoint: Endpoint,
    published: BTreeSet<String>,
    /// The number of requests with each event, and whether it arrived.
    sent: BTreeMap<String, Vec<bool>>,
    /// The last request that failed while the endpoint's deliveries paused.
    failed_probe_at: Option<Timestamp>,
}

impl Course {
    async fn new() -> Self {
        let world = World::new();
        world.subscribe(json!({})).await;
        let published = BTreeSet::new();
        let sent = BTreeMap::new();
        Self {
            world,
            endpoint: Endpoint::Well,
            published,
            sent,
            failed_probe_at: None,
        }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Answers(endpoint) => {
                self.endpoint = endpoint;
                self.world.endpoint.answer([endpoint.answer()]);
            }
            Step::Publish {
                events,
                time_to_live,
            } => {
                let ids: Vec<_> = (0..events)
                    .map(|n| (self.published.len() + n).to_string())
                    .collect();
                let events: Vec<_> = ids.iter().map(|id| event(id)).collect();
                self.world.publish(&events, time_to_live).await;
                self.published.extend(ids);
                self.deliver().await;
            }
            Step::Time(length) => self.pass(STEP, length).await,
            Step::Force => {
                let forced = targets().map(|target| (target, Observation::Forced));
                self.world.links.observe(&forced).await.unwrap();
                self.failed_probe_at = None;
            }
        }
    }

    /// In each step of time deliver and wake run.
    async fn pass(&mut self, step: Duration, length: Duration) {
        let end = self.world.clock.now() + length;
        while self.world.clock.now() < end {
            self.world
                .clock
                .advance(step.min(end.since(self.world.clock.now())));
            self.deliver().await;
            self.world.wake().await;
            self.deliver().await;
        }
    }

    /// Delivers what is visible, and looks at each invocation's requests.
    async fn deliver(&mut self) {
        while self.world.visible(QueueName::Deliveries).await > 0 {
            let is_left_alone = self.is_left_alone();
            self.world.deliver().await;
            let requests = self.world.endpoint.take();
            if is_left_alone && self.endpoint.is_failing() {
                self.check_probes(&requests);
            } else if !requests.is_empty() {
                self.failed_probe_at = None;
            }
            for request in &requests {
                self.note(request);
            }
        }
    }

    /// True if nothing but a probe is sent. A probe that is answered 503 shows that its link is
    /// well, so that others follow it at once: then only the subscription's own state says so.
    fn is_left_alone(&self) -> bool {
        let is_answered = matches!(self.endpoint, Endpoint::Busy);
        let counts =
            |target: &DeliveryTarget| !(is_answered && matches!(target, DeliveryTarget::Link(_)));
        let condition = |target| self.world.links.condition(&target);
        targets()
            .into_iter()
            .filter(counts)
            .filter_map(condition)
            .any(|it| it.phase != TargetPhase::Recovering)
    }

    fn check_probes(&mut self, requests: &[Request]) {
        assert!(requests.len() <= 1, "{requests:?}");
        for Request { at, .. } in requests {
            if let Some(last) = self.failed_probe_at.replace(*at) {
                assert!(*at >= last + PROBE_EVERY, "{last:?} {at:?}");
            }
        }
    }

    /// Every request says truly how many there were before.
    fn note(&mut self, request: &Request) {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let id = body["id"].as_str().unwrap().to_owned();
        let sent = self.sent.entry(id).or_default();
        assert_eq!(
            request.headers["aeg-delivery-count"],
            sent.len().to_string()
        );
        assert!(!sent.contains(&true), "it had arrived: {request:?}");
        sent.push(matches!(self.endpoint, Endpoint::Well));
    }

    async fn end(mut self) {
        self.take(Step::Answers(Endpoint::Well)).await;
        let mut steps = 0;
        while !self.world.is_at_rest().await {
            self.pass(END_STEP, END_STEP).await;
            steps += 1;
            assert!(
                steps < END_STEPS_MAX,
                "stuck: {:?}",
                self.world.links.read_all().await
            );
        }
        let mut ended: Vec<_> = self
            .sent
            .iter()
            .filter(|(_, sent)| sent.contains(&true))
            .map(|(id, _)| id.clone())
            .collect();
        for letter in self.world.letters().await {
            let attempts = self.sent.get(&letter.id).map_or(0, Vec::len);
            assert_eq!(letter.attempts, attempts as u64, "{letter:?}");
            ended.push(letter.id);
        }
        ended.sort();
        assert_eq!(ended, self.published.into_iter().collect::<Vec<_>>());
    }
}

fn targets() -> [DeliveryTarget; 2] {
    [
        "https://billing.example.com:443",
        "https://billing.example.com:443 orders.billing",
    ]
    .map(|text| DeliveryTarget::parse(text).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn no_course_of_things_hammers_an_endpoint_or_loses_or_wrongly_charges_an_event(
        steps in prop::collection::vec(step(), 1..STEPS_MAX)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut course = Course::new().await;
            for step in steps {
                course.take(step).await;
            }
            Box::pin(course.end()).await;
        });
    }
}
