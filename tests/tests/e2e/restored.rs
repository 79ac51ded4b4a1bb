//! A start tells of the process before: a copy of a data folder, a log that lacks files, and
//! requests that were under way. An end tells of itself.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::Value;

/// Delivers an event, and waits until the log has it.
fn deliver(server: &Server, id: &str) {
    server.api().topic("orders").publish(&cloud_event(id));
    wait_until("the record of an event", || {
        let event = server.api().show(&format!("/topics/orders/events/{id}"));
        (event["deliveries"][0]["state"] == "delivered").then_some(())
    });
}

fn create(server: &Server, endpoint: &Endpoint) {
    let settings = subscription(&endpoint.url("/a"));
    server
        .api()
        .create_topic_with("orders", "billing", &settings);
}

/// A copy of a folder of a server that has ended.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

fn list(server: &Server) -> Value {
    server.api().show("/topics/orders/events")
}

/// The line of the log with this beginning.
fn line(server: &Server, beginning: &str) -> Option<Value> {
    let lines = server.log();
    let mut lines = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.find(|line| {
        let message = line["message"].as_str();
        message.is_some_and(|message| message.starts_with(beginning))
    })
}

/// Ends a server, and returns the last line of its log.
fn last_line(server: &mut Server) -> Value {
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    let line = wait_until("the end of the log", || {
        let lines = server.log();
        let is_over = lines.iter().filter(|line| *line == "(closed)").count() == 2;
        let last = lines.into_iter().rfind(|line| line != "(closed)");
        last.filter(|_| is_over)
    });
    serde_json::from_str(&line).unwrap()
}

#[test]
fn copy_says_from_when_to_when_its_log_is_unknown() {
    let home = Home::new();
    let restored = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    create(&server, &endpoint);
    deliver(&server, "1");
    assert_eq!(list(&server)["gaps"], Value::Null);
    server.stop();
    copy(home.path(), restored.path());
    let server = home.serve();
    deliver(&server, "2");
    assert_eq!(list(&server)["gaps"], Value::Null);
    server.stop();

    for _ in 0..2 {
        let server = restored.serve();
        let page = list(&server);
        assert_eq!(page["records"].as_array().unwrap().len(), 1);
        let gaps = page["gaps"].as_array().unwrap();
        assert_eq!((gaps.len(), &gaps[0]["cause"]), (1, &"copy".into()));
        let from = gaps[0]["from"].as_str();
        let to = gaps[0]["to"].as_str();
        let from = from.unwrap();
        let to = to.unwrap();
        let delivered_at = page["records"][0]["time"].as_str().unwrap();
        assert!(delivered_at < from && from < to, "{page}");
        let note = page["note"].as_str().unwrap();
        let said = format!("The log is unknown from {from} to {to}: the data folder is a copy");
        assert!(note.starts_with(&said), "{note}");
        // The event of that time may have been delivered by the original.
        let unknown = server.api().show("/topics/orders/events/2");
        assert_eq!(unknown["gaps"], page["gaps"]);
        // All that is known of this one ended before.
        let known = server.api().show("/topics/orders/events/1");
        assert_eq!(
            (&known["gaps"], &known["note"]),
            (&Value::Null, &Value::Null)
        );
        let later = server
            .api()
            .show(&format!("/topics/orders/events?from={to}"));
        assert_eq!(later["gaps"].as_array().unwrap().len(), 1);
        let before = format!("/topics/orders/events?to={delivered_at}");
        assert_eq!(server.api().show(&before)["gaps"], Value::Null);
        server.stop();
    }
}

#[test]
fn log_that_lost_its_files_says_so() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    create(&server, &endpoint);
    deliver(&server, "1");
    server.stop();
    fs::remove_dir_all(home.path().join("log")).unwrap();
    let server = home.serve();
    let gaps = &list(&server)["gaps"];
    assert_eq!(gaps[0]["cause"], "missingFiles", "{gaps}");
    assert!(line(&server, "the delivery log ends before the database does").is_some());
    server.stop();
    // It is said of that time, and not again at each start.
    let server = home.serve();
    assert_eq!(&list(&server)["gaps"], gaps);
    assert!(line(&server, "the delivery log ends").is_none());
}

