//! An outage as a test: ten subscriptions, of which most fail, each in another way, and two hundred
//! events. At every step of the clock everything that tells an operator what became of them is read
//! at one moment, and says the same.

mod book;
mod browser;
mod endpoints;
mod surfaces;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use posthaste_core::api::IsoTimestamp;
use posthaste_core::model::Timestamp;
use posthaste_local::{LocalQueue, StateStore};
use posthaste_ports::{Clock, QueueName};
use posthaste_publish::{BodyBudget, Publish, PublishSettings, TarpitTurns};
use posthaste_server::metrics::{MetricSeries, SeriesBy};
use posthaste_services::{ActivityNotes, PressureReader, TopicRegistry, WrongKeys};
use posthaste_simulation::World;
use posthaste_testkit::{ManualClock, SeededEntropy, TestPorts};
use serde_json::{Value, json};
use tokio::task::{LocalSet, spawn_local};

use self::book::{Book, State};
use self::endpoints::{Endpoint, GONE};
use self::surfaces::{Overview, Surfaces};

type Ports = TestPorts<LocalQueue<ManualClock>, StateStore>;

const EVENTS: usize = 200;
const STEP: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_mins(1);
const OUTAGE: Duration = Duration::from_mins(40);

/// The time after which steps are a minute long: all events are published, and what fails is held.
const SHORT_STEPS: Duration = Duration::from_mins(15);

/// The time of an invocation of deliver under `serve`.
const INVOCATION: Duration = Duration::from_mins(2);

/// Longest time that passes within a step.
const MOMENT_MAX: Duration = Duration::from_secs(1);

/// The time after which everything has come to its end, at the latest.
const END_MAX: Duration = Duration::from_hours(6);

/// Events whose pages are read at each step. All are read when all is at rest.
const EVENTS_READ: usize = 3;

/// Records are read again for so long: longer than an invocation lasts.
const RECORDS_OVERLAP: Duration = Duration::from_mins(5);

struct Outage {
    world: Rc<World>,
    surfaces: Surfaces,
    publish: Arc<Publish<Ports>>,
    book: Book,
    accepted_at: BTreeMap<String, Timestamp>,
    recovered_at: Option<Timestamp>,
    /// The figures that were read last in each step of the overview's chart.
    chart: BTreeMap<u64, [u64; 3]>,
    steps: usize,
    /// Steps at which something was under way, held, parked, and at which a letter waited.
    seen: [usize; 4],
    /// The subscriptions as the list has them, by name.
    listed: BTreeMap<String, Value>,
}

/// publish over the world's store.
fn publish(world: &World) -> Arc<Publish<Ports>> {
    let state = || world.local.state_store();
    let clock = world.clock.clone();
    Arc::new(Publish {
        deliveries: world.local.queue(QueueName::Deliveries),
        slow_lane: None,
        records: Some(world.local.queue(QueueName::Records)),
        registry: TopicRegistry::new(state(), clock.clone(), Duration::ZERO),
        payloads: state(),
        pressure: PressureReader::new(state(), clock.clone(), Duration::ZERO),
        entropy: SeededEntropy::new(11),
        clock,
        activity: ActivityNotes::default(),
        bodies: BodyBudget::new(1_000_000),
        advice: TarpitTurns::default(),
        wrong_keys: WrongKeys::default(),
        traces: posthaste_services::EventTraces::default(),
        settings: PublishSettings::default(),
    })
}

/// The expected value of a counter on a page of metrics: it appears with the first that is counted.
fn counter(expected: u64) -> Option<u64> {
    (expected > 0).then_some(expected)
}

/// The time of the next probe, where requests of a listed subscription pause.
fn probe(listed: &Value) -> Option<Timestamp> {
    book::time(listed.get("circuit")?, "nextProbe")
}

