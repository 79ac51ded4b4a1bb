//! `publish --rate` against a server that answers by a script.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use crate::common::{failure, run, run_with};
use posthaste_tests::endpoint::{Answer, Endpoint, Received, Reply, nobody};
use serde_json::{Value, json};

const PATH: &str = "/topics/orders/events";

/// CloudEvents with these ids, one in each line.
fn lines(ids: std::ops::Range<u32>) -> String {
    let line =
        |n| format!(r#"{{"specversion":"1.0","id":"e{n}","source":"/t","type":"a.b"}}"#) + "\n";
    ids.map(line).collect()
}

fn publish(endpoint: &Endpoint, more: &[&str], input: &str) -> Output {
    let url = endpoint.url("");
    let arguments = [
        "publish", "orders", "--file", "-", "--key", "k", "--json", "--url", &url,
    ];
    run_with(&[&arguments, more].concat(), input)
}

fn published(output: &Output) -> Value {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    json["published"].clone()
}

/// The body that was sent under each name, by the number at its end. It must be the same each time.
fn by_name(requests: &[Received], run: &str) -> BTreeMap<u32, Vec<String>> {
    let mut found = BTreeMap::new();
    for request in requests {
        let name = request.header("idempotency-key").unwrap();
        let number = name
            .strip_prefix(run)
            .unwrap()
            .strip_prefix('-')
            .unwrap()
            .parse()
            .unwrap();
        let ids = request.ids();
        assert_eq!(
            found.entry(number).or_insert_with(|| ids.clone()),
            &ids,
            "{name}"
        );
    }
    found
}

fn ids(ids: std::ops::Range<u32>) -> Vec<String> {
    ids.map(|n| format!("e{n}")).collect()
}

/// Back pressure that refuses, at once over.
fn refuse(_: &Received) -> Reply {
    let problem = json!({ "type": "urn:posthaste:problem:back-pressure", "title": "Back pressure", "status": 503 });
    Reply {
        status: 503,
        headers: vec![("retry-after", "0".to_owned())],
        body: problem.to_string(),
    }
}

#[test]
fn everything_is_acknowledged_whatever_happens_on_the_way() {
    let endpoint = Endpoint::start();
    let at_once = |status| Answer::With(status, "retry-after", "0".to_owned());
    let held = Answer::With(
        200,
        "posthaste-pressure",
        "medium; resource=drain-time; delay=1".to_owned(),
    );
    let script = [
        Answer::Status(200),
        at_once(429),
        Answer::Close,
        at_once(503),
        held,
        Answer::Garbage,
        at_once(429),
        Answer::CloseInHead,
        Answer::Reply(refuse),
        Answer::Status(200),
    ];
    endpoint.script(PATH, script);
    let output = publish(
        &endpoint,
        &["--rate", "auto", "--tier", "bulk"],
        &lines(0..1050),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let published = published(&output);
    let count = |name: &str| published[name].as_u64().unwrap();
    assert_eq!(
        (count("events"), count("requests"), count("nextEvent")),
        (1050, 11, 1050)
    );
    assert_eq!(
        (
            count("delayedRequests"),
            count("refusedRequests"),
            count("retriedRequests")
        ),
        (3, 1, 7)
    );
    let requests = endpoint.received(PATH);
    assert_eq!(requests.len(), 18);
    let batches = by_name(&requests, published["run"].as_str().unwrap());
    assert_eq!(
        batches.keys().copied().collect::<Vec<_>>(),
        (0..11).map(|n| n * 100).collect::<Vec<_>>()
    );
    assert_eq!(
        batches.into_values().flatten().collect::<Vec<_>>(),
        ids(0..1050)
    );
    for request in &requests {
        assert_eq!(request.header("posthaste-tier"), Some("bulk"));
        assert_eq!(
            request.header("content-type"),
            Some("application/cloudevents-batch+json")
        );
        assert_eq!(request.header("authorization"), Some("Bearer k"));
    }
}

fn refuse_203(request: &Received) -> Reply {
    match request.ids().iter().position(|id| id == "e203") {
        Some(index) => {
            let problem = json!({
                "type": "urn:posthaste:problem:bad-event", "title": "An event is not as its schema says",
                "status": 400, "member": "type", "index": index,
            });
            Reply {
                status: 400,
                headers: Vec::new(),
                body: problem.to_string(),
            }
        }
        None => Reply {
            status: 200,
            ..Reply::default()
        },
    }
}

#[test]
fn bad_event_is_named_and_the_run_resumes_once_mended() {
    let endpoint = Endpoint::start();
    endpoint.script(PATH, [Answer::Reply(refuse_203)]);
    let first = publish(
        &endpoint,
        &["--rate", "auto", "--batch", "50", "--run", "r1"],
        &lines(0..1000),
    );
    let (code, text) = failure(&first);
    let (run, error) = text.split_once('\n').unwrap();
    assert_eq!(run, r#"{"run":"r1"}"#);
    let error: Value = serde_json::from_str(error).unwrap();
    assert_eq!(
        (code, &error["error"]["index"], &error["error"]["member"]),
        (3, &json!(203), &json!("type"))
    );
    let message = error["error"]["message"].as_str().unwrap();
    for words in [
        "event 203 (the first is 0), which begins in line 204, was refused",
        "--from 200 --batch 50 --run r1",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(published(&first)["nextEvent"], 200);
    let sent = by_name(&endpoint.received(PATH), "r1");
    assert_eq!(
        published(&first)["events"].as_u64().unwrap(),
        (sent.len() as u64 - 1) * 50
    );

    endpoint.script(PATH, [Answer::Status(200)]);
    let before = endpoint.all().len();
    let more = [
        "--rate", "auto", "--batch", "50", "--run", "r1", "--from", "200",
    ];
    let second = publish(&endpoint, &more, &lines(0..1000));
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    assert_eq!(
        (
            &published(&second)["events"],
            &published(&second)["nextEvent"]
        ),
        (&json!(800), &json!(1000))
    );
    let again = by_name(&endpoint.since(before), "r1");
    assert_eq!(
        again.values().flatten().cloned().collect::<Vec<_>>(),
        ids(200..1000)
    );
    assert!(
        sent.iter()
            .filter(|(first, _)| **first >= 200)
            .all(|(first, ids)| again[first] == *ids)
    );
}

#[test]
fn a_file_that_breaks_off_is_published_up_to_there() {
    let endpoint = Endpoint::start();
    let text = format!("[{}", lines(0..25).trim_end().replace('\n', ",\n"));
    let output = publish(&endpoint, &["--rate", "1000000", "--batch", "10"], &text);
    let (code, text) = failure(&output);
    assert!(
        code == 3 && text.contains("line 25: expected a comma"),
        "{code} {text}"
    );
    assert_eq!(
        (
            &published(&output)["events"],
            &published(&output)["nextEvent"]
        ),
        (&json!(20), &json!(20))
    );
}

#[test]
fn lasting_pressure_exits_6_and_unreachable_server_7() {
    let endpoint = Endpoint::start();
    endpoint.script(
        PATH,
        [
            Answer::Status(200),
            Answer::With(429, "retry-after", "1".to_owned()),
        ],
    );
    let more = ["--rate", "auto", "--batch", "10", "--give-up-after", "PT1S"];
    let output = publish(&endpoint, &more, &lines(0..100));
    let (code, text) = failure(&output);
    assert!(
        code == 6 && text.contains("nothing was acknowledged for PT1S"),
        "{code} {text}"
    );
    assert_eq!(
        (
            &published(&output)["events"],
            &published(&output)["nextEvent"]
        ),
        (&json!(10), &json!(10))
    );

    let url = nobody().trim_end_matches("/nobody").to_owned();
    let arguments = [
        "publish", "orders", "--file", "-", "--key", "k", "--url", &url,
    ];
    let output = run_with(&[&arguments[..], &more].concat(), &lines(0..5));
    let (code, text) = failure(&output);
    assert!(
        code == 7 && text.contains("--from 0 --batch 10 --run "),
        "{code} {text}"
    );
    assert!(
        text.contains("the events 0 to 4 (the first is 0) were taken from the pipe and are not"),
        "{text}"
    );
    let (run, rest) = text.split_once('\n').unwrap();
    assert!(
        run.starts_with("run ") && rest.contains(&format!("--{run} goes on there")),
        "{text}"
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.starts_with("published 0 events to orders: 0 sent"),
        "{said}"
    );
}

fn counts(_: &Received) -> Reply {
    let body = json!({ "acceptedEvents": 10, "matchedSubscriptions": 2, "unmatchedEvents": 3 });
    Reply {
        status: 200,
        headers: Vec::new(),
        body: body.to_string(),
    }
}

/// Server whose responses have no counts is no failure.
#[test]
fn response_counts_are_summed_and_may_be_missing() {
    let check = |answer: Answer, expected: [Value; 2]| {
        let endpoint = Endpoint::start();
        endpoint.script(PATH, [answer]);
        let output = publish(
            &endpoint,
            &["--rate", "auto", "--batch", "10"],
            &lines(0..30),
        );
        let published = published(&output);
        assert_eq!(
            [
                &published["unmatchedEvents"],
                &published["matchedSubscriptionsMax"]
            ],
            expected.each_ref()
        );
    };
    check(Answer::Reply(counts), [json!(9), json!(2)]);
    check(Answer::Status(200), [Value::Null, Value::Null]);
}

#[test]
fn a_wrong_key_is_5_after_one_request() {
    let endpoint = Endpoint::start();
    endpoint.script(PATH, [Answer::Status(401)]);
    let output = publish(&endpoint, &["--rate", "auto"], &lines(0..1000));
    assert_eq!((failure(&output).0, endpoint.all().len()), (5, 1));
}

/// Publishes from a pipe that stays open, by a shell that ignores no signal.
fn publish_from_pipe(endpoint: &Endpoint, input: &str) -> (Child, ChildStdin) {
    let url = endpoint.url("");
    let program = env!("CARGO_BIN_EXE_posthaste");
    let mut command = Command::new("/usr/bin/env");
    command.env_clear().args([
        "--default-signal=HUP",
        program,
        "publish",
        "orders",
        "--file",
        "-",
    ]);
    command.args([
        "--key", "k", "--json", "--url", &url, "--rate", "auto", "--run", "r1",
    ]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    (child, pipe)
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .unwrap()
            .success()
    );
}

// The input of both fits into one read of the program, 8 KiB, so that all of it is taken when the
// first request arrives.
#[test]
fn first_signal_publishes_events_taken_from_an_open_pipe() {
    for (name, code) in [("INT", 130), ("HUP", 129)] {
        let endpoint = Endpoint::start();
        endpoint.script(PATH, [Answer::Held(200)]);
        let (child, pipe) = publish_from_pipe(&endpoint, &(lines(0..130) + r#"{"specversion"#));
        endpoint.wait_for_one(PATH);
        signal(&child, name);
        endpoint.open();
        let output = child.wait_with_output().unwrap();
        drop(pipe);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(
            (
                &published(&output)["events"],
                &published(&output)["nextEvent"]
            ),
            (&json!(130), &json!(130))
        );
        let sent: Vec<_> = endpoint
            .received(PATH)
            .iter()
            .flat_map(Received::ids)
            .collect();
        assert_eq!(sent, ids(0..130));
        let (_, text) = failure(&output);
        assert!(
            text.contains("every event that was taken from the pipe was published"),
            "{text}"
        );
    }
}

/// Second signal waits for no response, and the error names the events taken from the pipe.
#[test]
fn second_signal_ends_at_once_and_names_taken_events() {
    let endpoint = Endpoint::start();
    endpoint.script(PATH, [Answer::Never]);
    let (child, pipe) = publish_from_pipe(&endpoint, &lines(0..130));
    endpoint.wait_for_one(PATH);
    signal(&child, "INT");
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    drop(pipe);
    let (code, text) = failure(&output);
    assert!([130, 143].contains(&code), "{code} {text}");
    assert!(
        text.contains("the events 0 to 129 (the first is 0) were taken from the pipe and are not"),
        "{text}"
    );
}

#[test]
fn events_of_a_pipe_are_published_while_it_is_silent() {
    let endpoint = Endpoint::start();
    endpoint.script(PATH, [Answer::Status(200)]);
    let (child, mut pipe) = publish_from_pipe(&endpoint, &lines(0..50));
    let request = endpoint.wait_for_one(PATH);
    assert_eq!(
        (request.ids(), request.header("idempotency-key")),
        (ids(0..50), Some("r1-0-50"))
    );
    pipe.write_all(lines(50..60).as_bytes()).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let last = endpoint.received(PATH).pop().unwrap();
    assert_eq!(
        (last.ids(), last.header("idempotency-key")),
        (ids(50..60), Some("r1-50"))
    );
}

#[test]
fn senseless_publish_options_exit_2_and_send_nothing() {
    let check = |more: &[&str], words: &str| {
        let arguments = ["publish", "orders", "--file", "/dev/null", "--key", "k"];
        let (code, text) = failure(&run(&[&arguments, more].concat()));
        assert!(code == 2 && text.contains(words), "{more:?}: {code} {text}");
    };
    check(&["--batch", "5"], "--rate");
    check(&["--from", "5"], "--rate");
    check(&["--rate", "0"], "expected auto, or a whole number");
    check(&["--rate", "fast"], "expected auto, or a whole number");
    check(&["--rate", "auto", "--batch", "10001"], "10000");
    check(&["--rate", "auto", "--run", "a b"], "visible ASCII");
    check(&["--rate", "auto", "--give-up-after", "soon"], "ISO 8601");
    check(
        &[
            "--rate",
            "auto",
            "--content-type",
            "Application/CloudEvents+json; charset=utf-8",
        ],
        "one event",
    );
}
