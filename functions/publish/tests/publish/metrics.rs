//! The metrics, as Prometheus would read them.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use posthaste_core::model::ProducerTier;
use posthaste_publish::TarpitMode;
use serde_json::json;

use crate::pressure::put_pressure;
use crate::world::{
    BATCH, KEY, MINIMAL, STRUCTURED, World, events, one, request, send, subscriptions,
};

/// Posts to `path` with this key, one request after the other, and answers the counters, sorted.
fn counted(posts: &[(&str, &str, String)]) -> Vec<String> {
    recorded(async {
        let only_t = json!({ "filter": { "includedEventTypes": ["t"] } });
        let world = World::new(subscriptions(&[("a", only_t.clone()), ("b", only_t)])).await;
        let app = posthaste_publish::router(world.publish().into());
        for (path, key, body) in posts {
            let headers = [("aeg-sas-key", *key), BATCH];
            send(app.clone(), request(path, &headers, body.clone())).await;
        }
    })
}

/// Does this and answers the counters, sorted.
fn recorded(work: impl Future<Output = ()>) -> Vec<String> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(work));
    let text = handle.render();
    let mut lines: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .collect();
    lines.sort_unstable();
    lines
        .into_iter()
        .filter(|line| !line.contains("quantile"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn events_are_counted_and_matched_ones_once() {
    let other = MINIMAL.replace("\"t\"", "\"u\"");
    let posts = [
        ("/topics/orders/events", KEY.1, events(3)),
        (
            "/topics/ORDERS/events",
            KEY.1,
            format!("[{MINIMAL},{other},{other}]"),
        ),
    ];
    let expected = [
        "MatchedEventCount{topic=\"Orders\"} 4",
        "PublishSuccessCount{topic=\"Orders\"} 6",
        "PublishSuccessLatencyInMs_count{topic=\"Orders\"} 2",
        "PublishSuccessLatencyInMs_sum{topic=\"Orders\"} 0",
        "UnmatchedEventCount{topic=\"Orders\"} 2",
    ];
    assert_eq!(counted(&posts), expected);
}

/// Requests that back pressure delays or refuses are counted by tier.
#[test]
fn delayed_and_refused_requests_are_counted_by_tier() {
    let tarpit = Duration::from_secs(15);
    let counted = recorded(async {
        let world = World::new(one()).await;
        world.put_topic_with_tier_keys(one()).await;
        let mut publish = world.publish();
        publish.settings.tarpit = TarpitMode::Advise;
        let app = posthaste_publish::router(publish.into());
        let post = async |key, tier| {
            let headers = [("aeg-sas-key", key), STRUCTURED, ("posthaste-tier", tier)];
            send(
                app.clone(),
                request("/topics/orders/events", &headers, MINIMAL),
            )
            .await
            .status
        };
        put_pressure(&world, tarpit, None, &[]).await;
        // The first one of each tier goes on, so it is not delayed. At Medium no internal one is.
        for key in ["key-one", "key-bulk"] {
            assert_eq!(
                [post(key, "").await, post(key, "").await],
                [200, 429],
                "{key}"
            );
        }
        put_pressure(&world, Duration::ZERO, Some(ProducerTier::Standard), &[]).await;
        assert_eq!(
            [post("key-two", "").await, post("key-two", "bulk").await],
            [503, 503]
        );
        assert_eq!(post("key-internal", "").await, 200);
        // Where acknowledgements wait, those that do are counted as they begin to.
        let app = posthaste_publish::router(world.publish().into());
        put_pressure(&world, tarpit, None, &[]).await;
        let mut held = pin!(send(
            app,
            request("/topics/orders/events", &[KEY, STRUCTURED], MINIMAL)
        ));
        assert!(
            held.as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    });
    let of_pressure = counted
        .into_iter()
        .filter(|line| !line.starts_with("PublishSuccess"));
    let expected = [
        "MatchedEventCount{topic=\"Orders\"} 3",
        "PublishDelayedCount{topic=\"Orders\",tier=\"bulk\"} 1",
        "PublishDelayedCount{topic=\"Orders\",tier=\"standard\"} 2",
        "PublishFailCount{topic=\"Orders\"} 4",
        "PublishRefusedCount{topic=\"Orders\",tier=\"bulk\"} 1",
        "PublishRefusedCount{topic=\"Orders\",tier=\"standard\"} 1",
    ];
    assert_eq!(of_pressure.collect::<Vec<_>>(), expected);
}

/// A refused request counts as one event, and only of a topic that exists.
#[test]
fn refused_request_counts_as_one_event_of_an_existing_topic() {
    let posts = [
        ("/topics/orders/events", KEY.1, "[{},{}]".to_owned()),
        ("/topics/nope/events", KEY.1, events(1)),
        ("/topics/orders/events", "wrong", events(1)),
    ];
    let expected = [
        "PublishFailCount{topic=\"Orders\"} 2",
        // Of a topic that is not there every key is a wrong one.
        "WrongKeyCount{function=\"publish\"} 2",
    ];
    assert_eq!(counted(&posts), expected);
}