impl Outage {
    async fn begin(series: &MetricSeries) -> Self {
        let world = Rc::new(World::new());
        let named = endpoints::all().map(|endpoint| {
            endpoint.fail(&world);
            let url = format!("https://{}/hooks", endpoint.host());
            let settings = json!({
                "endpoint": { "url": url },
                "retryPolicy": endpoint.retry_policy(),
            });
            (endpoint.name.to_owned(), settings)
        });
        let named: serde_json::Map<_, _> = named.into_iter().collect();
        let topic = json!({ "subscriptions": named });
        let (status, answer) = world.api().ask("PUT", "/topics/orders", &topic).await;
        assert_eq!(status, 201, "{answer}");
        Self {
            surfaces: Surfaces::of(&world, series).await,
            publish: publish(&world),
            book: Book::default(),
            accepted_at: BTreeMap::new(),
            recovered_at: None,
            chart: BTreeMap::new(),
            steps: 0,
            seen: [0; 4],
            listed: BTreeMap::new(),
            world,
        }
    }

    /// Publishes some events in one request.
    async fn publish(&mut self, count: usize) {
        let first = self.book.ids.len();
        let ids: Vec<_> = (first..first + count).map(|n| format!("e{n:03}")).collect();
        let events: Vec<_> = ids
            .iter()
            .map(|id| json!({ "specversion": "1.0", "id": id, "source": "/s", "type": "t" }))
            .collect();
        let keys = self.surfaces.get("/topics/orders/keys").await;
        let request = Request::post("/")
            .header("content-type", "application/cloudevents-batch+json")
            .header("aeg-sas-key", keys["key1"].as_str().unwrap())
            .body(Body::from(json!(events).to_string()))
            .unwrap();
        let published = self.publish.publish("orders", request).await.unwrap();
        assert_eq!(published.answer.accepted_events, count);
        let now = self.world.clock.now();
        let accepted = ids.iter().map(|id| (id.clone(), now));
        self.accepted_at.extend(accepted);
        self.book.accept(&ids);
    }

    /// Has deliver take all that is visible, an invocation beside the other, until only a longer time
    /// helps: records of a group are gathered for a moment.
    async fn deliver(&self) {
        loop {
            self.world.rest().await;
            let soon = self.world.clock.now() + MOMENT_MAX;
            if self.world.visible(QueueName::Deliveries).await > 0 {
                let world = Rc::clone(&self.world);
                spawn_local(async move { world.deliver_within(INVOCATION).await });
            } else if self.world.clock.next_due().is_some_and(|due| due <= soon) {
                self.world.clock.advance_to_next();
            } else {
                return;
            }
        }
    }

    /// Lets time pass until the clock shows a multiple of this, in which every function has its turn.
    async fn pass(&mut self, step: Duration) {
        let step_ms = u64::try_from(step.as_millis()).unwrap();
        let now = self.world.clock.now();
        let next = Timestamp::from_millis((now.as_millis() / step_ms + 1) * step_ms);
        self.world.clock.advance_to(next);
        self.deliver().await;
        if now.minute_rounded_down() < next.minute_rounded_down() {
            self.world.wake().await;
            self.deliver().await;
        }
        self.world.bury().await;
        self.steps += 1;
    }

