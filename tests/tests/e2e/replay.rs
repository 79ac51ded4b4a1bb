//! Dead letters delivered again, asked for with the command line and through the API.

use std::sync::{Arc, Barrier};
use std::thread;

use posthaste_tests::endpoint::{Endpoint, Received};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// A dead letter is replayed after its endpoint was mended, also over a restart.
#[test]
fn dead_letter_is_replayed_after_a_mend_and_a_restart() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "billing");
    let first = endpoint.wait_for("/a", 1).remove(0);
    endpoint.on("/a", &[200]);

    let line = ["dead-letters", "replay", "orders", "billing"];
    let preview = home.run_json(&server, &[&line[..], &["--dry-run"]].concat());
    assert_eq!(
        (&preview["events"], &preview["ids"], &preview["isComplete"]),
        (&json!(1), &json!(["1"]), &json!(true))
    );
    let id = home.run_json(&server, &line)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // wake runs as a server starts, and else once a minute.
    server.stop();
    let server = home.serve();

    let again = endpoint.wait_for("/a", 2).remove(1);
    assert_eq!(
        (&again.body, again.header("posthaste-replayed")),
        (&first.body, Some("true"))
    );
    assert_eq!(
        (
            first.header("posthaste-replayed"),
            again.header("aeg-delivery-count")
        ),
        (None, Some("0"))
    );
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
    let done = wait_until("the replay to be done", || {
        let replay = home.run_json(&server, &["replays", "show", &id]);
        (replay["state"] == "Done").then_some(replay)
    });
    assert_eq!(
        (&done["found"], &done["queued"], &done["failed"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(
        home.run_json(&server, &["replays"])["replays"][0]["id"],
        *id
    );
    assert_eq!(home.dead_letters("orders", "billing").len(), 1);
}

/// Attributes of its own that have the dead letter's names, and characters that no message in a
/// queue may hold, raw and as escapes.
const AWKWARD: &str = "{ \"specversion\":\"1.0\", \"deadletterreason\" : \"mine\",\"id\":\"1\",\
    \"source\":\"/s\",\"type\":\"t\",\
    \"publishtime\":\"soon\" , \"data\":[\"\u{fffe}\u{ffff}\\uffff\\uFFFE\", 1.00] }";

#[test]
fn awkward_event_is_delivered_kept_and_replayed_byte_for_byte() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic
        .send("application/cloudevents+json", AWKWARD.as_bytes())
        .unwrap()
        .expect(200);
    let text = |request: &Received| String::from_utf8(request.body.clone()).unwrap();
    assert_eq!(text(&endpoint.wait_for_one("/a")), AWKWARD);
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(letter["deadletterreason"], "UndeliverableDueToClientError");
    let own: Value = serde_json::from_str(letter["originalattributes"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&own["deadletterreason"], &own["publishtime"]),
        (&json!("mine"), &json!("soon"))
    );
    home.run_json(&server, &["dead-letters", "replay", "orders", "billing"]);
    // wake runs as a server starts, and else once a minute.
    server.stop();
    let _server = home.serve();
    assert_eq!(text(&endpoint.wait_for("/a", 2)[1]), AWKWARD);
}

#[test]
fn a_replay_says_what_became_of_its_events() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "billing");
    let id = home.run_json(&server, &["dead-letters", "replay", "orders", "billing"])["id"].clone();
    // wake runs as a server starts, and else once a minute. The endpoint refuses the event once
    // more.
    server.stop();
    let server = home.serve();
    endpoint.wait_for("/a", 2);
    let text = wait_until("the outcome of the replay", || {
        let shown = home.run(&server, &["replays", "show", id.as_str().unwrap()]);
        let text = String::from_utf8(shown.stdout).unwrap();
        text.contains("delivered 0, failed again 1, still waiting 0")
            .then_some(text)
    });
    assert!(
        text.contains("posthaste dead-letters list orders billing --from"),
        "{text}"
    );
}

#[test]
fn awaited_replay_ends_when_its_events_are_delivered() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400, 200]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "billing");
    let waited = home.run_json(
        &server,
        &["dead-letters", "replay", "orders", "billing", "--wait"],
    );
    let outcomes = &waited["outcomes"];
    assert_eq!(
        (&waited["state"], &outcomes["delivered"]),
        (&json!("Done"), &json!(1)),
        "{waited}"
    );
    assert_eq!(
        (&outcomes["failedAgain"], &outcomes["waiting"]),
        (&json!(0), &json!(0)),
        "{waited}"
    );
}

#[test]
fn events_that_were_delivered_are_replayed_from_the_log() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[200]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    let first = endpoint.wait_for_one("/a");
    let replay = [
        "events",
        "replay",
        "orders",
        "billing",
        "--result",
        "delivered",
    ];
    wait_until("the log to have the event", || {
        let preview = home.run_json(&server, &[&replay[..], &["--dry-run"]].concat());
        (preview["events"] == 1).then_some(())
    });
    let waited = home.run_json(&server, &[&replay[..], &["--wait"]].concat());
    assert_eq!(
        (&waited["state"], &waited["outcomes"]["delivered"]),
        (&json!("Done"), &json!(1)),
        "{waited}"
    );
    let again = endpoint.wait_for("/a", 2).remove(1);
    assert_eq!(
        (&again.body, again.header("posthaste-replayed")),
        (&first.body, Some("true"))
    );
    assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
}

