//! A host that is down for five days, with three subscriptions on it, one event that brings it down
//! whenever it comes, and a second outage in the middle of the recovery: everything arrives by
//! itself once, or is listed with its reason, and a subscription elsewhere does not notice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{Clock, ObjectStore, QueueName};
use posthaste_simulation::{Answer, LinkPath, Request, World, event};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const PATHS: [&str; 3] = ["shop.billing", "shop.crm", "shop.mail"];

/// Events of each path on each of the first days.
const EVENTS_A_DAY: usize = 120;

const DAYS_WITH_EVENTS: usize = 3;

/// The most of its dead letters a second for a subscription.
const RATE: usize = 2;

/// The steps of time while nothing happens at the host.
const COARSE: Duration = Duration::from_mins(20);

/// The time for which the host is down after it was sent the event that brings it down.
const CRASH: Duration = Duration::from_mins(15);

const HOST: &str = "billing.example.com";
const ELSEWHERE: &str = "well.example.com";

/// The longest that the host may take to get all that it missed, and then three times the event that
/// brings it down.
const RECOVERED_WITHIN: Duration = Duration::from_hours(12);

/// Most events that may be on their way beside the one that brings the host down, three times each.
const COMPANIONS_MAX: usize = 3;

/// An event towards a path: the path, and the event's id.
type Event = (String, String);

struct Days {
    world: World,
    /// Whether the host takes requests, unless it has crashed.
    is_up: bool,
    /// The end of its last crash.
    crashed_until: Timestamp,
    published: BTreeSet<Event>,
    /// The `webhook-id` of each request that was answered with success.
    arrived: BTreeMap<Event, Vec<String>>,
    /// The `webhook-id`s of all requests.
    requested: BTreeMap<Event, BTreeSet<String>>,
    /// The times at which dead letters were sent again, by path.
    sent_again: BTreeMap<String, Vec<Timestamp>>,
    crashes: usize,
    /// The number of events so far, for those that are published while time passes.
    number: usize,
    /// The events for elsewhere that have not arrived, and the times at which they were published.
    elsewhere: BTreeMap<String, Timestamp>,
    /// The longest that an event for elsewhere took, in steps of time.
    elsewhere_steps: u128,
}

fn is_poison(body: &str) -> bool {
    body.contains("\"id\":\"poison\"")
}

impl Days {
    async fn new() -> Self {
        let world = World::new();
        world.chance.hold(0.0);
        let settings = json!({
            "deadLetter": { "delay": "PT0S" },
            // The event that brings the host down is given up while that is known to be failing.
            "retryPolicy": { "maxDeliveryAttempts": 6 },
            "recovery": { "within": "P30D", "ratePerSecond": RATE },
        });
        let path = |place: &&str| LinkPath::scripted(place).with(settings.clone());
        world
            .subscribe_paths(&PATHS.iter().map(path).collect::<Vec<_>>())
            .await;
        let url = format!("https://{ELSEWHERE}/");
        world.subscribe(json!({ "endpoint": { "url": url } })).await;
        world.endpoint.answer_at(ELSEWHERE, Answer::Status(204));
        let days = Self {
            is_up: false,
            crashed_until: world.clock.now(),
            published: BTreeSet::new(),
            arrived: BTreeMap::new(),
            requested: BTreeMap::new(),
            sent_again: BTreeMap::new(),
            crashes: 0,
            number: 0,
            elsewhere: BTreeMap::new(),
            elsewhere_steps: 0,
            world,
        };
        days.world.endpoint.answer_at(HOST, Self::DOWN);
        days
    }

    const DOWN: Answer = Answer::Failure(SendFailure::Socket);

    /// The host is down until it rises.
    fn fall(&mut self) {
        self.is_up = false;
        self.world.endpoint.answer_at(HOST, Self::DOWN);
    }

    fn rise(&mut self) {
        self.is_up = true;
        let crashes = Answer::CrashesFor(is_poison, CRASH);
        self.world.endpoint.answer_at(HOST, crashes);
    }

