//! The delivery log, asked with the command line: what became of events, and what happens now.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use jiff::Timestamp;
use posthaste_tests::binary::posthaste;
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::seen::Seen;
use posthaste_tests::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Publishes three events: the first is delivered, the second after a 503, and the third is
/// refused.
fn publish_three(server: &Server, endpoint: &Endpoint) {
    let settings = subscription(&endpoint.on("/a", &[200, 503, 200, 400, 204]));
    let topic = server
        .api()
        .create_topic_with("orders", "Billing", &settings);
    for (id, requests) in [("1", 1), ("2", 3), ("3", 4)] {
        topic.publish(&cloud_event(id));
        endpoint.wait_for("/a", requests);
    }
}

/// Returns what `events show` says of an event, once it is in this state.
fn shown(home: &Home, server: &Server, id: &str, state: &str) -> Value {
    wait_until(&format!("event {id} to be {state}"), || {
        let mut event = home.run_json(server, &["events", "show", "orders", id, "--payload"]);
        (event["deliveries"][0]["state"] == state).then(|| event["deliveries"][0].take())
    })
}

/// The time in a `webhook-id`: the first 48 bits of its digits.
fn time_in(webhook_id: &str) -> Timestamp {
    let digits = webhook_id.strip_prefix("msg_").unwrap();
    Timestamp::from_millisecond(i64::from_str_radix(&digits[..12], 16).unwrap()).unwrap()
}

fn pairs(records: &Value, members: [&str; 2]) -> Vec<Value> {
    let pair = |record: &Value| json!(members.map(|member| &record[member]));
    records.as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn event_history_is_shown_and_listed() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    publish_three(&server, &endpoint);

    let first = shown(&home, &server, "1", "delivered");
    assert_eq!(
        pairs(&first["attempts"], ["number", "status"]),
        [json!([1, 200])]
    );
    assert_eq!(
        (&first["subscription"], &first["payload"]["id"]),
        (&json!("Billing"), &json!("1"))
    );
    let webhook_id = endpoint.received("/a")[0]
        .header("webhook-id")
        .unwrap()
        .to_owned();
    assert_eq!(first["attempts"][0]["webhookId"], webhook_id);
    let accepted_at: Timestamp = first["acceptedAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(time_in(&webhook_id), accepted_at);
    for known in ["1", &webhook_id] {
        let found = home.run_json(&server, &["events", "show", known]);
        assert_eq!(
            pairs(&found["events"], ["topic", "id"]),
            [json!(["orders", "1"])]
        );
        assert!(found["searchedFrom"].is_string(), "{found}");
    }
    let second = shown(&home, &server, "2", "delivered");
    assert_eq!(
        pairs(&second["attempts"], ["number", "status"]),
        [json!([1, 503]), json!([2, 200])]
    );
    let third = shown(&home, &server, "3", "dead-lettered");
    assert_eq!(third["reason"], "UndeliverableDueToClientError");

    let text = home.run(&server, &["events", "show", "orders", "2"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.starts_with("the event as a whole: delivered\n\nBilling: delivered\naccepted at "),
        "{text}"
    );
    assert!(
        text.contains("Busy") && text.contains("The log is complete up to"),
        "{text}"
    );
    let of_request = ["events", "list", "orders", "--webhook-id", &webhook_id];
    assert_eq!(
        pairs(
            &home.run_json(&server, &of_request)["records"],
            ["id", "status"]
        ),
        [json!(["1", 200])]
    );
    let failed = home.run_json(&server, &["events", "list", "orders", "--result", "retry"]);
    assert_eq!(
        pairs(&failed["records"], ["id", "reason"]),
        [json!(["2", "Busy"])]
    );
    let attempts = home.run_json(&server, &["attempts", "list", "orders", "billing"]);
    let expected = [
        json!(["3", 400]),
        json!(["2", 200]),
        json!(["2", 503]),
        json!(["1", 200]),
    ];
    assert_eq!(pairs(&attempts["records"], ["id", "status"]), expected);
    let unknown = home.run(&server, &["attempts", "list", "orders", "crm"]);
    assert_eq!(unknown.status.code(), Some(4));
}

/// Starts `attempts list --follow` and reads its lines.
fn follow(home: &Home, server: &Server) -> (Child, Seen<Value>) {
    let mut command = Command::new(posthaste());
    command.args([
        "attempts",
        "list",
        "orders",
        "billing",
        "--follow",
        "--json",
        "--url",
        server.url(),
    ]);
    command
        .arg("--data-dir")
        .arg(home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let seen = Seen::default();
    let pushing = seen.clone();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            pushing.push(serde_json::from_str(&line).expect("a line is JSON"));
        }
    });
    (process, seen)
}

