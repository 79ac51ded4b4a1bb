//! A host that is down for five days, with three subscriptions on it, one event that brings it down
//! whenever it comes, and a second outage in the middle of the recovery: everything arrives by
//! itself once, or is listed with its reason, and a subscription elsewhere does not notice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::attempt::SendFailure;
use posthaste_core::model::Timestamp;
use posthaste_core::stored::{RecoveryMark, ResolvedLetters, layout};
use posthaste_ports::{Clock, ObjectStore, QueueName};
use posthaste_simulation::{Answer, LinkPath, Request, World, event};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const PATHS: [&str; 3] = ["shop.billing", "shop.crm", "shop.mail"];

/// Events of each path on each of the first days.
const EVENTS_A_DAY: usize = 120;

const DAYS_WITH_EVENTS: usize = 3;

/// The most of its dead letters a second for a subscription.
const RATE: usize = 2;

/// The steps of time while nothing is measured.
const COARSE: Duration = Duration::from_mins(20);

/// The steps of time in which the rate is measured.
const FINE: Duration = Duration::from_secs(5);

/// The time for which the host is down after it was sent the event that brings it down.
const CRASH: Duration = Duration::from_mins(15);

const HOST: &str = "billing.example.com";
const ELSEWHERE: &str = "well.example.com";

/// A request that was answered with success.
type Arrivals = BTreeMap<(String, String), BTreeSet<String>>;