    /// Compares the health of each subscription with what is expected of its endpoint.
    async fn compare_health(&self, expected: impl Fn(&Endpoint) -> &'static [&'static str]) {
        for endpoint in endpoints::all() {
            let shown = self.surfaces.subscription(endpoint.name).await;
            let state = shown["health"]["state"].as_str().unwrap();
            let expected = expected(&endpoint);
            assert!(expected.contains(&state), "{}: {shown}", endpoint.name);
        }
    }

    /// Reads everything at one moment, and compares.
    async fn compare(&mut self) {
        let now = self.world.clock.now();
        self.note_what_happened().await;
        self.surfaces.scrape().await;
        let listed = self.surfaces.listed().await;
        let overview = self.surfaces.overview().await;
        let context = format!("after {:?}", now.since(posthaste_simulation::start()));
        let by_name = |one: &Value| (one["name"].as_str().unwrap().to_owned(), one.clone());
        self.listed = listed.iter().map(by_name).collect();
        let mut failing = 0;
        for one in &listed {
            failing += u64::from(self.compare_subscription(one, &context).await);
        }
        let down = self.surfaces.metric("posthaste_subscriptions_down", &[]);
        assert_eq!(down, Some(failing), "{context}");
        self.compare_topic_page(&listed, &context).await;
        self.compare_links(&listed, overview, &context).await;
        self.compare_sums(&listed, overview, &context);
        self.compare_events(&context).await;
        assert_eq!(self.world.clock.now(), now, "no time passed meanwhile");
    }

    /// Notes what endpoints took, and what the delivery log has of it.
    async fn note_what_happened(&mut self) {
        while self.world.visible(QueueName::Records).await > 0 {
            self.world.record_some(10_000).await;
        }
        let endpoints = endpoints::all();
        for request in self.world.endpoint.take() {
            let is_meant = |endpoint: &&Endpoint| request.url.contains(&endpoint.host());
            let endpoint = endpoints.iter().find(is_meant).unwrap();
            let is_outage = self.recovered_at.is_none_or(|at| request.at < at);
            if endpoint.takes(&request, is_outage) {
                let event: Value = serde_json::from_str(&request.body).unwrap();
                let id = event["id"].as_str().unwrap().to_owned();
                self.book.taken.insert((endpoint.name.to_owned(), id));
            }
        }
        let ms = u64::try_from(RECORDS_OVERLAP.as_millis()).unwrap();
        let from = self.world.clock.now().as_millis().saturating_sub(ms);
        let from = json!(IsoTimestamp(Timestamp::from_millis(from)));
        let mut records = self.surfaces.records(from.as_str().unwrap()).await;
        records.sort_by_key(book::place);
        for record in &records {
            self.book.note(record);
        }
    }

    /// Compares what is said of one subscription; whether it is failing.
    async fn compare_subscription(&self, listed: &Value, context: &str) -> bool {
        let name = listed["name"].as_str().unwrap();
        let context = format!("{name} {context}");
        let labels = [("topic", "orders"), ("subscription", name)];
        let metric = |name: &str| self.surfaces.metric(name, &labels);
        let waiting = &listed["waiting"];
        let open = self.book.count(name, State::is_open);
        assert_eq!(waiting["count"], open, "{context}: {waiting}");
        assert_eq!(waiting.get("atLeast"), None, "{context}");
        let places = ["due", "delayed", "underWay", "parked", "held"];
        let in_places = places.map(|place| waiting[place].as_u64().unwrap());
        assert_eq!(in_places.iter().sum::<u64>(), open, "{context}: {waiting}");
        assert_eq!(metric("posthaste_waiting"), Some(open), "{context}");
        let oldest = self.oldest(name);
        assert_eq!(
            waiting.get("oldestAcceptedAt"),
            oldest.map(|at| json!(IsoTimestamp(at))).as_ref(),
            "{context}"
        );
        let now = self.world.clock.now();
        let age = oldest.map_or(0, |at| now.as_millis() - at.as_millis());
        let shown_age = self
            .surfaces
            .thousandths("posthaste_oldest_waiting_seconds", &labels);
        assert_eq!(shown_age, Some(age), "{context}");
        let alone = self.surfaces.subscription(name).await;
        for member in ["waiting", "health", "circuit", "status"] {
            assert_eq!(alone[member], listed[member], "{context}");
        }
        let state = listed["health"]["state"].as_str().unwrap();
        let is_up = u64::from(state == "healthy");
        let up = metric("posthaste_subscription_up");
        assert_eq!(up, Some(is_up), "{context}: {state}");
        self.compare_ends(name, &context);
        self.compare_first_attempt(listed, &context);
        matches!(state, "failing" | "down")
    }

    /// Compares what is counted of the ends of events.
    fn compare_ends(&self, name: &str, context: &str) {
        let counted = |metric: &str, label: (&str, &str)| {
            let labels = [("topic", "orders"), ("subscription", name), label];
            self.surfaces.metric(metric, &labels)
        };
        let deliveries = |outcome| counted("posthaste_deliveries_total", ("outcome", outcome));
        let delivered = self.book.count(name, |state| state == State::Delivered);
        assert_eq!(deliveries("delivered"), counter(delivered), "{context}");
        let failed = self.book.failed.get(name).copied().unwrap_or_default();
        assert_eq!(deliveries("failed"), counter(failed), "{context}");
        let dropped = counted("posthaste_dropped_events_total", ("topic", "orders"));
        assert_eq!(dropped, counter(0), "{context}");
    }

    /// Compares the next attempt of any event of a subscription with what each of them waits for.
    fn compare_first_attempt(&self, listed: &Value, context: &str) {
        let name = listed["name"].as_str().unwrap();
        let shown = book::time(&listed["waiting"], "nextAttemptAt");
        let context = format!("{context}: {listed}");
        if listed["status"]["state"] != "Active" {
            assert_eq!(shown, None, "{context}");
            return;
        }
        let now = self.world.clock.now();
        // What is due does not wait for its time any more.
        let timed: Vec<_> = self
            .book
            .next_attempts(name)
            .filter(|at| *at > now)
            .collect();
        let events = |place: &str| listed["waiting"][place].as_u64().unwrap();
        let waiting = events("delayed") + events("parked");
        let probe = probe(listed);
        let awaits_probe = probe.is_some() && events("due") + events("held") > 0;
        let has_next = awaits_probe || waiting > 0;
        assert_eq!(shown.is_some(), has_next, "{context}");
        // A record tells the first wait. What goes back again waits for the probe, or a moment.
        let has_gone_back = waiting > timed.len() as u64;
        let of_timed = timed.iter().min().map(|at| Some(*at).max(probe));
        let of_probe = probe.filter(|_| awaits_probe || has_gone_back);
        let first = of_timed.flatten().into_iter().chain(of_probe).min();
        let is_known = probe.is_some() || !has_gone_back;
        // A retry's delay begins when its records were gathered, a moment after its time was
        // recorded.
        if let (Some(shown), Some(first)) = (shown, first) {
            assert!(shown <= first + MOMENT_MAX, "{context}: {first}");
            assert!(shown >= first || !is_known, "{context}: {first}");
        }
        assert_eq!(shown.is_some(), first.is_some() || !is_known, "{context}");
    }

    /// The acceptance of the oldest event that waits for a subscription, to the second.
    fn oldest(&self, name: &str) -> Option<Timestamp> {
        let is_open = |id: &str| {
            let state = self.book.state(&(name.to_owned(), id.to_owned()));
            state.is_some_and(State::is_open)
        };
        let open = self.accepted_at.iter().filter(|(id, _)| is_open(id));
        let oldest = open.map(|(_, at)| at.as_secs()).min()?;
        Some(Timestamp::from_millis(oldest * 1000))
    }

    async fn compare_topic_page(&self, listed: &[Value], context: &str) {
        let page = self.surfaces.topic_page().await;
        assert_eq!(page.len(), listed.len(), "{context}");
        for one in listed {
            let shown = &page[one["name"].as_str().unwrap()];
            assert_eq!(one["waiting"]["count"], shown.waiting, "{context}: {one}");
            assert_eq!(one["health"]["state"], shown.health, "{context}: {one}");
        }
    }

    async fn compare_links(&self, listed: &[Value], overview: Overview, context: &str) {
        let links = self.surfaces.links().await;
        let mut down = 0;
        for row in &links {
            let of_link = |one: &&Value| {
                let host = format!("{}.example.com", one["name"].as_str().unwrap());
                let link = row["link"].as_str().unwrap_or_default();
                link == format!("https://{host}:443")
            };
            let one = listed.iter().find(of_link).unwrap();
            let counts = [&row["waiting"]["count"], &one["waiting"]["count"]];
            assert_eq!(counts[0], counts[1], "{context}: {row}");
            if row["scope"] == "link" {
                let is_up = row["state"] == "recovering";
                down += u64::from(!is_up);
                let link = row["link"].as_str().unwrap();
                let up = self.surfaces.metric("posthaste_link_up", &[("link", link)]);
                assert_eq!(up, Some(u64::from(is_up)), "{context}: {row}");
            }
        }
        let shown = self.surfaces.metric("posthaste_links_down", &[]);
        assert_eq!(shown, Some(down), "{context}: {links:?}");
        for circuit in listed.iter().filter_map(|one| one.get("circuit")) {
            let is_shown = |row: &Value| {
                let members = [
                    "link",
                    "scope",
                    "subscription",
                    "state",
                    "nextProbe",
                    "failures",
                ];
                members
                    .iter()
                    .all(|member| row.get(member) == circuit.get(member))
            };
            assert!(links.iter().any(is_shown), "{context}: {circuit} {links:?}");
        }
        self.compare_failing(listed, overview, context).await;
    }

    /// Compares the rows of what fails: each failing subscription has one, with what waits for it.
    async fn compare_failing(&self, listed: &[Value], overview: Overview, context: &str) {
        let rows = self.surfaces.failing().await;
        for row in rows.iter().filter(|row| row.get("topic").is_some()) {
            let is_same = |one: &&Value| one["name"] == row["subscription"];
            let one = listed.iter().find(is_same).unwrap();
            let counts = [&row["waiting"]["count"], &one["waiting"]["count"]];
            assert_eq!(counts[0], counts[1], "{context}: {row}");
        }
        for one in listed {
            let state = one["health"]["state"].as_str().unwrap();
            if matches!(state, "failing" | "down") {
                let has_row = rows.iter().any(|row| row["subscription"] == one["name"]);
                assert!(has_row, "{context}: {one} {rows:?}");
            }
        }
        let is_failing = |row: &&Value| {
            let state = row["state"].as_str().unwrap();
            matches!(state, "failing" | "down" | "askedToWait")
        };
        let failing = rows.iter().filter(is_failing).count() as u64;
        assert_eq!(overview.failing, failing, "{context}: {rows:?}");
        let on_page = self.surfaces.failing_page().await;
        let counts = rows.iter().map(|row| &row["waiting"]["count"]);
        assert_eq!(
            json!(on_page),
            json!(counts.collect::<Vec<_>>()),
            "{context}"
        );
    }

    /// Compares the sums of all, and the overview with them.
    fn compare_sums(&mut self, listed: &[Value], overview: Overview, context: &str) {
        let sum = |place: &str| -> u64 {
            let of_each = listed.iter().map(|one| one["waiting"][place].as_u64());
            of_each.map(Option::unwrap).sum()
        };
        let due = sum("due") + sum("underWay");
        let later = sum("delayed") + sum("parked");
        let figures = [due, later, sum("held")];
        let shown = [overview.due, overview.later, overview.held];
        assert_eq!(shown, figures, "{context}");
        assert_eq!(overview.total, sum("count"), "{context}");
        self.compare_chart(figures, overview, context);
        let metric = |name: &str| self.surfaces.metric(name, &[]);
        let waiting = metric("posthaste_waiting");
        assert_eq!(waiting, Some(overview.total), "{context}");
        let accepted = metric("posthaste_events_accepted_total");
        assert_eq!(accepted, counter(self.book.ids.len() as u64), "{context}");
        let ended = |state: State| -> u64 {
            let names = endpoints::all().map(|endpoint| endpoint.name);
            names
                .map(|name| self.book.count(name, |it| it == state))
                .iter()
                .sum()
        };
        let delivered = ended(State::Delivered);
        let given_up = ended(State::DeadLettered);
        let pairs = self.book.pairs() as u64;
        assert_eq!(overview.total + delivered + given_up, pairs, "{context}");
        let all = self.book.ids.len() * endpoints::all().len();
        assert_eq!(self.book.pairs(), all, "{context}");
        let metric_of_written = metric("posthaste_dead_letters_total");
        let written = metric_of_written.unwrap_or_default();
        assert_eq!(metric_of_written, counter(written), "{context}");
        if self.recovered_at.is_none() {
            let in_the_hour = [overview.delivered, overview.letters];
            assert_eq!(in_the_hour, [delivered, written], "{context}");
        }
        let unwritten = given_up - written;
        let messages = metric("posthaste_dead_letters_waiting").unwrap();
        assert!(unwritten >= messages, "{context}: {unwritten} {messages}");
        assert_eq!(unwritten > 0, messages > 0, "{context}: {unwritten}");
        let seen = [sum("underWay"), sum("held"), sum("parked"), unwritten];
        for (steps, number) in self.seen.iter_mut().zip(seen) {
            *steps += usize::from(number > 0);
        }
    }

    /// A point of the chart has the greatest figures of its two steps of 10 s.
    fn compare_chart(&mut self, figures: [u64; 3], overview: Overview, context: &str) {
        let step_ms = u64::try_from(STEP.as_millis()).unwrap();
        let step = (self.world.clock.now().as_millis() - step_ms / 2) / step_ms;
        self.chart.insert(step, figures);
        let steps = [step / 2 * 2, step].map(|step| self.chart.get(&step));
        let zero = [0; 3];
        let [first, second] = steps.map(|figures| figures.unwrap_or(&zero));
        let most = [0, 1, 2].map(|place| first[place].max(second[place]));
        assert_eq!(overview.chart, most, "{context}");
    }

    /// Reads the pages of some events.
    async fn compare_events(&self, context: &str) {
        let ids = &self.book.ids;
        for n in 0..EVENTS_READ.min(ids.len()) {
            let id = &ids[(self.steps * 7 + n * 61) % ids.len()];
            self.compare_event(id, context).await;
        }
    }

    async fn compare_event(&self, id: &str, context: &str) {
        let context = format!("{id} {context}");
        let event = self.surfaces.event(id).await;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let state = text(&event["state"]);
        let deliveries = event["deliveries"].as_array().unwrap();
        let of_each: BTreeMap<_, _> = deliveries
            .iter()
            .map(|it| {
                let name = text(&it["subscription"]).unwrap();
                (name, text(&it["state"]).unwrap())
            })
            .collect();
        for delivery in deliveries {
            self.compare_next_attempt(id, delivery, &context);
        }
        let on_page = self.surfaces.event_page(id).await;
        assert_eq!((&state, &of_each), (&on_page.0, &on_page.1), "{context}");
        let expected = self.book.states_of(id);
        let words: BTreeMap<_, _> = expected
            .iter()
            .map(|(name, state)| (name.clone(), state.word().to_owned()))
            .collect();
        let Some(state) = state else {
            // The log has nothing of it before its first attempts.
            assert!(
                words.values().all(|word| word == "pending"),
                "{context}: {words:?}"
            );
            return;
        };
        let records = || self.book.records_of(id);
        assert_eq!(of_each, words, "{context}: {:?}", records());
        let least = expected.values().min().unwrap();
        assert_eq!(state, least.word(), "{context}: {words:?}");
        let is_delivered = *least == State::Delivered;
        assert_eq!(is_delivered, self.book.is_taken_by_all(id), "{context}");
    }

    /// Compares the next attempt of an event with what it waits for: its time, and the probe of its
    /// endpoint.
    fn compare_next_attempt(&self, id: &str, delivery: &Value, context: &str) {
        let name = delivery["subscription"].as_str().unwrap();
        let pair = (name.to_owned(), id.to_owned());
        let listed = &self.listed[name];
        let is_active = listed["status"]["state"] == "Active";
        let waits = matches!(self.book.state(&pair), Some(State::Waiting | State::Held));
        let expected = self.book.next_attempt(&pair).max(probe(listed));
        let expected = expected.filter(|_| is_active && waits);
        let shown = book::time(delivery, "nextAttemptAt");
        assert_eq!(shown, expected, "{context}: {delivery} {listed}");
    }

    /// Compares the dead letters of all subscriptions with what is counted of them.
    async fn compare_letters(&self) {
        for endpoint in endpoints::all() {
            let name = endpoint.name;
            let labels = [("topic", "orders"), ("subscription", name)];
            let written = self
                .surfaces
                .metric("posthaste_dead_letters_total", &labels);
            let listed = self.surfaces.letters(name).await;
            assert_eq!(written, counter(listed), "{name}");
        }
    }

    /// Ends the outage.
    fn recover(&mut self) {
        for endpoint in endpoints::all() {
            endpoint.recover(&self.world);
        }
        self.recovered_at = Some(self.world.clock.now());
    }

    async fn has_ended(&self) -> bool {
        let letters = QueueName::DeadLetters;
        let letters = self.world.visible(letters).await + self.world.delayed(letters).await;
        self.world.is_at_rest().await && letters == 0
    }
}

