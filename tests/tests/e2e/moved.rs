//! Dead letters that move from one installation to another, as the commands do it.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::fs;
use std::path::{Path, PathBuf};

use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// An event that its producer wrote in several lines, and with a number that JSON would change.
const EVENT: &str =
    "{ \"specversion\":\"1.0\",\n\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\",\n \"data\":1.00 }";

/// An installation with two dead letters: of [`EVENT`], and one that is resolved. Returns the
/// `webhook-id` of the first.
fn make(home: &Home, server: &Server, endpoint: &Endpoint) -> String {
    let settings = subscription(&endpoint.on("/a", &[400]));
    let topic = server
        .api()
        .create_topic_with("orders", "billing", &settings);
    topic
        .send("application/cloudevents+json", EVENT.as_bytes())
        .unwrap()
        .expect(200);
    let first = endpoint.wait_for("/a", 1).remove(0);
    let mut done = cloud_event("2");
    done["type"] = "com.example.done".into();
    topic.publish(&done);
    wait_until("both dead letters", || {
        (home.dead_letters("orders", "billing").len() == 2).then_some(())
    });
    let resolve = [
        "dead-letters",
        "resolve",
        "orders",
        "billing",
        "--type",
        "com.example.done",
    ];
    assert_eq!(home.run_json(server, &resolve)["events"], 1);
    first.header("webhook-id").unwrap().to_owned()
}

/// The files of all dead letters and of what is resolved, with their bytes.
fn files(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let root = home.path().join("dead-letters");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path of a test is text")
}

#[test]
fn dead_letters_move_with_keys_states_and_webhook_ids() {
    let old_home = Home::new();
    let new_home = Home::new();
    let old_endpoint = Endpoint::start();
    let new_endpoint = Endpoint::start();
    let root = tempfile::tempdir().unwrap();
    let old = old_home.serve();
    let webhook_id = make(&old_home, &old, &old_endpoint);

    let folder = root.path().join("moved");
    let export = ["dead-letters", "export", "--include-resolved"];
    let exported = old_home.run_json(&old, &[&export[..], &["--output", text(&folder)]].concat());
    assert_eq!(
        (
            &exported["deadLetters"],
            &exported["resolved"],
            &exported["failures"]
        ),
        (&json!(2), &json!(1), &json!([]))
    );
    let file = folder.join("dead-letters.jsonl");
    let lines = fs::read(&file).unwrap();
    assert_eq!(old_home.run(&old, &export).stdout, lines);
    let again = old_home.run(&old, &[&export[..], &["--output", text(&folder)]].concat());
    assert_eq!(again.status.code(), Some(1));
    old.stop();

    let new = new_home.serve();
    let import = ["dead-letters", "import", text(&file)];
    let counts = |answer: &Value| {
        ["deadLetters", "resolved", "leftDeadLetters"].map(|name| answer[name].as_u64().unwrap())
    };
    let dry = new_home.run_json(&new, &[&import[..], &["--dry-run"]].concat());
    assert_eq!(counts(&dry), [2, 1, 0]);
    assert_eq!(files(&new_home), []);
    assert_eq!(counts(&new_home.run_json(&new, &import)), [2, 1, 0]);
    assert_eq!(files(&new_home), files(&old_home));
    assert_eq!(counts(&new_home.run_json(&new, &import)), [0, 0, 2]);
    assert_eq!(files(&new_home), files(&old_home));
    let entry = new.api().show("/audit")["entries"][0].clone();
    assert_eq!(
        (&entry["action"], &entry["via"], &entry["outcome"]),
        (&json!("dead-letters.import"), &json!("cli"), &json!("done"))
    );

    let settings = subscription(&new_endpoint.on("/a", &[200]));
    new.api().create_topic_with("orders", "billing", &settings);
    let replay = [
        "dead-letters",
        "replay",
        "orders",
        "billing",
        "--include-former",
    ];
    new_home.run_json(&new, &replay);
    // wake runs as a server starts, and else once a minute.
    new.stop();
    let new = new_home.serve();
    let request = new_endpoint.wait_for_one("/a");
    assert_eq!(request.body, EVENT.as_bytes());
    assert_eq!(request.header("webhook-id"), Some(&*webhook_id));
    wait_until("all dead letters to be resolved", || {
        let list = ["dead-letters", "list", "orders", "billing"];
        let left = new_home.run_json(&new, &list)["deadLetters"].clone();
        (left == json!([])).then_some(())
    });
    new.stop();
    assert_eq!(new_endpoint.all().len(), 1);
}

#[test]
fn bad_line_is_named_and_nothing_of_the_file_is_put_in() {
    let old_home = Home::new();
    let new_home = Home::new();
    let endpoint = Endpoint::start();
    let root = tempfile::tempdir().unwrap();
    let old = old_home.serve();
    make(&old_home, &old, &endpoint);
    let lines = old_home.run(&old, &["dead-letters", "export", "--include-resolved"]);
    let lines = String::from_utf8(lines.stdout).unwrap();
    let new = new_home.serve();
    let file = root.path().join("letters.jsonl");
    for (bad, said) in [
        (
            "{\"object\":\"x\"}",
            "not a line of `posthaste dead-letters export`",
        ),
        (
            "{\"object\":\"ORDERS/BILLING/2026/1/1/1/x.json\",\"index\":0,\"letters\":1,\
             \"resolved\":false,\"letter\":{\"id\":\"1\"}}",
            "not a dead letter",
        ),
    ] {
        fs::write(&file, format!("{lines}{bad}\n")).unwrap();
        let refused = new_home.run(&new, &["dead-letters", "import", text(&file)]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(3), "{error}");
        let expected = format!("letters.jsonl:3: {said}");
        assert!(error.contains(&expected), "{expected}: {error}");
        assert_eq!(files(&new_home), [], "{said}");
    }
    new.stop();
    old.stop();
}

/// An object that another program put there is no reason to leave the others out unsaid.
#[test]
fn object_that_cannot_be_exported_is_named_beside_the_others() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    make(&home, &server, &endpoint);
    let foreign = home.path().join("dead-letters/ORDERS/BILLING/2026/1/1/1");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join("x.json"), r#"[{"id":"1"}]"#).unwrap();
    let exported = home.run(&server, &["dead-letters", "export", "orders", "billing"]);
    let error = String::from_utf8_lossy(&exported.stderr).into_owned();
    assert_eq!(exported.status.code(), Some(1), "{error}");
    assert!(error.contains("1 object could not be exported"), "{error}");
    assert!(
        error.contains("ORDERS/BILLING/2026/1/1/1/x.json: not a dead letter"),
        "{error}"
    );
    // An object goes as a whole where one of its dead letters is selected.
    let lines = String::from_utf8(exported.stdout).unwrap();
    assert!(lines.contains("\"letterText\":"), "{lines}");
    server.stop();
}
