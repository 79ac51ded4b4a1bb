//! The process: one per data folder, an orderly end, and everything still there after a restart.

use posthaste_tests::api::CLOUD_EVENT;
use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::{cloud_event, subscription, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::json;

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    let home = Home::new();
    let server = home.serve();
    let (code, log) = Server::fail_to_start(home.path(), &[]);
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    let folder = home.path().display().to_string();
    assert!(
        log.contains(&folder) && log.to_lowercase().contains("another"),
        "{log}"
    );
    server.api().show("/topics");
    server.stop();
    home.serve().stop();
}

#[test]
fn a_server_says_where_its_admin_key_is_and_takes_a_given_one() {
    let home = Home::new();
    let started = |server: &Server| {
        server
            .log()
            .into_iter()
            .find(|line| line.contains("listening"))
            .unwrap()
    };
    let server = home.serve();
    let line = started(&server);
    let [data_dir, key_file] = [home.path().to_owned(), home.path().join("admin.key")];
    assert!(
        line.contains(&format!(r#""data_dir":"{}""#, data_dir.display())),
        "{line}"
    );
    assert!(
        line.contains(&format!(r#""admin_key_from":"{}""#, key_file.display())),
        "{line}"
    );
    server.stop();
    // The file of this folder holds another key by now.
    let server = Server::start(home.path(), &["--key", "-given-by-the-operator"]);
    assert!(started(&server).contains(r#""admin_key_from":"--key or POSTHASTE_KEY""#));
    assert!(
        server
            .log()
            .iter()
            .any(|line| line.contains("delete the file")),
        "{:?}",
        server.log()
    );
    let topics = |key: &str| {
        let authorization = format!("Bearer {key}");
        server
            .api()
            .send("GET", "/topics", &[("authorization", &authorization)], b"")
            .unwrap()
            .status
    };
    let kept = std::fs::read_to_string(key_file).unwrap();
    assert_eq!(
        (topics("-given-by-the-operator"), topics(kept.trim())),
        (200, 401)
    );
    server.stop();
}

#[test]
fn a_given_key_that_is_too_short_is_refused_and_not_shown() {
    let home = Home::new();
    let (code, log) = Server::fail_to_start(home.path(), &["--key", "a-short-key"]);
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains("16 or more") && !log.contains("a-short-key"),
        "{log}"
    );
}

#[test]
fn the_console_is_there_unless_it_is_turned_off() {
    let home = Home::new();
    for (choice, status) in [("on", 200), ("off", 404)] {
        let server = Server::start(home.path(), &["--console", choice]);
        let page = server
            .api()
            .send("GET", "/console/sign-in", &[], b"")
            .unwrap()
            .expect(status);
        assert_eq!(
            page.header("content-security-policy").is_some(),
            choice == "on"
        );
        server.stop();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_in_small_pages() {
    let home = Home::new();
    let server = home.serve();
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let huge_pages = status
        .lines()
        .find_map(|line| line.strip_prefix("THP_enabled:"));
    assert_eq!(huge_pages.map(str::trim), Some("0"), "{status}");
    server.stop();
}

#[test]
fn health_and_its_description_need_no_key() {
    let home = Home::new();
    let server = home.serve();
    let get = |path| {
        server
            .api()
            .send("GET", path, &[], b"")
            .unwrap()
            .expect(200)
            .json()
    };
    assert_eq!(get("/health"), json!({ "status": "ok" }));
    let document = get("/openapi.json");
    assert_eq!(
        document["openapi"].as_str().map(|version| &version[..3]),
        Some("3.1")
    );
    for path in [
        "/topics/{topic}",
        "/topics/{topic}/events",
        "/topics/{topic}/subscriptions/{name}",
        "/pressure",
    ] {
        assert!(
            document["paths"][path].is_object(),
            "{path} of {:?}",
            document["paths"].as_object().unwrap().keys()
        );
    }
}

#[test]
fn sigterm_finishes_what_is_in_flight_and_exits_well() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let mut server = home.serve();
    endpoint.script("/a", [Answer::Held(200), Answer::Status(200)]);
    let topic =
        server
            .api()
            .create_topic_with("orders", "billing", &subscription(&endpoint.url("/a")));
    topic.publish(&cloud_event("in flight"));
    endpoint.wait_for("/a", 1);
    server.terminate();
    wait_until("the drain to begin", || {
        server
            .log()
            .iter()
            .any(|line| line.contains("draining"))
            .then_some(())
    });
    endpoint.open();
    assert_eq!(server.wait().code(), Some(0));
    // After a restart it is not sent again: what follows comes next.
    let server = home.serve();
    server.api().topic("orders").publish(&cloud_event("next"));
    let requests = endpoint.wait_for("/a", 2);
    assert_eq!(requests[1].ids(), ["next"]);
}

#[test]
fn a_restart_keeps_topics_keys_and_waiting_retries() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let slow = json!({ "retryPolicy": { "schedule": ["PT3S"] } });
    let settings = subscription_with(&endpoint.on("/a", &[503, 200]), &slow);
    let topic = server
        .api()
        .create_topic_with("Orders", "Billing", &settings);
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    let before = server.api().show("/topics/orders");
    server.stop();

    let server = home.serve();
    assert_eq!(server.api().show("/topics/orders"), before);
    assert_eq!(server.api().topic("Orders").keys, topic.keys);
    let requests = endpoint.wait_for("/a", 2);
    assert_eq!(requests[1].header("aeg-delivery-count"), Some("1"));
    assert_eq!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
    assert_eq!(requests[0].body, requests[1].body);
}

#[test]
fn a_waiting_dead_letter_survives_kill_nine() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let delayed = json!({ "deadLetter": { "delay": "PT3S" } });
    let settings = subscription_with(&endpoint.on("/a", &[400]), &delayed);
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic.publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    server.kill();
    // Killed before or after the answer was noted: one dead letter either way.
    let _server = home.serve();
    let letter = home.wait_for_dead_letter("orders", "billing");
    assert_eq!(
        (&letter["id"], &letter["deadletterreason"]),
        (&json!("1"), &json!("UndeliverableDueToClientError"))
    );
}

#[test]
fn a_file_is_applied_by_the_command_line_and_shown() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let url = endpoint.url("/a");
    let file = home.path().join("topics.yaml");
    let file_name = file.to_str().unwrap();
    let yaml = format!(
        "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: {{ url: {url} }}\n        \
            filter: {{ includedEventTypes: [com.example.tested] }}\n"
    );
    std::fs::write(&file, &yaml).unwrap();
    home.run_json(&server, &["apply", "-f", file_name]);
    let topics = home.run_json(&server, &["topics"]);
    assert_eq!(topics["topics"][0]["name"], "orders");
    std::fs::write(home.path().join("event.json"), cloud_event("1").to_string()).unwrap();
    let event = home.path().join("event.json");
    home.run_json(
        &server,
        &["publish", "orders", "--file", event.to_str().unwrap()],
    );
    assert_eq!(endpoint.wait_for_one("/a").ids(), ["1"]);

    std::fs::write(
        &file,
        yaml.replace("includedEventTypes", "includedEventTipes"),
    )
    .unwrap();
    let refused = home.run(&server, &["apply", "-f", file_name]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{error}");
    assert!(
        error.contains("includedEventTipes") && error.contains('6'),
        "{error}"
    );
}

#[test]
fn commands_end_with_codes_that_mean_something() {
    let home = Home::new();
    let server = home.serve();
    let code = |arguments: &[&str]| home.run(&server, arguments).status.code();
    assert_eq!(code(&["topics"]), Some(0));
    assert_eq!(code(&["topics", "paint"]), Some(2));
    assert_eq!(code(&["topics", "show", "nowhere"]), Some(4));
    assert_eq!(code(&["topics", "--key", "wrong"]), Some(5));
    assert_eq!(code(&["pressure"]), Some(0));
    let url = server.url().to_owned();
    server.stop();
    let mut command = std::process::Command::new(posthaste_tests::binary::posthaste());
    let output = command
        .args(["topics", "--url", &url])
        .arg("--data-dir")
        .arg(home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
}

#[test]
fn a_key_of_a_topic_is_accepted_right_after_it_was_made() {
    let home = Home::new();
    let server = home.serve();
    for n in 0..20 {
        let topic = server.api().create_topic(&format!("t{n}"), &json!({}));
        let answer = topic.send(CLOUD_EVENT, cloud_event("1").to_string().as_bytes());
        answer.unwrap().expect(200);
    }
}

#[test]
fn metrics_forget_topics_that_are_deleted() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    for name in ["orders", "Bills"] {
        let topic = server.api().create_topic_with(
            name,
            "billing",
            &subscription(&endpoint.on("/a", &[200])),
        );
        topic.publish(&cloud_event("1"));
    }
    endpoint.wait_for("/a", 2);
    let text = || {
        String::from_utf8(
            server
                .api()
                .manage("GET", "/metrics", None)
                .expect(200)
                .body,
        )
        .unwrap()
    };
    let of = |topic: &str| {
        text()
            .lines()
            .filter(|line| line.contains(&format!("topic=\"{topic}\"")))
            .count()
    };
    wait_until("both deliveries to be counted", || {
        (server.api().delivered() >= 2.0).then_some(())
    });
    assert!(of("orders") > 1 && of("Bills") > 1, "{}", text());
    server
        .api()
        .manage("DELETE", "/topics/bills", None)
        .expect(204);
    wait_until("the deleted topic to be forgotten", || {
        (of("Bills") == 0).then_some(())
    });
    assert!(of("orders") > 1, "{}", text());
}