async fn every_surface_says_the_same(series: &MetricSeries) {
    let mut outage = Outage::begin(series).await;
    let begun = outage.world.clock.now();
    while outage.world.clock.now().since(begun) < OUTAGE {
        let rest = EVENTS - outage.book.ids.len();
        if rest > 0 {
            // All who ask for metrics in the same second share a page.
            outage.world.clock.advance(MOMENT_MAX);
            outage.deliver().await;
            outage.publish((outage.steps % 4 + 1).min(rest)).await;
            outage.compare().await;
        }
        let is_early = outage.world.clock.now().since(begun) < SHORT_STEPS;
        outage.pass(if is_early { STEP } else { MINUTE }).await;
        outage.compare().await;
        if outage.steps.is_multiple_of(6) {
            outage.compare_letters().await;
        }
    }
    assert_eq!(outage.book.ids.len(), EVENTS);
    // Each place in which an event may be was looked at while one was there.
    assert!(
        outage.seen.iter().all(|steps| *steps > 10),
        "{:?}",
        outage.seen
    );
    outage.compare_health(|endpoint| endpoint.health).await;
    outage.recover();
    while !outage.has_ended().await {
        let length = outage.world.clock.now().since(begun);
        assert!(length < END_MAX, "it never comes to rest");
        outage.pass(MINUTE).await;
        outage.compare().await;
    }
    // The last event may have arrived after the minute's run of wake, which says who recovered.
    outage.pass(MINUTE).await;
    outage.compare().await;
    at_rest(&outage).await;
    let recovered = |endpoint: &Endpoint| match endpoint.name {
        GONE => endpoint.health,
        _ => &["healthy"],
    };
    outage.compare_health(recovered).await;
}