    async fn publish(&mut self, path: &str, ids: &[String]) {
        let events: Vec<_> = ids.iter().map(|id| event(id)).collect();
        self.world.publish_to(path, &events, 1).await;
        let (_, name) = path.split_once('.').unwrap();
        let own = ids.iter().map(|id| (name.to_owned(), id.clone()));
        self.published.extend(own);
        // Keys are made of the time.
        self.world.clock.advance(Duration::from_millis(1));
    }

    /// The host is in use: an event for each of its paths.
    async fn publish_to_each(&mut self) {
        self.number += 1;
        for path in PATHS {
            self.publish(path, &[format!("other-{}", self.number)])
                .await;
        }
    }

    /// Time passes in steps, with an event for elsewhere in each.
    async fn pass(&mut self, step: Duration, length: Duration) {
        let end = self.world.clock.now() + length;
        while self.world.clock.now() < end {
            let now = self.world.clock.now();
            self.number += 1;
            let id = format!("elsewhere-{}", self.number);
            self.world.publish(&[event(&id)], DAY).await;
            self.elsewhere.insert(id, now);
            self.world.pass_by(step, step).await;
            while self.world.visible(QueueName::DeadLetters).await > 0 {
                self.world.bury().await;
            }
            for request in self.world.endpoint.take() {
                self.hear(&request, step);
            }
        }
    }

    fn hear(&mut self, request: &Request, step: Duration) {
        let event: Value = serde_json::from_str(&request.body).unwrap();
        let id = event["id"].as_str().unwrap().to_owned();
        let Some((_, path)) = request.url.split_once("/shop.") else {
            let published = self.elsewhere.remove(&id).expect("it arrives once");
            let steps = request.at.since(published).as_millis() / step.as_millis();
            self.elsewhere_steps = self.elsewhere_steps.max(steps);
            return;
        };
        let path = path.trim_end_matches('/').to_owned();
        let header = |name: &str| request.headers.get(name).map(|it| it.to_str().unwrap());
        if header("posthaste-replayed").is_some() && header("posthaste-attempt") == Some("1") {
            let times = self.sent_again.entry(path.clone()).or_default();
            times.push(request.at);
        }
        let webhook_id = header("webhook-id").unwrap().to_owned();
        let event = (path, id);
        let ids = self.requested.entry(event.clone()).or_default();
        ids.insert(webhook_id.clone());
        if !self.is_up || request.at < self.crashed_until {
            return;
        }
        if is_poison(&request.body) {
            self.crashes += 1;
            self.crashed_until = request.at + CRASH;
        } else {
            self.arrived.entry(event).or_default().push(webhook_id);
        }
    }

    /// The dead letters that are not resolved, by the ids of their events: one of each.
    async fn unresolved(&self) -> BTreeMap<String, Value> {
        let mut letters = BTreeMap::new();
        for letter in self.world.unresolved().await {
            let id = letter["id"].as_str().unwrap().to_owned();
            let key = letter["webhookid"].as_str().unwrap();
            let other = letters.insert(format!("{id} {key}"), letter);
            assert_eq!(other, None, "two letters of one event");
        }
        letters
    }

    /// The host is up, until this is so. No path gets more than its rate in any second.
    async fn recover_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        self.rise();
        self.sent_again.clear();
        for _ in 0..2 * 60 {
            self.pass(SECOND, MINUTE).await;
            if is_so(self) {
                break;
            }
        }
        assert!(is_so(self), "{} arrived", self.arrived.len());
        for (path, times) in &self.sent_again {
            let most = most_within(times, SECOND);
            assert!(most <= RATE, "{path}: {most}");
        }
    }

    /// Returns the events that have not arrived, but for the one that cannot.
    fn missed(&self) -> Vec<&Event> {
        let all = self.published.iter();
        all.filter(|event| event.1 != "poison" && !self.arrived.contains_key(*event))
            .collect()
    }

    /// Whether all has arrived but for the event that was recovered three times, and what was on its
    /// way beside it each time.
    async fn is_over(&self) -> bool {
        let recovered = |letter: &Value| letter["recoveries"] == 3;
        let letters = self.unresolved().await;
        self.marks().await == 0
            && self.missed().len() + 1 == letters.len()
            && letters.values().all(recovered)
    }

    /// The marks of outages that have letters.
    async fn marks(&self) -> usize {
        let state = self.world.local.state_store();
        let page = state.list(layout::RECOVERY, None, 100).await.unwrap();
        let mut marks = 0;
        for object in page.objects {
            let mark = state.get(&object.key).await.unwrap().unwrap();
            marks += usize::from(!RecoveryMark::parse(&mark.bytes).unwrap().is_empty());
        }
        marks
    }
}

