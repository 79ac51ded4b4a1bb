//! Pages over topics in memory, on a clock that is moved by hand.

use super::*;
use crate::metrics::series::TOPICS_KEPT;
use http_body_util::BodyExt;
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::Timestamp;
use posthaste_services::LinkHealth;
use posthaste_testkit::ManualClock;
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use serde_json::json;

struct World {
    series: MetricSeries,
    store: MemoryStore,
    clock: ManualClock,
    pages: MetricsPages<MemoryStore, MemoryQueue, ManualClock>,
}

impl World {
    fn new(by: SeriesBy) -> Self {
        let series = MetricSeries::new(by);
        let store = MemoryStore::default();
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let registry = TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO);
        let standing = LookedUpMetrics {
            state: store.clone(),
            deliveries: MemoryQueue::default(),
            given_up: [MemoryQueue::default(), MemoryQueue::default()],
            records: MemoryQueue::default(),
            links: LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default()),
            clock: clock.clone(),
        };
        let pages = MetricsPages::new(series.clone(), standing, registry);
        Self {
            series,
            store,
            clock,
            pages,
        }
    }

    /// Stores a topic with these subscriptions.
    fn put(&self, topic: &str, subscriptions: &[&str]) {
        let settings = json!({ "endpoint": { "url": "https://a.example/" } });
        let subscriptions: serde_json::Map<_, _> = subscriptions
            .iter()
            .map(|name| ((*name).to_owned(), settings.clone()))
            .collect();
        let record = json!({
            "v": 1, "name": topic, "key1": "one", "key2": "two", "createdAt": 0, "updatedAt": 0,
            "settings": { "subscriptions": subscriptions },
        });
        let key = format!("topics/{topic}.json");
        self.store.write(&key, record.to_string().into_bytes());
    }

    fn count(&self, topic: &str, subscription: Option<String>) {
        let topic = topic.to_owned();
        metrics::with_local_recorder(&self.series, || match subscription {
            Some(name) => {
                metrics::counter!("DeliverySuccessCount", "topic" => topic, "subscription" => name)
                    .increment(1);
            }
            None => metrics::counter!("PublishSuccessCount", "topic" => topic).increment(1),
        });
    }

    /// The samples of events that were accepted or delivered, on the page of the next second.
    async fn samples(&self) -> Vec<String> {
        self.clock.advance(SHARED_FOR);
        let text = self.read().await;
        let counted = [
            "posthaste_events_accepted_total",
            "posthaste_deliveries_total",
        ];
        text.lines()
            .filter(|line| counted.iter().any(|name| line.starts_with(name)))
            .map(str::to_owned)
            .collect()
    }

    async fn page(&self) -> Body {
        self.pages.current_page(PageFormat::Text).await.unwrap()
    }

    async fn read(&self) -> String {
        read(self.page().await).await
    }

    async fn upkeeps(&self, count: u32) {
        for _ in 0..count {
            self.pages.run_upkeep().await;
        }
    }
}

async fn read(body: Body) -> String {
    let bytes = body.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.into()).unwrap()
}

const BILLS: &str = r#"posthaste_events_accepted_total{topic="bills"} 1"#;

fn delivered(topic: &str, subscription: &str) -> String {
    format!(
        r#"posthaste_deliveries_total{{topic="{topic}",subscription="{subscription}",outcome="delivered"}} 1"#
    )
}

#[tokio::test]
async fn series_are_forgotten_with_their_topic_once_shown() {
    let world = World::new(SeriesBy::default());
    world.put("bills", &[]);
    world.count("Orders", None);
    world.count("bills", None);
    assert_eq!(world.samples().await.len(), 2);
    assert_eq!(world.samples().await, [BILLS]);
    // A topic that is made again begins at 0.
    world.count("orders", None);
    let orders = r#"posthaste_events_accepted_total{topic="orders"} 1"#.to_owned();
    assert!(world.samples().await.contains(&orders));
}

#[tokio::test]
async fn series_are_forgotten_with_their_subscription() {
    let world = World::new(SeriesBy::Subscription);
    world.put("bills", &["a", "b"]);
    world.count("bills", None);
    for name in ["A", "b"] {
        world.count("bills", Some(name.to_owned()));
    }
    let all = [
        BILLS.to_owned(),
        delivered("bills", "A"),
        delivered("bills", "b"),
    ];
    for _ in 0..2 {
        assert_eq!(world.samples().await, all);
    }
    world.put("bills", &["b"]);
    let rest = [all[0].clone(), all[2].clone()];
    assert_eq!(world.samples().await, rest);
    assert_eq!(world.samples().await, rest);
}

#[tokio::test]
async fn series_of_an_unreadable_topic_are_kept() {
    let world = World::new(SeriesBy::default());
    world.store.write("topics/bills.json", "damaged");
    world.count("bills", None);
    for _ in 0..3 {
        assert_eq!(world.samples().await, [BILLS]);
    }
}

