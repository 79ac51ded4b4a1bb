//! Everything that shows an operator what became of events, each read through its own door.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use posthaste_local::LocalQueue;
use posthaste_ports::QueueName;
use posthaste_server::history::{HistorySampler, SampledPorts, StepRing};
use posthaste_server::http::metrics_route;
use posthaste_server::metrics::{LookedUpMetrics, MetricSeries, MetricsPages};
use posthaste_services::TopicRegistry;
use posthaste_simulation::{Api, State, World};
use posthaste_testkit::ManualClock;
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt;

use super::browser::{Browser, between, number};

/// The figures of a subscription on one surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) waiting: u64,
    pub(super) health: String,
}

/// The figures of the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overview {
    pub(super) total: u64,
    pub(super) due: u64,
    pub(super) later: u64,
    pub(super) held: u64,
    /// The newest point of the chart: due, for a retry, held.
    pub(super) chart: [u64; 3],
    pub(super) failing: u64,
    /// The number of events that were delivered in the last hour.
    pub(super) delivered: u64,
    /// The number of dead letters of the last hour.
    pub(super) letters: u64,
}

/// The doors.
pub(super) struct Surfaces {
    api: Api,
    browser: Browser,
    metrics: Router,
    sampler: HistorySampler<State, LocalQueue<ManualClock>, ManualClock>,
    page: RefCell<String>,
}

impl Surfaces {
    /// The doors of a world whose functions are measured by these series.
    pub(super) async fn of(world: &World, series: &MetricSeries) -> Self {
        let queue = |name| world.local.queue(name);
        let standing = LookedUpMetrics {
            state: world.state(),
            deliveries: queue(QueueName::Deliveries),
            given_up: [QueueName::DeadLetters, QueueName::Redrive].map(queue),
            records: queue(QueueName::Records),
            links: world.links.clone(),
            clock: world.clock.clone(),
        };
        let registry = TopicRegistry::new(world.state(), world.clock.clone(), Duration::ZERO);
        let pages = MetricsPages::new(series.clone(), standing, registry);
        let ring = Arc::new(StepRing::default());
        let ports = SampledPorts {
            state: world.state(),
            deliveries: queue(QueueName::Deliveries),
            links: world.links.clone(),
            clock: world.clock.clone(),
        };
        let sampler = HistorySampler::new(Arc::clone(&ring), series.totals(), ports);
        Self {
            api: world.api(),
            browser: Browser::sign_in(world, ring).await,
            metrics: metrics_route(Arc::new(pages)),
            sampler,
            page: RefCell::default(),
        }
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.api.ask("GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The subscriptions of the list, whole.
    pub(super) async fn listed(&self) -> Vec<Value> {
        let list = self.get("/topics/orders/subscriptions").await;
        list["subscriptions"].as_array().unwrap().clone()
    }

    /// The subscription by itself.
    pub(super) async fn subscription(&self, name: &str) -> Value {
        let path = format!("/topics/orders/subscriptions/{name}");
        self.get(&path).await
    }

    /// The rows of links and subscriptions that are not well.
    pub(super) async fn links(&self) -> Vec<Value> {
        let links = self.get("/links").await;
        assert!(links["truncated"] != true, "{links}");
        links["links"].as_array().unwrap().clone()
    }

    /// The rows of what fails.
    pub(super) async fn failing(&self) -> Vec<Value> {
        let view = self.get("/failing").await;
        assert!(view.get("truncated").is_none(), "{view}");
        assert!(view.get("leftOut").is_none(), "{view}");
        view["failing"].as_array().unwrap().clone()
    }

    /// The rows of the console's page of what fails: the number of events that wait, if it is said.
    pub(super) async fn failing_page(&self) -> Vec<Option<u64>> {
        let page = self.browser.page("/console/failing").await;
        let rows = page.split("<tr role=\"row\">").skip(2);
        rows.map(|row| {
            let waiting = between(row, "data-label=\"Waiting\">", "<");
            (waiting != "–").then(|| number(waiting))
        })
        .collect()
    }

    /// The rows of the console's page of the topic.
    pub(super) async fn topic_page(&self) -> BTreeMap<String, Shown> {
        let page = self.browser.page("/console/topics/orders").await;
        let table = between(&page, "<tbody role=\"rowgroup\">", "</tbody>");
        let rows = table.split("<tr role=\"row\">").skip(1);
        rows.map(|row| {
            let name = between(row, "/subscriptions/", "\"").to_owned();
            let before_number = row.split("<td class=\"number\"").next().unwrap();
            let badge = before_number.rsplit("<span class=\"badge ").next().unwrap();
            let shown = Shown {
                waiting: number(between(row, "data-label=\"Waiting\">", "<")),
                health: between(badge, ">", "<").to_owned(),
            };
            (name, shown)
        })
        .collect()
    }

    /// The tiles and the chart of the overview, after the look that `serve` takes at the end of each
    /// step.
    pub(super) async fn overview(&self) -> Overview {
        self.sampler.sample().await;
        let page = self.browser.page("/console").await;
        let tile = |name: &str| {
            let (_, rest) = page.split_once(&format!(">{name}</a></h2>")).unwrap();
            rest.split("</div>").next().unwrap().to_owned()
        };
        let waiting = tile("Waiting now");
        let hint = between(&waiting, "class=\"hint\">", "</p>");
        let figures: Vec<u64> = hint
            .split(", ")
            .map(|part| {
                let digits = part.trim_start_matches("events: ");
                number(digits.split(' ').next().unwrap())
            })
            .collect();
        let chart = between(&page, "Waiting events, the last hour. ", "\"");
        let last = |name: &str| number(between(chart, &format!("{name}: last "), ", least"));
        let failing = tile("Failing now");
        let failing = between(&failing, "class=\"figure\">", "</p>");
        let letters = tile("Dead letters");
        let letters = between(&letters, "class=\"figure\"><span", "</span>").to_owned();
        Overview {
            total: number(between(&waiting, "class=\"figure\">", "</p>")),
            due: figures[0],
            later: figures[1],
            held: figures[2],
            chart: [
                last("due"),
                last("for a retry"),
                last("waiting until it recovers"),
            ],
            failing: number(between(failing, ">", "<")),
            delivered: number(between(&tile("Delivered"), "class=\"figure\">", "<")),
            letters: number(letters.rsplit('>').next().unwrap()),
        }
    }

    /// Takes the page of metrics of this moment.
    pub(super) async fn scrape(&self) {
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        let response = self.metrics.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        *self.page.borrow_mut() = String::from_utf8(bytes.to_vec()).unwrap();
    }

    /// The sum of the samples of a metric that have these labels, which are whole; `None` if there
    /// are none.
    pub(super) fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<u64> {
        let thousandths = self.thousandths(name, labels)?;
        assert!(thousandths.is_multiple_of(1000), "{name}: {thousandths}");
        Some(thousandths / 1000)
    }

    /// The same in thousandths, of times.
    pub(super) fn thousandths(&self, name: &str, labels: &[(&str, &str)]) -> Option<u64> {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let page = self.page.borrow();
        let samples = page.lines().filter(|line| {
            let of_name = line
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']));
            of_name && labels.iter().all(|label| line.contains(label.as_str()))
        });
        let values = samples.map(|line| thousandths(line.rsplit(' ').next().unwrap()));
        values.reduce(|sum, value| sum + value)
    }

    /// The number of dead letters of a subscription that are written.
    pub(super) async fn letters(&self, name: &str) -> u64 {
        let path = format!("/topics/orders/subscriptions/{name}/dead-letters?limit=1000");
        let page = self.get(&path).await;
        assert_eq!(page.get("cursor"), None, "{name}");
        page["deadLetters"].as_array().unwrap().len() as u64
    }

    /// All records of the log since a time, page by page, the newest first.
    pub(super) async fn records(&self, from: &str) -> Vec<Value> {
        let mut records = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/topics/orders/events?limit=1000&from={from}{cursor}");
            let mut page = self.get(&path).await;
            if let Value::Array(some) = page["records"].take() {
                records.extend(some);
            }
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return records,
            }
        }
    }

