//! What is counted, as Prometheus would read it.

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

use crate::world::{BATCH, KEY, MINIMAL, World, events, request, send, subscriptions};

/// Posts to `path` with this key, one request after the other, and answers the counters, sorted.
fn counted(posts: &[(&str, &str, String)]) -> Vec<String> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let only_t = json!({ "filter": { "includedEventTypes": ["t"] } });
            let world = World::new(subscriptions(&[("a", only_t.clone()), ("b", only_t)])).await;
            let app = posthaste_publish::router(world.publish().into());
            for (path, key, body) in posts {
                let headers = [("aeg-sas-key", *key), BATCH];
                send(app.clone(), request(path, &headers, body.clone())).await;
            }
        });
    });
    let text = handle.render();
    let mut lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    lines.sort_unstable();
    lines.into_iter().filter(|line| !line.contains("quantile")).map(str::to_owned).collect()
}

#[test]
fn events_are_counted_and_matched_ones_once() {
    let other = MINIMAL.replace("\"t\"", "\"u\"");
    let posts = [
        ("/topics/orders/events", KEY.1, events(3)),
        ("/topics/ORDERS/events", KEY.1, format!("[{MINIMAL},{other},{other}]")),
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

#[test]
fn a_refused_request_counts_as_one_event_of_a_topic_that_is_there() {
    let posts = [
        ("/topics/orders/events", KEY.1, "[{},{}]".to_owned()),
        ("/topics/nope/events", KEY.1, events(1)),
        ("/topics/orders/events", "wrong", events(1)),
    ];
    assert_eq!(counted(&posts), ["PublishFailCount{topic=\"Orders\"} 2"]);
}