/// The most of these times that lie within a length.
fn most_within(times: &[Timestamp], length: Duration) -> usize {
    let within = |from: &Timestamp| {
        let of_it = times
            .iter()
            .filter(|at| *at >= from && **at < *from + length);
        of_it.count()
    };
    times.iter().map(within).max().unwrap_or_default()
}

#[tokio::test]
async fn five_days_of_outage_recover_by_themselves() {
    let mut days = Days::new().await;
    for day in 0..DAYS_WITH_EVENTS {
        for path in PATHS {
            let ids: Vec<_> = (0..EVENTS_A_DAY).map(|n| format!("{day}-{n}")).collect();
            for ten in ids.chunks(10) {
                days.publish(path, ten).await;
            }
        }
        if day == 1 {
            days.publish(PATHS[0], &["poison".to_owned()]).await;
        }
        days.pass(COARSE, DAY).await;
    }
    days.pass(COARSE, 2 * DAY).await;
    assert_eq!(days.marks().await, PATHS.len());
    assert_eq!(days.arrived.len(), 0);
    assert_eq!(days.unresolved().await.len(), days.published.len());
    // The first letter finds out that the host is well.
    days.recover_until(|days| days.arrived.len() > EVENTS_A_DAY)
        .await;
    // A second outage, in the middle of the recovery.
    assert!(!days.missed().is_empty());
    days.fall();
    days.pass(COARSE, DAY + 6 * HOUR).await;
    let before = days.arrived.len();
    days.recover_until(|days| days.arrived.len() > before + EVENTS_A_DAY)
        .await;
    // The event that brings the host down does so until it was recovered three times. The host is in
    // use meanwhile.
    let end = days.world.clock.now() + RECOVERED_WITHIN;
    while days.world.clock.now() < end && !days.is_over().await {
        days.publish_to_each().await;
        days.pass(10 * SECOND, MINUTE / 2).await;
    }
    let letters = days.unresolved().await;
    assert_eq!(days.marks().await, 0, "{letters:?}");
    // What was on its way whenever the host came down was recovered three times, too. Which events
    // that are depends on the threads of the store.
    let ends = letters.values().map(|letter| letter["id"].as_str());
    let mut ends: Vec<_> = ends.map(Option::unwrap).collect();
    ends.retain(|id| *id != "poison");
    let mut missed: Vec<_> = days.missed().iter().map(|event| &*event.1).collect();
    assert_eq!(letters.len(), ends.len() + 1, "{letters:?}");
    assert!(ends.len() <= COMPANIONS_MAX, "{letters:?}");
    ends.sort_unstable();
    missed.sort_unstable();
    assert_eq!(ends, missed);
    for letter in letters.values() {
        assert_eq!(letter["recoveries"], json!(3), "{letter}");
        assert!(letter["deadletterreason"].is_string(), "{letter}");
        assert!(letter["outagesince"].is_string(), "{letter}");
    }
    let twice: Vec<_> = days
        .arrived
        .iter()
        .filter(|(_, ids)| ids.len() > 1)
        .collect();
    assert_eq!(twice, vec![]);
    assert!(days.requested.values().all(|ids| ids.len() == 1));
    // Nothing comes after that.
    let requests = days.requested.len();
    let crashes = days.crashes;
    days.pass(COARSE, 2 * DAY).await;
    assert_eq!((days.requested.len(), days.crashes), (requests, crashes));
    assert_eq!((days.elsewhere_steps, days.elsewhere.len()), (1, 0));
}
