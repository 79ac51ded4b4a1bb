//! Topics and their subscriptions, and the requests that are published to them by turns.

use posthaste_tests::api::Api;
use posthaste_tests::events::{subscription, subscription_with};
use posthaste_tests::patience::now;
use serde_json::{Map, Value, json};

use crate::shape::Shape;
use crate::wire::{self, EVENT_BYTES, MEASURED};

/// Most subscriptions of a topic.
const SUBSCRIPTIONS_MAX: usize = 500;

/// Bytes of the different events that are published by turns, if they are not more already. Equal
/// ones close together would share a payload in the delivery log.
const DIFFERENT_BYTES: usize = 2 * 1024 * 1024;

/// The events that are published, and their subscriptions.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// The subscriptions of each topic.
    topics: Vec<Map<String, Value>>,
    /// The topic of each request, and the types of its events.
    requests: Vec<(usize, Vec<String>)>,
    event_bytes: usize,
    /// Subscriptions that get each event.
    pub(crate) fan_out: usize,
}

impl Traffic {
    /// A row of the table: one topic, all of whose subscriptions get every event.
    pub(crate) fn of_shape(shape: Shape, url: &str) -> Self {
        let subscriptions = all_of(shape.subscriptions(), |n| {
            subscription(&format!("{url}/s{n}"))
        });
        Self::one_topic(subscriptions, shape.batch(), shape.subscriptions())
    }

    /// One topic with a subscription of these settings that gets every event, in requests of
    /// `batch`.
    pub(crate) fn of_settings(settings: Value, batch: usize) -> Self {
        Self::one_topic(Map::from_iter([("s0".to_owned(), settings)]), batch, 1)
    }

    /// One topic, of whose subscriptions only one gets the events.
    pub(crate) fn matching_one_of(count: usize, url: &str) -> Self {
        let wanted = |n| if n == 0 { MEASURED.to_owned() } else { kind(n) };
        let subscriptions = all_of(count, |n| typed(&format!("{url}/s{n}"), &wanted(n)));
        Self::one_topic(subscriptions, 1, 1)
    }

    /// A subscription for each URL, and a type of events for each subscription. Requests of `batch`
    /// events, each for another subscription.
    pub(crate) fn spread_over(urls: &[String], batch: usize) -> Self {
        let numbers: Vec<_> = (0..urls.len()).collect();
        let topic = |numbers: &[usize]| {
            let one = |n: &usize| (format!("s{n}"), typed(&urls[*n], &kind(*n)));
            numbers.iter().map(one).collect()
        };
        let topics = numbers.chunks(SUBSCRIPTIONS_MAX).map(topic).collect();
        Self {
            topics,
            requests: mixed(urls.len(), batch),
            event_bytes: EVENT_BYTES,
            fan_out: 1,
        }
    }

    /// The topics and events of [`Self::spread_over`], with one subscription a topic, all on one
    /// URL.
    pub(crate) fn gathered(count: usize, url: &str, batch: usize) -> Self {
        let topic = || Map::from_iter([("all".to_owned(), subscription(url))]);
        let topics = (0..count.div_ceil(SUBSCRIPTIONS_MAX))
            .map(|_| topic())
            .collect();
        Self {
            topics,
            requests: mixed(count, batch),
            event_bytes: EVENT_BYTES,
            fan_out: 1,
        }
    }

    /// Topics with one subscription each, all on one URL. Requests of one event.
    pub(crate) fn on_topics(count: usize, url: &str) -> Self {
        let topic = || Map::from_iter([("all".to_owned(), subscription(url))]);
        let requests = (0..count)
            .map(|topic| (topic, vec![MEASURED.to_owned()]))
            .collect();
        let topics = (0..count).map(|_| topic()).collect();
        Self {
            topics,
            requests,
            event_bytes: EVENT_BYTES,
            fan_out: 1,
        }
    }

    /// The same with events of another size.
    pub(crate) fn with_event_bytes(self, event_bytes: usize) -> Self {
        Self {
            event_bytes,
            ..self
        }
    }

    fn one_topic(subscriptions: Map<String, Value>, batch: usize, fan_out: usize) -> Self {
        let requests = vec![(0, vec![MEASURED.to_owned(); batch])];
        Self {
            topics: vec![subscriptions],
            requests,
            event_bytes: EVENT_BYTES,
            fan_out,
        }
    }

    /// Events in each request.
    pub(crate) fn batch(&self) -> usize {
        self.requests.first().map_or(1, |(_, kinds)| kinds.len())
    }

    /// Creates the topics, and answers the requests.
    pub(crate) fn create(&self, api: &Api) -> Vec<Vec<u8>> {
        let create = |(n, subscriptions): (usize, &Map<String, Value>)| {
            api.create_topic(
                &format!("bench{n}"),
                &json!({ "subscriptions": subscriptions }),
            )
        };
        let topics: Vec<_> = self.topics.iter().enumerate().map(create).collect();
        let event = |kind: &String| wire::event(kind, self.event_bytes, now().as_nanos());
        let request = |(topic, kinds): &(usize, Vec<String>)| {
            let topic = &topics[*topic];
            let events = kinds.iter().map(event).collect::<Vec<_>>();
            wire::publish(&topic.path(), &topic.keys[0], &events)
        };
        let events: usize = self.requests.iter().map(|(_, kinds)| kinds.len()).sum();
        let rounds = DIFFERENT_BYTES.div_ceil(events * self.event_bytes);
        (0..rounds)
            .flat_map(|_| self.requests.iter().map(request))
            .collect()
    }
}

fn all_of(count: usize, settings: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..count).map(|n| (format!("s{n}"), settings(n))).collect()
}

/// The type of a subscription's events.
fn kind(n: usize) -> String {
    format!("com.example.kind{n}")
}

fn typed(url: &str, kind: &str) -> Value {
    subscription_with(url, &json!({ "filter": { "includedEventTypes": [kind] } }))
}

/// Requests in which each subscription's type is once.
fn mixed(count: usize, batch: usize) -> Vec<(usize, Vec<String>)> {
    let numbers: Vec<_> = (0..count).collect();
    let request = |numbers: &[usize]| {
        (
            numbers[0] / SUBSCRIPTIONS_MAX,
            numbers.iter().map(|n| kind(*n)).collect(),
        )
    };
    numbers
        .chunks(SUBSCRIPTIONS_MAX)
        .flat_map(|topic| topic.chunks(batch))
        .map(request)
        .collect()
}