/// Everything has come to its end: what endpoints took is what is shown as delivered.
async fn at_rest(outage: &Outage) {
    let book = &outage.book;
    for endpoint in endpoints::all() {
        let name = endpoint.name;
        let taken = book.taken.iter().filter(|(of, _)| of == name).count() as u64;
        let delivered = book.count(name, |state| state == State::Delivered);
        assert_eq!(delivered, taken, "{name}");
        let letters = book.count(name, |state| state == State::DeadLettered);
        assert_eq!(outage.surfaces.letters(name).await, letters, "{name}");
        assert_eq!(book.count(name, State::is_open), 0, "{name}");
        assert_eq!(delivered + letters, EVENTS as u64, "{name}");
        match name {
            // What it refused is given up. The rest was held, and arrives.
            "refusing" => assert!(delivered > 0 && letters > 0, "{letters}"),
            GONE => assert_eq!(delivered, 0),
            _ => assert_eq!(letters, 0, "{name}"),
        }
    }
    for id in &book.ids {
        outage.compare_event(id, "at rest").await;
    }
    outage.compare_letters().await;
}

#[test]
fn every_surface_says_the_same_at_every_step_of_an_outage() {
    let series = MetricSeries::new(SeriesBy::Subscription);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    metrics::with_local_recorder(&series, || {
        let program = Box::pin(every_surface_says_the_same(&series));
        LocalSet::new().block_on(&runtime, program);
    });
}