#[test]
fn new_attempts_are_followed_until_ctrl_c() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    publish_three(&server, &endpoint);
    let (mut process, seen) = follow(&home, &server);
    seen.wait_for("the attempts so far", |lines| {
        (lines.len() >= 4).then_some(())
    });
    server.api().topic("orders").publish(&cloud_event("4"));
    let lines = seen.wait_for("a new attempt", |lines| {
        (lines.len() >= 5).then(|| lines.to_vec())
    });
    let expected = [
        json!(["1", 200]),
        json!(["2", 503]),
        json!(["2", 200]),
        json!(["3", 400]),
        json!(["4", 204]),
    ];
    assert_eq!(pairs(&json!(lines), ["id", "status"]), expected);

    let pid = i32::try_from(process.id())
        .ok()
        .and_then(Pid::from_raw)
        .unwrap();
    let signal = ctrl_c();
    kill_process(pid, signal).unwrap();
    let ended = wait_until("the end of the tail", || process.try_wait().unwrap());
    // A shell makes 130 of it.
    assert_eq!(ended.signal(), Some(signal.as_raw()));
}

/// The signal of Ctrl-C. Where these tests run in the background of a shell, they and what they
/// start ignore it: then the signal that ends a program just the same.
fn ctrl_c() -> Signal {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let is_ignored = ignored >> (Signal::INT.as_raw() - 1) & 1 == 1;
    if is_ignored {
        Signal::TERM
    } else {
        Signal::INT
    }
}

#[test]
fn a_delivered_event_is_sent_again_under_its_webhook_id() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[200]));
    server
        .api()
        .create_topic_with("orders", "billing", &settings)
        .publish(&cloud_event("1"));
    shown(&home, &server, "1", "delivered");
    let resent = home.run_json(&server, &["events", "resend", "orders", "billing", "1"]);
    let requests = endpoint.wait_for("/a", 2);
    let webhook_id = requests[0].header("webhook-id");
    assert_eq!(
        (
            resent["webhookId"].as_str(),
            requests[1].header("webhook-id")
        ),
        (webhook_id, webhook_id)
    );
    assert_eq!(requests[0].body, requests[1].body);
}

#[test]
fn any_id_is_shown_and_sent_again() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[200]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let long = ["x", "a/b", "%41", "日本", "👋"].map(|text| text.repeat(5_000));
    let short = [
        "-1", "--all", ".", "..", "a/../b", "a b+c%", "a%41", "\"'`", "ü",
    ];
    let ids = short.into_iter().chain(long.iter().map(String::as_str));
    for (index, id) in ids.enumerate() {
        // What the log keeps of it.
        let kept: String = id.chars().take(1_024).collect();
        topic.publish(&cloud_event(id));
        endpoint.wait_for("/a", 2 * index + 1);
        wait_until(&format!("the record of {kept}"), || {
            let event = home.run_json(&server, &["events", "show", "orders", "--", id]);
            (event["id"] == kept && event["deliveries"][0]["state"] == "delivered").then_some(())
        });
        let resent = home.run_json(
            &server,
            &["events", "resend", "orders", "billing", "--", id],
        );
        assert_eq!(resent["id"], kept);
        endpoint.wait_for("/a", 2 * index + 2);
    }
}

/// Producers choose ids of any length, and who has one asks for it as it is.
#[test]
fn long_id_is_found_by_its_path_and_by_the_query() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[200]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    for (index, length) in [2_000, 2_048, 5_000, 16_000].into_iter().enumerate() {
        let id = format!("{index}{}", "x".repeat(length - 1));
        topic.publish(&cloud_event(&id));
        endpoint.wait_for("/a", index + 1);
        for path in [
            format!("/topics/orders/events/{id}"),
            format!("/topics/orders/events/-?id={id}"),
        ] {
            wait_until(&format!("event {index} of {length} bytes"), || {
                let event = server.api().show(&path);
                (event["deliveries"][0]["state"] == "delivered").then_some(())
            });
        }
    }
    let path = format!("/topics/orders/events/-?id={}", "x".repeat(20_000));
    let problem = server.api().manage("GET", &path, None).problem(414);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("first 1024 characters"), "{detail}");
}

#[test]
fn an_event_is_shown_as_of_a_time() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    publish_three(&server, &endpoint);
    let first = shown(&home, &server, "1", "delivered");
    let at = first["attempts"][0]["at"].as_str().unwrap();
    let deliveries = |option| {
        let event = home.run_json(&server, &["events", "show", "orders", "1", option, at]);
        event["deliveries"].as_array().unwrap().len()
    };
    assert_eq!((deliveries("--from"), deliveries("--to")), (1, 0));
}
