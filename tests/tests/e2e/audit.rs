//! The audit trail of a real server: by the command line, by HTTP, and after a kill.

use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::subscription;
use posthaste_tests::home::Home;
use serde_json::{Value, json};

/// The entries about the topic `orders`, the newest first: way, address, operation and outcome.
fn trail(entries: &Value) -> Vec<[String; 4]> {
    let of = |entry: &Value| {
        ["via", "address", "action", "outcome"].map(|member| {
            let text = entry[member].as_str();
            text.unwrap_or_default().to_owned()
        })
    };
    let entries = entries["entries"].as_array();
    entries.into_iter().flatten().map(of).collect()
}

fn expected(rows: [[&str; 2]; 2]) -> Vec<[String; 4]> {
    let row = |[via, action]: [&str; 2]| [via, "127.0.0.1", action, "done"].map(str::to_owned);
    rows.map(row).to_vec()
}

#[test]
fn changes_say_their_way_and_address_and_outlive_a_kill() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.url("/a"));
    server
        .api()
        .create_topic_with("orders", "billing", &settings);
    home.run_json(&server, &["subscriptions", "pause", "orders", "billing"]);
    let rows = [
        ["cli", "subscription.pause"],
        // With its subscription.
        ["api", "topic.put"],
    ];
    let list = ["audit", "--topic", "orders"];
    assert_eq!(trail(&home.run_json(&server, &list)), expected(rows));
    // The answer was given, so the entry is on the disk.
    server.kill();

    let server = home.serve();
    let entries = home.run_json(&server, &list);
    assert_eq!(trail(&entries), expected(rows));
    assert_eq!(entries, server.api().show("/audit?topic=orders"));
    let changes = json!([
        { "member": "subscriptions.billing.status.reason", "after": "paused by an operator" },
        { "member": "subscriptions.billing.status.state", "before": "Active", "after": "Paused" },
    ]);
    assert_eq!(entries["entries"][0]["changes"], changes);
    let text = home.run(&server, &list);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("subscription.pause  orders/billing  done"),
        "{text}"
    );
    server.stop();
}