#[test]
fn killed_server_counts_the_attempts_that_were_under_way() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    create(&server, &endpoint);
    endpoint.script(
        "/a",
        [Answer::Held(200), Answer::Held(200), Answer::Held(200)],
    );
    for id in ["1", "2", "3"] {
        server.api().topic("orders").publish(&cloud_event(id));
    }
    endpoint.wait_for("/a", 3);
    server.kill();
    endpoint.open();

    let server = home.serve();
    let said = line(
        &server,
        "the process before was killed: up to 3 attempts of before are not",
    );
    assert_eq!(said.unwrap()["attempts"], 3);
    endpoint.wait_for("/a", 6);
    let page = list(&server);
    let gap = &page["gaps"][0];
    assert_eq!(
        (&gap["cause"], &gap["attemptsMax"]),
        (&"killed".into(), &3.into())
    );
    let note = page["note"].as_str().unwrap();
    assert!(
        note.contains("up to 3 attempts of before are not in the log"),
        "{note}"
    );
    let event = wait_until("the record of the second attempt", || {
        let event = server.api().show("/topics/orders/events/1");
        (event["deliveries"][0]["state"] == "delivered").then_some(event)
    });
    assert_eq!(&event["gaps"][0], gap, "{event}");
    server.stop();
    // A server that ended in order left nothing under way.
    let server = home.serve();
    assert!(line(&server, "the process before was killed").is_none());
    assert_eq!(list(&server)["gaps"].as_array().unwrap().len(), 1);
    server.kill();
    // Nor did one that was killed while it had nothing to do.
    let server = home.serve();
    assert_eq!(list(&server)["gaps"].as_array().unwrap().len(), 1);
}

/// A client whose request the server has begun to answer: it was asked for the body, and sends none.
fn waiting_client(server: &Server) -> TcpStream {
    let address = server.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let key = &server.api().topic("orders").keys[0];
    let head = format!(
        "POST /topics/orders/events HTTP/1.1\r\nhost: h\r\naeg-sas-key: {key}\r\n\
         content-type: application/cloudevents+json\r\ncontent-length: 99\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is read");
    let mut asked = [0; 12];
    stream
        .read_exact(&mut asked)
        .expect("the body is asked for");
    assert_eq!(&asked, b"HTTP/1.1 100");
    stream
}

#[test]
fn last_line_of_the_log_says_what_is_left() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let mut server = Server::start(home.path(), &["--drain-timeout", "PT0.2S"]);
    create(&server, &endpoint);
    let idle = last_line(&mut server);
    let message = idle["message"].as_str().unwrap();
    assert!(message.starts_with("ended; what is left goes on"), "{idle}");
    for member in [
        "waiting",
        "in_flight",
        "webhook_requests_cut",
        "client_requests_cut",
        "parked_objects",
        "held_objects",
        "unwritten_dead_letters",
        "unwritten_records",
    ] {
        assert_eq!(idle[member], 0, "{member} {idle}");
    }
    assert!(idle["took_s"].is_number(), "{idle}");

    let mut server = Server::start(home.path(), &["--drain-timeout", "PT0.2S"]);
    endpoint.script("/a", [Answer::Held(200)]);
    server.api().topic("orders").publish(&cloud_event("1"));
    endpoint.wait_for("/a", 1);
    let _waiting = [waiting_client(&server), waiting_client(&server)];
    let cut = last_line(&mut server);
    assert_eq!(
        (&cut["in_flight"], &cut["waiting"]),
        (&1.into(), &0.into()),
        "{cut}"
    );
    assert_eq!(
        (&cut["webhook_requests_cut"], &cut["client_requests_cut"]),
        (&1.into(), &2.into()),
        "{cut}"
    );
    endpoint.open();
    // What was cut short has no record either.
    let server = home.serve();
    let said = line(
        &server,
        "the process before was killed: up to 1 attempts of before are not",
    );
    assert!(said.is_some(), "{:?}", server.log());
}

#[test]
fn health_is_good_only_once_the_configuration_is_applied() {
    let home = Home::new();
    let files = home.path().join("..");
    let name = home.path().file_name().unwrap().to_string_lossy();
    let file = files.join(format!("{name}.yaml"));
    let topics: Vec<_> = (0..100).map(|n| format!("  t{n}: {{}}\n")).collect();
    let topics = topics.concat();
    fs::write(&file, format!("topics:\n{topics}")).unwrap();
    let server = Server::start(home.path(), &["--config", file.to_str().unwrap()]);
    let mut was_unready = false;
    wait_until("a server that is ready", || {
        let health = server.api().send("GET", "/health", &[], b"").unwrap();
        if health.status == 200 {
            return Some(());
        }
        was_unready = true;
        let problem = health.problem(503);
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("waiting until --config is applied"),
            "{problem}"
        );
        None
    });
    fs::remove_file(&file).unwrap();
    // The last topic is there with the first good answer.
    server.api().show("/topics/t99");
    assert!(
        was_unready,
        "a hundred topics were applied before the first look"
    );
}
