//! Texts of others on the way to a terminal, and questions that commands ask.

use posthaste_core::model::visible::is_hidden;
use posthaste_tests::patience::wait_until;
use serde_json::{Value, json};

use crate::common::{Server, failure, run};

/// ESC, a control of C1, and a mark of direction.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}2J\u{202e}b";
const SHOWN: &str = "a⟦U+001B⟧[2J⟦U+009B⟧2J⟦U+202E⟧b";

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/t","type":"a.b","data":{}}"#;

#[test]
fn error_that_repeats_its_argument_steers_no_terminal() {
    let commands: [&[&str]; 3] = [
        &["apply", "--key", "k", "-f", HOSTILE],
        &["topics", HOSTILE],
        &["serve", "--listen", HOSTILE],
    ];
    for command in commands {
        let (code, text) = failure(&run(command));
        assert_ne!(code, 0);
        assert!(!text.contains(is_hidden), "{text:?}");
        let (_, text) = failure(&run(&[command, &["--json"]].concat()));
        assert!(!text.contains(is_hidden), "{text:?}");
        assert!(serde_json::from_str::<Value>(text.trim()).is_ok(), "{text}");
    }
    let (_, text) = failure(&run(&["apply", "--key", "k", "-f", HOSTILE]));
    assert!(text.contains(SHOWN), "{text}");
    let json = failure(&run(&["apply", "--key", "k", "-f", HOSTILE, "--json"])).1;
    let error: Value = serde_json::from_str(&json).unwrap();
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains(HOSTILE),
        "{json}"
    );
}

fn subscription(types: &str) -> String {
    let url = "http://127.0.0.1:9/";
    json!({ "topics": { "orders": { "subscriptions": { "billing": {
        "endpoint": { "url": url }, "filter": { "includedEventTypes": [types] },
    } } } } })
    .to_string()
}

#[test]
fn table_and_json_show_what_others_hide() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--allow-endpoints", "127.0.0.1"]);
    let hostile = "a\u{202e}b\u{85}";
    server.json(&["apply", "-f", "-"], &subscription(hostile));
    for command in [
        &["subscriptions", "list", "orders"][..],
        &["subscriptions", "show", "orders", "billing"],
        &["topics", "show", "orders"],
    ] {
        for json in [&[][..], &["--json"]] {
            let output = server.run(&[command, json].concat());
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(!text.contains(is_hidden), "{text:?}");
            let is_table = json.is_empty() && command[1] != "show" || command[0] == "topics";
            let shown = if is_table && json.is_empty() {
                "a⟦U+202E⟧b⟦U+0085⟧"
            } else {
                r"a\u202eb\u0085"
            };
            assert!(text.contains(shown), "{command:?}: {text}");
        }
    }
    let shown = server.json(&["subscriptions", "show", "orders", "billing"], "");
    assert_eq!(shown["filter"]["includedEventTypes"], json!([hostile]));
}

#[test]
fn waiting_events_are_given_up_only_if_that_is_confirmed() {
    for command in [
        &["subscriptions", "disable", "orders", "billing"][..],
        &["subscriptions", "delete", "orders", "billing"],
        &["topics", "delete", "orders"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path(), &["--allow-endpoints", "127.0.0.1"]);
        let waiting = || {
            let shown = server.json(&["subscriptions", "show", "orders", "billing"], "");
            ["count", "held"].map(|member| shown["waiting"][member].clone())
        };
        server.json(&["apply", "-f", "-"], &subscription("a.b"));
        server.run(&["subscriptions", "pause", "orders", "billing"]);
        server.json(&["publish", "orders", "-f", "-"], EVENT);
        // On its way from the queue it may be counted in both places.
        wait_until("the event to be held", || {
            (waiting() == [1, 1]).then_some(())
        });
        let (code, text) = failure(&server.run(command));
        assert_eq!(code, 2, "{text}");
        for word in ["1 waiting event;", "nothing was done", "--yes"] {
            assert!(text.contains(word), "{text}");
        }
        assert_eq!(waiting(), [1, 1]);
        let done = server.json(&[command, &["--yes"]].concat(), "");
        assert_eq!(done["waiting"], json!({ "count": 1 }), "{command:?}");
    }
}