/// More topics come and go than have room: the fresh one has series of its own, also where nobody
/// asks for metrics.
#[tokio::test]
async fn fresh_topic_has_series_after_many_deleted_ones() {
    for is_shown in [true, false] {
        let world = World::new(SeriesBy::default());
        world.put("bills", &[]);
        for n in 0..600 {
            if is_shown && n % 50 == 0 {
                // Once for the last measurements, once without them.
                world.samples().await;
                world.samples().await;
            } else if n % 50 == 0 {
                world.upkeeps(13).await;
            }
            world.count(&format!("gone-{n}"), None);
        }
        world.count("bills", None);
        let samples = world.samples().await;
        assert!(samples.contains(&BILLS.to_owned()), "{samples:?}");
    }
}

/// A topic of the store that was not measured yet has a place, whatever was measured before it.
#[tokio::test]
async fn topics_of_the_store_have_places_from_the_first_page_on() {
    let world = World::new(SeriesBy::default());
    for n in 0..TOPICS_MAX + 5 {
        world.put(&format!("t{n:03}"), &[]);
    }
    world.samples().await;
    for n in (0..TOPICS_MAX + 5).rev() {
        world.count(&format!("t{n:03}"), None);
    }
    let samples = world.samples().await;
    let own = |n: usize| format!(r#"posthaste_events_accepted_total{{topic="t{n:03}"}} 1"#);
    assert_eq!(samples.len(), TOPICS_KEPT + 1);
    assert!(samples.contains(&own(0)) && samples.contains(&own(TOPICS_KEPT - 1)));
    assert!(samples.contains(&r#"posthaste_events_accepted_total{topic="_other"} 105"#.to_owned()));
}

/// The whole page, with what is looked up: as small, and its sums right.
#[tokio::test]
async fn page_of_ten_thousand_topics_is_small_and_its_sums_are_right() {
    let world = World::new(SeriesBy::default());
    let name = |n: usize| format!("{n:05}-{}", "x".repeat(58));
    for n in 0..10_000 {
        world.put(&name(n), &["all"]);
        world.count(&name(n), None);
        world.count(&name(n), Some("all".to_owned()));
    }
    let page = world.read().await;
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let sum = |name: &str| -> u64 {
        let lines = page.lines().filter(|line| line.starts_with(name));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    };
    assert_eq!(sum("posthaste_events_accepted_total{"), 10_000);
    assert_eq!(sum("posthaste_deliveries_total{"), 10_000);
    assert_eq!(sum("posthaste_subscription_up{"), 100);
}

#[tokio::test]
async fn page_is_shared_by_all_who_ask_in_the_same_second() {
    let world = World::new(SeriesBy::default());
    world.put("bills", &[]);
    world.count("bills", None);
    let first = world.read().await;
    world.count("bills", None);
    world
        .clock
        .advance(SHARED_FOR.saturating_sub(Duration::from_millis(1)));
    for _ in 0..400 {
        assert_eq!(world.read().await, first);
    }
    world.clock.advance(Duration::from_millis(1));
    let second = world.read().await;
    let twice = r#"posthaste_events_accepted_total{topic="bills"} 2"#;
    assert!(second.contains(twice), "{second}");
}

#[tokio::test]
async fn each_form_has_a_page_of_its_own() {
    let world = World::new(SeriesBy::default());
    for _ in 0..2 {
        let text = world.read().await;
        let open_metrics = world
            .pages
            .current_page(PageFormat::OpenMetrics)
            .await
            .unwrap();
        let open_metrics = read(open_metrics).await;
        assert!(open_metrics.ends_with("# EOF\n"), "{open_metrics}");
        assert!(!text.contains("# EOF"), "{text}");
    }
    assert_eq!(world.pages.places.available_permits(), PAGES_MAX - 2);
    world.clock.advance(SHARED_FOR);
    world.read().await;
    assert_eq!(world.pages.places.available_permits(), PAGES_MAX - 1);
}

/// As many clients as there are pages read slowly: all others share the page of the last of them.
#[tokio::test]
async fn slow_readers_leave_the_latest_page_to_others() {
    let world = World::new(SeriesBy::default());
    world.put("bills", &[]);
    let mut slow = Vec::new();
    for _ in 0..PAGES_MAX {
        world.count("bills", None);
        slow.push(world.page().await);
        world.clock.advance(SHARED_FOR);
    }
    world.count("bills", None);
    let bills =
        |number: usize| format!(r#"posthaste_events_accepted_total{{topic="bills"}} {number}"#);
    for _ in 0..3 {
        let page = world.read().await;
        assert!(page.contains(&bills(PAGES_MAX)), "{page}");
        world.clock.advance(SHARED_FOR);
    }
    assert_eq!(world.pages.places.available_permits(), 0);
    slow.pop();
    let page = world.read().await;
    assert!(page.contains(&bills(PAGES_MAX + 1)), "{page}");
}

/// A fault in rendering is an error for all who asked in that second, and no empty page.
#[tokio::test]
async fn page_that_was_not_rendered_is_an_error() {
    let world = World::new(SeriesBy::default());
    let page = world.pages.take_page(PageFormat::Text).unwrap();
    page.pieces.set(None).unwrap();
    drop(page);
    let error = world
        .pages
        .current_page(PageFormat::Text)
        .await
        .unwrap_err();
    assert_eq!(error, PageError::NotRendered);
    world.clock.advance(SHARED_FOR);
    assert!(world.pages.current_page(PageFormat::Text).await.is_ok());
}