#[test]
fn event_delivered_again_is_resolved_and_deleted_by_hand() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let settings = subscription(&endpoint.on("/a", &[400, 200]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    home.wait_for_dead_letter("orders", "billing");
    home.run_json(
        &server,
        &["dead-letters", "replay", "orders", "billing", "--wait"],
    );
    let counted = |line: &[&str]| {
        let preview = home.run_json(&server, &[&["dead-letters"], line].concat());
        [&preview["events"], &preview["resolved"]].map(|count| count.as_u64().unwrap_or(0))
    };
    let replay = ["replay", "orders", "billing", "--dry-run"];
    wait_until("the dead letter to be resolved", || {
        (counted(&replay) == [0, 1]).then_some(())
    });
    assert_eq!(
        counted(&[&replay[..], &["--include-resolved"]].concat()),
        [1, 0]
    );
    assert_eq!(counted(&["resolve", "orders", "billing"]), [0, 1]);
    assert_eq!(
        counted(&["delete", "orders", "billing", "--all", "--dry-run"]),
        [1, 0]
    );
    assert_eq!(home.dead_letters("orders", "billing").len(), 1);
    let deleted = home.run_json(
        &server,
        &["dead-letters", "delete", "orders", "billing", "--all"],
    );
    assert_eq!(
        (&deleted["events"], &deleted["deletedObjects"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(home.dead_letters("orders", "billing").len(), 0);
    // What was done within one request is not kept.
    let work = home.run_json(&server, &["dead-letters", "work"]);
    assert_eq!(work, json!({ "work": [] }));
    for command in ["show", "cancel"] {
        let line = ["dead-letters", "work", command, "none"];
        assert_eq!(home.run(&server, &line).status.code(), Some(4), "{command}");
    }
    // Without --all, something must select them.
    assert_eq!(
        home.run(&server, &["dead-letters", "delete", "orders", "billing"])
            .status
            .code(),
        Some(2)
    );
}

/// A replay is cancelled before it begins, and wrong names are told.
#[test]
fn replay_is_cancelled_before_its_begin_and_bad_names_told() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    server.api().create_topic_with(
        "orders",
        "billing",
        &subscription(&endpoint.on("/a", &[400])),
    );
    let id = home.run_json(&server, &["dead-letters", "replay", "orders", "billing"])["id"].clone();
    let cancelled = home.run_json(&server, &["replays", "cancel", id.as_str().unwrap()]);
    assert!(
        ["Cancelled", "Done"].contains(&cancelled["state"].as_str().unwrap()),
        "{cancelled}"
    );
    for line in [
        ["dead-letters", "replay", "orders", "biling"],
        ["dead-letters", "list", "orders", "biling"],
        ["dead-letters", "list", "order", "billing"],
    ] {
        assert_eq!(home.run(&server, &line).status.code(), Some(4), "{line:?}");
    }
    assert_eq!(
        home.run(&server, &["replays", "show", "none"])
            .status
            .code(),
        Some(4)
    );
    let malformed = [
        "dead-letters",
        "replay",
        "orders",
        "billing",
        "--object",
        "MALFORMED/2026/1/1/1/x",
    ];
    assert_eq!(home.run(&server, &malformed).status.code(), Some(3));
}

/// Clients repeat requests, and two operators press the same button.
#[test]
fn replay_asked_for_three_times_at_once_sends_each_letter_once() {
    const LETTERS: usize = 30;
    let home = Home::new();
    let beside = Home::new();
    let endpoint = Endpoint::start();
    // Ten refusals in a row would end the attempts.
    let links = beside.path().join("links.yaml");
    std::fs::write(&links, "refusalsInRow: 0\n").unwrap();
    let arguments = ["--link-settings", links.to_str().unwrap()];
    let server = Server::start(home.path(), &arguments);
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    let events: Vec<_> = (0..LETTERS).map(|n| cloud_event(&n.to_string())).collect();
    topic.publish_batch(&events);
    home.wait_for_dead_letters("orders", "billing", LETTERS);
    endpoint.on("/a", &[200]);
    let path = "/topics/orders/subscriptions/billing/dead-letters/replay";
    let together = Arc::new(Barrier::new(3));
    let asking: Vec<_> = (0..3)
        .map(|_| {
            let api = server.api().clone();
            let together = Arc::clone(&together);
            thread::spawn(move || {
                together.wait();
                api.manage("POST", path, None).expect(202).json()["id"].clone()
            })
        })
        .collect();
    let ids: Vec<_> = asking.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(ids, vec![ids[0].clone(); 3]);
    // wake runs as a server starts, and else once a minute.
    server.stop();
    let server = Server::start(home.path(), &arguments);
    let shown = format!("/replays/{}", ids[0].as_str().unwrap());
    wait_until("every event to be delivered", || {
        let replay = server.api().show(&shown);
        (replay["outcomes"]["delivered"] == json!(LETTERS)).then_some(())
    });
    let replays = server.api().show("/replays")["replays"].clone();
    assert_eq!(replays.as_array().map(Vec::len), Some(1), "{replays}");
    let again = &endpoint.received("/a")[LETTERS..];
    assert_eq!(again.len(), LETTERS);
}