    /// An event as the API shows it.
    pub(super) async fn event(&self, id: &str) -> Value {
        self.get(&format!("/topics/orders/events/{id}")).await
    }

    /// Reads the console's page of an event: its state, and that of each subscription, in the words of
    /// the API.
    pub(super) async fn event_page(&self, id: &str) -> (Option<String>, BTreeMap<String, String>) {
        let url = format!("/console/topics/orders/events/{id}");
        let page = self.browser.page(&url).await;
        let badge = |text: &str| {
            let (_, rest) = text.split_once("<span class=\"badge ").unwrap();
            match between(rest, ">", "<") {
                "waiting until it recovers" => "held".to_owned(),
                word => word.to_owned(),
            }
        };
        let (_, sentence) = page.split_once("<section id=\"sentence\"").unwrap();
        let sentence = sentence.split_once("</section>").unwrap().0;
        let has_state = sentence.contains("<span class=\"badge ");
        let state = has_state.then(|| badge(sentence));
        let deliveries = page.split("data-label=\"Subscription\"").skip(1);
        let of_each = deliveries
            .map(|text| {
                (
                    between(text, "/subscriptions/", "\"").to_owned(),
                    badge(text),
                )
            })
            .collect();
        (state, of_each)
    }
}

/// A decimal number with at most three digits after the point, in thousandths.
fn thousandths(text: &str) -> u64 {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    assert!(rest.len() <= 3, "{text}");
    format!("{whole}{rest:0<3}").parse().unwrap()
}
