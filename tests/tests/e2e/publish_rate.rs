//! A file of many events through the real program on both sides: `posthaste publish --rate` to
//! `posthaste serve`.

use posthaste_tests::endpoint::{Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use serde_json::json;

#[test]
fn every_event_of_a_file_is_received_once() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription_with(
        &endpoint.url("/a"),
        &json!({ "batching": { "maxEventsPerBatch": 100 } }),
    );
    server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let lines: Vec<_> = (0..5000)
        .map(|n| format!("{}\n", cloud_event(&format!("e{n:04}"))))
        .collect();
    let file = home.path().join("events.ndjson");
    std::fs::write(&file, lines.concat()).expect("there is room for a file");
    let arguments = [
        "publish",
        "orders",
        "--file",
        file.to_str().expect("a text"),
        "--rate",
        "auto",
    ];
    let said = home.run_json(&server, &arguments)["published"].clone();
    assert_eq!(
        (&said["events"], &said["requests"], &said["nextEvent"]),
        (&json!(5000), &json!(50), &json!(5000))
    );
    assert_eq!(
        (&said["unmatchedEvents"], &said["matchedSubscriptionsMax"]),
        (&json!(0), &json!(1))
    );
    let received = || {
        endpoint
            .received("/a")
            .iter()
            .flat_map(Received::ids)
            .collect::<Vec<_>>()
    };
    let mut ids = wait_until("5000 events", || {
        Some(received()).filter(|ids| ids.len() >= 5000)
    });
    ids.sort_unstable();
    assert_eq!(
        ids,
        (0..5000).map(|n| format!("e{n:04}")).collect::<Vec<_>>()
    );

    // The whole file again, as after an end that left everything unclear: what goes by the same
    // names is not published again, and an event that comes after it is the next that arrives.
    let run = said["run"].as_str().expect("a run has a name");
    let again = home.run_json(&server, &[&arguments[..], &["--run", run]].concat());
    let again = &again["published"];
    assert_eq!(
        (&again["events"], &again["matchedSubscriptionsMax"]),
        (&json!(5000), &json!(1))
    );
    server.api().topic("orders").publish(&cloud_event("last"));
    wait_until("the last event", || {
        received().last().filter(|id| *id == "last").cloned()
    });
    assert_eq!(received().len(), 5001);
}