struct Days {
    world: World,
    /// The time from which the host is well; `None` while an outage has no end.
    well_from: Option<Timestamp>,
    is_well: bool,
    published: BTreeSet<(String, String)>,
    arrived: Arrivals,
    /// The times at which dead letters were sent again, by path.
    sent_again: BTreeMap<String, Vec<Timestamp>>,
    poisoned: usize,
    /// The longest that an event for elsewhere took.
    elsewhere: Duration,
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
            "recovery": { "within": "P30D", "ratePerSecond": RATE },
        });
        let path = |place: &&str| LinkPath::scripted(place).with(settings.clone());
        world
            .subscribe_paths(&PATHS.iter().map(path).collect::<Vec<_>>())
            .await;
        let url = format!("https://{ELSEWHERE}/");
        world.subscribe(json!({ "endpoint": { "url": url } })).await;
        world.endpoint.answer_at(ELSEWHERE, Answer::Status(204));
        let mut days = Self {
            world,
            well_from: None,
            is_well: true,
            published: BTreeSet::new(),
            arrived: Arrivals::new(),
            sent_again: BTreeMap::new(),
            poisoned: 0,
            elsewhere: Duration::ZERO,
        };
        days.fall();
        days
    }

    /// The host is down, without an end.
    fn fall(&mut self) {
        self.well_from = None;
        self.is_well = false;
        let down = Answer::Failure(SendFailure::Socket);
        self.world.endpoint.answer_at(HOST, down);
    }

    /// The host answers from now on.
    fn rise(&mut self) {
        self.is_well = true;
        self.well_from = Some(self.world.clock.now());
        self.world
            .endpoint
            .answer_at(HOST, Answer::ClosedFor(is_poison));
    }

    async fn publish(&mut self, path: &str, ids: &[String]) {
        let events: Vec<_> = ids.iter().map(|id| event(id)).collect();
        self.world.publish_to(path, &events, 1).await;
        let (_, name) = path.split_once('.').unwrap();
        let own = ids.iter().map(|id| (name.to_owned(), id.clone()));
        self.published.extend(own.filter(|(_, id)| id != "poison"));
        // Keys are made of the time.
        self.world.clock.advance(Duration::from_millis(1));
    }

    /// Time passes in steps, with an event for elsewhere every hour.
    async fn pass(&mut self, step: Duration, length: Duration) {
        let end = self.world.clock.now() + length;
        while self.world.clock.now() < end {
            let now = self.world.clock.now();
            let is_hour = now.as_secs() / HOUR.as_secs() != (now + step).as_secs() / HOUR.as_secs();
            if is_hour {
                self.world.publish(&[event("elsewhere")], DAY).await;
                self.world.deliver_all().await;
                let requests = self.world.endpoint.take();
                let of_elsewhere = requests
                    .iter()
                    .filter(|request| request.url.contains(ELSEWHERE));
                let waited = of_elsewhere.map(|request| request.at.since(now)).max();
                self.elsewhere = self.elsewhere.max(waited.unwrap_or(DAY));
                self.hear(&requests);
            }
            self.world.pass_by(step, step).await;
            while self.world.visible(QueueName::DeadLetters).await > 0 {
                self.world.bury().await;
            }
            let requests = self.world.endpoint.take();
            self.hear(&requests);
        }
    }

    fn hear(&mut self, requests: &[Request]) {
        let mut is_poisoned = false;
        for request in requests {
            let Some((_, path)) = request.url.split_once("/shop.") else {
                continue;
            };
            let path = path.trim_end_matches('/').to_owned();
            let event: Value = serde_json::from_str(&request.body).unwrap();
            let id = event["id"].as_str().unwrap().to_owned();
            let header = |name: &str| request.headers.get(name).map(|it| it.to_str().unwrap());
            if header("posthaste-replayed").is_some() && header("posthaste-attempt") == Some("1") {
                let times = self.sent_again.entry(path.clone()).or_default();
                times.push(request.at);
            }
            if id == "poison" {
                self.poisoned += 1;
                is_poisoned |= self.is_well;
            } else if self.is_well {
                let webhook_id = header("webhook-id").unwrap().to_owned();
                let ids = self.arrived.entry((path, id)).or_default();
                ids.insert(webhook_id);
            }
        }
        let now = self.world.clock.now();
        if is_poisoned {
            self.fall();
            self.well_from = Some(now + CRASH);
        } else if !self.is_well && self.well_from.is_some_and(|from| now >= from) {
            self.rise();
        }
    }

    /// The dead letters that are not resolved, by the ids of their events.
    async fn unresolved(&self) -> BTreeMap<String, Value> {
        let mut letters = BTreeMap::new();
        for (key, bytes) in self.world.buried().await {
            let resolved = self
                .world
                .bucket
                .get(&layout::resolved(&key))
                .await
                .unwrap();
            let resolved = resolved.map(|it| ResolvedLetters::parse(&it.bytes).unwrap());
            let array: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
            for (index, letter) in array.into_iter().enumerate() {
                if resolved.as_ref().is_none_or(|list| !list.has(index)) {
                    letters.insert(letter["id"].as_str().unwrap().to_owned(), letter);
                }
            }
        }
        letters
    }

    /// The host is well, until this is so. No path gets more than its rate.
    async fn recover_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        self.rise();
        self.sent_again.clear();
        for _ in 0..2 * 60 {
            self.pass(FINE, MINUTE).await;
            if is_so(self) {
                break;
            }
        }
        assert!(is_so(self), "{} arrived", self.arrived.len());
        for (path, times) in &self.sent_again {
            let most = most_within(times, MINUTE);
            assert!(most <= 60 * RATE, "{path}: {most}");
        }
    }

    /// What has not arrived.
    fn missed(&self) -> Vec<&(String, String)> {
        let all = self.published.iter();
        all.filter(|event| !self.arrived.contains_key(*event))
            .collect()
    }

    async fn marks(&self) -> usize {
        let state = self.world.local.state();
        let page = state.list(layout::RECOVERY, None, 100).await.unwrap();
        let mut with_letters = 0;
        for object in page.objects {
            let mark = state.get(&object.key).await.unwrap().unwrap();
            let mark = RecoveryMark::parse(&mark.bytes).unwrap();
            with_letters += usize::from(!mark.is_empty());
        }
        with_letters
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
    // The first letter finds out that the host is well.
    days.recover_until(|days| days.arrived.len() > EVENTS_A_DAY)
        .await;
    // A second outage, in the middle of the recovery.
    assert!(days.arrived.len() < days.published.len());
    days.fall();
    days.pass(COARSE, DAY + 6 * HOUR).await;
    let before = days.arrived.len();
    days.recover_until(|days| days.arrived.len() > before + EVENTS_A_DAY)
        .await;
    // The event that brings the host down does so until it was recovered three times, or given up
    // while the host was not known to be down.
    for _ in 0..12 {
        days.pass(10 * MINUTE, DAY).await;
        if days.marks().await == 0 && days.missed().is_empty() {
            break;
        }
    }
    // What is on its way ends.
    days.pass(COARSE, 2 * DAY).await;
    let missed = days.missed();
    let letters = days.unresolved().await;
    assert_eq!((missed, days.marks().await), (vec![], 0), "{letters:?}");
    assert!(days.arrived.values().all(|ids| ids.len() == 1));
    let left: Vec<_> = letters.keys().collect();
    assert_eq!(left, ["poison"]);
    let poison = &letters["poison"];
    let recoveries = poison["recoveries"].as_u64().unwrap();
    assert!((1..=3).contains(&recoveries), "{poison}");
    assert!(poison["deadletterreason"].is_string(), "{poison}");
    let before = days.poisoned;
    days.pass(COARSE, 2 * DAY).await;
    assert_eq!(days.poisoned, before);
    assert_eq!(days.elsewhere, Duration::ZERO);
}
