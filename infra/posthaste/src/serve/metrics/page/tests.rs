//! Pages over topics in memory, on a clock that is moved by hand.

use super::*;
use crate::serve::metrics::SERIES_MAX;
use http_body_util::BodyExt;
use posthaste_core::model::Timestamp;
use posthaste_testkit::ManualClock;
use posthaste_testkit::memory::MemoryStore;
use serde_json::json;

struct World {
    series: Series,
    store: MemoryStore,
    clock: ManualClock,
    pages: Pages<MemoryStore, ManualClock>,
}

impl World {
    fn new(series_max: usize) -> Self {
        let (series, store) = (Series::new(series_max).unwrap(), MemoryStore::default());
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let registry = Registry::new(store.clone(), clock.clone(), Duration::ZERO);
        let pages = Pages::new(series.clone(), registry, clock.clone());
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

    fn count(&self, topic: &'static str, subscription: Option<String>) {
        metrics::with_local_recorder(&self.series, || match subscription {
            Some(name) => {
                metrics::counter!("DeliverySuccessCount", "topic" => topic, "subscription" => name)
                    .increment(1);
            }
            None => metrics::counter!("PublishSuccessCount", "topic" => topic).increment(1),
        });
    }

    /// The samples of the page of the next second, without their headers.
    async fn samples(&self) -> Vec<String> {
        self.clock.advance(SHARED_FOR);
        let text = read(self.pages.page().await.unwrap()).await;
        text.lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
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

const BILLS: &str = r#"PublishSuccessCount{topic="bills"} 1"#;

fn delivered(topic: &str, subscription: &str) -> String {
    format!(r#"DeliverySuccessCount{{topic="{topic}",subscription="{subscription}"}} 1"#)
}

#[tokio::test]
async fn series_are_forgotten_with_their_topic_once_shown() {
    let world = World::new(SERIES_MAX);
    world.put("bills", &[]);
    world.count("Orders", None);
    world.count("bills", None);
    metrics::with_local_recorder(&world.series, || {
        metrics::gauge!("PressureTarpitInMs").set(1.0);
    });
    assert_eq!(world.samples().await.len(), 3);
    assert_eq!(world.samples().await, ["PressureTarpitInMs 1", BILLS]);
    // A topic that is made again begins at 0.
    world.count("orders", None);
    let orders = r#"PublishSuccessCount{topic="orders"} 1"#.to_owned();
    assert!(world.samples().await.contains(&orders));
}

#[tokio::test]
async fn series_are_forgotten_with_their_subscription() {
    let world = World::new(SERIES_MAX);
    world.put("bills", &["a", "b"]);
    world.count("bills", None);
    for name in ["A", "b"] {
        world.count("bills", Some(name.to_owned()));
    }
    let all = [
        delivered("bills", "A"),
        delivered("bills", "b"),
        BILLS.to_owned(),
    ];
    for _ in 0..2 {
        assert_eq!(world.samples().await, all);
    }
    world.put("bills", &["b"]);
    assert_eq!(world.samples().await, all[1..]);
    assert_eq!(world.samples().await, all[1..]);
}

#[tokio::test]
async fn nothing_is_forgotten_while_its_topic_cannot_be_read() {
    let world = World::new(SERIES_MAX);
    world.store.write("topics/bills.json", "damaged");
    world.count("bills", None);
    for _ in 0..3 {
        assert_eq!(world.samples().await, [BILLS]);
    }
}

/// More subscriptions come and go than there are series: the fresh one is measured, also where
/// nobody asks for metrics.
#[tokio::test]
async fn fresh_subscription_is_measured_after_many_deleted_ones() {
    for is_shown in [true, false] {
        let world = World::new(100);
        world.put("bills", &["fresh"]);
        for n in 0..300 {
            if is_shown && n % 50 == 0 {
                // Once for the last measurements, once without them.
                world.samples().await;
                world.samples().await;
            } else if n % 50 == 0 {
                world.upkeeps(13).await;
            }
            world.count("bills", Some(format!("gone-{n}")));
        }
        world.count("bills", Some("fresh".to_owned()));
        let samples = world.samples().await;
        assert!(
            samples.contains(&delivered("bills", "fresh")),
            "{samples:?}"
        );
    }
}

#[tokio::test]
async fn series_beyond_the_bound_are_counted_and_not_shown() {
    let world = World::new(3);
    for topic in ["t0", "t1", "t2", "t3", "t4"] {
        world.count(topic, None);
        world.count("t0", None);
    }
    let samples = world.samples().await;
    assert_eq!(samples.len(), 4, "{samples:?}");
    for expected in [
        "MetricSeriesRefusedCount 2",
        r#"PublishSuccessCount{topic="t0"} 6"#,
    ] {
        assert!(samples.iter().any(|it| it == expected), "{samples:?}");
    }
}

#[tokio::test]
async fn page_is_shared_by_all_who_ask_in_the_same_second() {
    let world = World::new(SERIES_MAX);
    world.put("bills", &[]);
    world.count("bills", None);
    let first = read(world.pages.page().await.unwrap()).await;
    world.count("bills", None);
    world
        .clock
        .advance(SHARED_FOR.saturating_sub(Duration::from_millis(1)));
    for _ in 0..400 {
        assert_eq!(read(world.pages.page().await.unwrap()).await, first);
    }
    world.clock.advance(Duration::from_millis(1));
    let second = read(world.pages.page().await.unwrap()).await;
    assert!(
        second.contains(r#"PublishSuccessCount{topic="bills"} 2"#),
        "{second}"
    );
}

/// As many clients as there are pages read slowly: all others share the page of the last of them.
#[tokio::test]
async fn slow_readers_leave_the_latest_page_to_others() {
    let world = World::new(SERIES_MAX);
    world.put("bills", &[]);
    let mut slow = Vec::new();
    for _ in 0..PAGES_MAX {
        world.count("bills", None);
        slow.push(world.pages.page().await.unwrap());
        world.clock.advance(SHARED_FOR);
    }
    world.count("bills", None);
    for _ in 0..3 {
        let page = read(world.pages.page().await.unwrap()).await;
        let latest = format!(r#"PublishSuccessCount{{topic="bills"}} {PAGES_MAX}"#);
        assert!(page.contains(&latest), "{page}");
        world.clock.advance(SHARED_FOR);
    }
    assert_eq!(world.pages.places.available_permits(), 0);
    slow.pop();
    let page = read(world.pages.page().await.unwrap()).await;
    let newest = format!(r#"PublishSuccessCount{{topic="bills"}} {}"#, PAGES_MAX + 1);
    assert!(page.contains(&newest), "{page}");
}

/// A fault in rendering is an error for all who asked in that second, and no empty page.
#[tokio::test]
async fn page_that_was_not_rendered_is_an_error() {
    let world = World::new(SERIES_MAX);
    let page = world.pages.take().unwrap();
    page.pieces.set(None).unwrap();
    drop(page);
    let error = world.pages.page().await.unwrap_err();
    assert_eq!(error, PageError::NotRendered);
    world.clock.advance(SHARED_FOR);
    assert!(world.pages.page().await.is_ok());
}
