//! `apply` against a server: what is changed is printed member by member, with a dry run and
//! without.

use std::process::Output;

use crate::common::{Server, failure};
use serde_json::{Value, json};

/// A file with everything whose text and meaning may differ.
const FULL: &str = r#"
topics:
  Orders:
    inputSchema: EventGrid
    defaultTimeToLive: PT1440M
    autoDeleteOnIdle: P30D
    deliveryLog: off
    subscriptions:
      billing:
        endpoint: { url: "https://a.example/hooks", timeout: PT60S, maxRequestsPerSecond: 5 }
        deliverySchema: CloudEvents
        contentMode: structured
        filter:
          includedEventTypes: [order.paid]
          advancedFilters: [{ operatorType: NumberGreaterThan, key: data.amount, value: 100 }]
        retryPolicy: { maxDeliveryAttempts: 5, schedule: [PT60S, PT300S], waitFloors: { "503": PT1M } }
        batching: { maxEventsPerBatch: 10 }
        deadLetter: { delay: PT0S }
        deliveryHeaders:
          - { name: X-Tenant, value: acme }
          - { name: X-Key, value: s3cret, isSecret: true }
        signing: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] }
        expirationTimeUtc: 2099-01-01T00:00:00Z
      crm: { endpoint: { url: "https://b.example/" } }
"#;

fn text(output: &Output) -> String {
    let (code, error) = failure(output);
    assert_eq!((code, error.as_str()), (0, ""));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn changes(entities: &Value) -> Vec<&str> {
    entities
        .as_array()
        .unwrap()
        .iter()
        .map(|entity| entity["change"].as_str().unwrap())
        .collect()
}

fn apply(server: &Server, file: &str) -> Value {
    server.json(&["apply", "-f", "-"], file)["applied"].take()
}

fn plan(server: &Server, file: &str) -> Value {
    server.json(&["apply", "-f", "-", "--dry-run"], file)["planned"].take()
}

#[test]
fn the_same_file_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    assert_eq!(changes(&plan(&server, FULL)), ["created"; 3]);
    assert_eq!(
        server.json(&["topics"], "")["topics"],
        json!([]),
        "a dry run writes nothing"
    );
    assert_eq!(changes(&apply(&server, FULL)), ["created"; 3]);
    for _ in 0..2 {
        let planned = plan(&server, FULL);
        let applied = apply(&server, FULL);
        assert_eq!(changes(&applied), ["unchanged"; 3], "{applied}");
        assert_eq!(changes(&planned), ["unchanged"; 3], "{planned}");
        assert_eq!(
            applied[1].get("notCompared"),
            None,
            "the version did not change"
        );
        assert_eq!(
            planned[1]["notCompared"],
            json!(["deliveryHeaders[X-Key].value"])
        );
    }
    let again = text(&server.run_with(&["apply", "-f", "-"], FULL));
    assert!(
        again.ends_with("\n0 created, 0 changed, 3 unchanged\n"),
        "{again}"
    );
}

#[test]
fn a_dry_run_shows_what_apply_then_changes_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    apply(&server, FULL);
    let next = FULL
        .replace("PT1440M", "P2D")
        .replace("maxDeliveryAttempts: 5, ", "maxDeliveryAttempts: 8, ")
        .replace("[order.paid]", "[order.paid, order.refunded]")
        .replace("value: 100", "value: 200")
        .replace("        batching: { maxEventsPerBatch: 10 }\n", "")
        .replace(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl",
        )
        + "      audit: { endpoint: { url: 'https://c.example/' } }\n";
    let before = server.json(&["topics", "show", "orders"], "");
    let planned = text(&server.run_with(&["apply", "-f", "-", "--dry-run"], &next));
    assert_eq!(server.json(&["topics", "show", "orders"], ""), before);
    let lines = [
        "\nOrders:\n  defaultTimeToLive: P1D → P2D\n",
        "\nOrders/billing:\n  batching.maxEventsPerBatch: 10 → (default)\n",
        "  filter.advancedFilters: removed {key: data.amount, operatorType: NumberGreaterThan, value: 100}\n",
        "  filter.advancedFilters: added {key: data.amount, operatorType: NumberGreaterThan, value: 200}\n",
        "  filter.includedEventTypes: [order.paid] → [order.paid, order.refunded]\n",
        "  retryPolicy.maxDeliveryAttempts: 5 → 8\n",
        "  signing.secrets: [(masked:",
        "  deliveryHeaders[X-Key].value: secret, so it cannot be compared\n",
        "\n1 to create, 2 to change, 1 unchanged; nothing was sent\n",
    ];
    for line in lines {
        assert!(planned.contains(line), "{line}{planned}");
    }
    let members = |entities: &Value| -> Vec<Value> {
        entities
            .as_array()
            .unwrap()
            .iter()
            .map(|entity| entity["members"].clone())
            .collect()
    };
    let planned_members = members(&plan(&server, &next));
    let applied = text(&server.run_with(&["apply", "-f", "-"], &next));
    for secret in ["whsec_MfKQ", "whsec_T3Ro", "s3cret"] {
        assert!(
            !planned.contains(secret) && !applied.contains(secret),
            "{planned}{applied}"
        );
    }
    assert!(
        applied.contains("\n1 created, 2 changed, 1 unchanged\n"),
        "{applied}"
    );
    // Back to the first file: the same lines, the other way round.
    let back = apply(&server, FULL);
    let count = |members: &[Value]| {
        members
            .iter()
            .filter_map(Value::as_array)
            .map(Vec::len)
            .collect::<Vec<_>>()
    };
    assert_eq!(count(&planned_members), count(&members(&back)));
}

#[test]
fn a_secret_header_that_changed_is_said_without_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    apply(&server, FULL);
    let other = apply(&server, &FULL.replace("s3cret", "another"));
    assert_eq!(changes(&other), ["unchanged", "changed", "unchanged"]);
    assert_eq!(
        other[1]["notCompared"],
        json!(["deliveryHeaders[X-Key].value"])
    );
    assert_eq!(
        changes(&apply(&server, &FULL.replace("s3cret", "another"))),
        ["unchanged"; 3]
    );
}

#[test]
fn a_header_that_becomes_secret_and_a_query_are_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let open = FULL
        .replace(", isSecret: true", "")
        .replace("a.example/hooks", "a.example/hooks?token=t0ken");
    let secret = FULL.replace("a.example/hooks", "a.example/hooks?token=n3wer");
    apply(&server, &open);
    let url = "\n  endpoint.url: https://a.example/hooks?… (only the query differs)\n";
    let run = |arguments: &[&str], file: &str| {
        let printed = text(&server.run_with(arguments, file));
        assert!(
            ["s3cret", "t0ken", "n3wer"]
                .iter()
                .all(|secret| !printed.contains(secret)),
            "{printed}"
        );
        printed
    };
    for file in [&secret, &open] {
        run(&["apply", "-f", "-", "--dry-run", "--json"], file);
        for more in [Some("--dry-run"), None] {
            let arguments: Vec<_> = ["apply", "-f", "-"].into_iter().chain(more).collect();
            let printed = run(&arguments, file);
            assert!(
                printed.contains(url) && printed.contains("name: X-Key, value: (masked)"),
                "{printed}"
            );
        }
    }
    run(&["apply", "-f", "-", "--json"], &secret);
}

#[test]
fn a_dry_run_refuses_a_masked_header_with_nothing_to_keep() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let masked = FULL.replace("value: s3cret", "value: (masked)");
    let reason = "reason: a masked secret keeps the one that is there, and there is none";
    for more in [Some("--dry-run"), None] {
        let arguments: Vec<_> = ["apply", "-f", "-"].into_iter().chain(more).collect();
        let (code, error) = failure(&server.run_with(&arguments, &masked));
        assert!(
            code == 3 && error.contains("billing.deliveryHeaders[1].value"),
            "{error}"
        );
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_dry_run_says_what_the_server_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let crm = r#"{ "inputSchema": "EventGrid", "subscriptions": { "crm": {
        "endpoint": { "url": "https://b.example/" }, "deliverySchema": "EventGrid" } } }"#;
    apply(
        &server,
        &format!(r#"{{ "topics": {{ "orders": {crm} }} }}"#),
    );
    let other = "topics:\n  invoices: {}\n  orders: { inputSchema: CloudEvents }\n";
    let output = server.run_with(&["apply", "-f", "-", "--dry-run"], other);
    let (code, error) = failure(&output);
    let expected = "error: the server would refuse the topic orders\n  member: subscriptions.crm.deliverySchema\n";
    assert!(code == 3 && error.starts_with(expected), "{code} {error}");
    let done = String::from_utf8(output.stdout).unwrap();
    assert!(
        done.ends_with("\n1 to create, 0 to change, 0 unchanged; nothing was sent\n"),
        "{done}"
    );
    let (code, refusal) = failure(&server.run_with(&["apply", "-f", "-"], other));
    assert!(
        code == 3 && refusal.contains("subscriptions.crm.deliverySchema"),
        "{refusal}"
    );
}

#[test]
fn empty_lists_say_so_and_leave_a_pipe_empty() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let check = |command: &[&str], expected: &str| {
        let output = server.run(command);
        assert_eq!(
            (output.stdout.as_slice(), failure(&output)),
            (&b""[..], (0, format!("{expected}\n")))
        );
    };
    check(
        &["topics"],
        "no topics yet; `posthaste apply -f FILE` creates those of a file",
    );
    check(&["replays"], "no replays in the last 30 days");
    apply(&server, "topics: { orders: {} }");
    let none = "orders has no subscriptions yet; `posthaste apply -f FILE` creates those of a file";
    check(&["subscriptions", "list", "orders"], none);
    apply(
        &server,
        "topics: { orders: { subscriptions: { a: { endpoint: { url: 'https://a.example/' } } } } }",
    );
    check(
        &["dead-letters", "list", "orders", "a"],
        "no dead letters of orders/a",
    );
    let reason = [
        "dead-letters",
        "list",
        "orders",
        "a",
        "--reason",
        "EndpointGone",
    ];
    check(
        &reason,
        "no dead letters of orders/a with this time, reason and type",
    );
    assert_eq!(server.json(&["replays"], ""), json!({ "replays": [] }));
}

/// So many topics that they are read as a list.
fn many() -> String {
    let topic = |n| {
        format!(
            "  t{n:02}:\n    subscriptions:\n      all: {{ endpoint: {{ url: 'https://a.example/{n}' }} }}\n"
        )
    };
    let topics: String = (0..60).map(topic).collect();
    format!("topics:\n{topics}")
}

/// Writes of topics in the audit trail.
fn writes(server: &Server) -> usize {
    let audit = server.json(&["audit"], "");
    let entries = audit["entries"].as_array().unwrap().iter();
    entries.filter(|it| it["action"] == "topic.put").count()
}

#[test]
fn many_unchanged_topics_are_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let file = many();
    assert_eq!(changes(&apply(&server, &file)), ["created"; 120]);
    let before = writes(&server);
    let again = apply(&server, &file);
    assert_eq!(changes(&again), ["unchanged"; 120]);
    assert_eq!(writes(&server), before);
    // In the order of the file, although several are under way at once.
    let topics = again.as_array().unwrap().iter().step_by(2);
    let names: Vec<_> = topics.map(|it| it["topic"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "{names:?}");
    let next = file.replace("a.example/7'", "b.example/7'");
    assert_eq!(changes(&plan(&server, &next))[15], "changed");
    let applied = apply(&server, &next);
    assert_eq!(applied[15]["members"][0]["member"], "endpoint.url");
    assert_eq!(writes(&server), before + 1);
}

#[test]
fn disabled_subscription_stays_so_among_many() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let file = many();
    apply(&server, &file);
    server.json(&["subscriptions", "disable", "t03", "all", "--yes"], "");
    let entity = &apply(&server, &file)[7];
    assert_eq!(entity["change"], "unchanged");
    assert_eq!(entity["status"]["state"], "Disabled");
}

#[test]
fn prune_deletes_what_no_file_declares_and_asks_first() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let subscription = "{ endpoint: { url: 'https://a.example/' } }";
    let all = format!(
        "topics:\n  Orders:\n    subscriptions: {{ Billing: {subscription}, crm: {subscription} }}\n  parcels: {{}}\n"
    );
    apply(&server, &all);
    let file = format!("topics:\n  orders:\n    subscriptions: {{ billing: {subscription} }}\n");
    let prune = ["apply", "-f", "-", "--prune"];
    let planned = text(&server.run_with(&["apply", "-f", "-", "--prune", "--dry-run"], &file));
    assert!(
        planned.contains("Orders   crm           to delete"),
        "{planned}"
    );
    assert!(
        planned.contains("parcels                to delete"),
        "{planned}"
    );
    assert!(
        planned.ends_with("0 to create, 0 to change, 2 unchanged, 2 to delete; nothing was sent\n"),
        "{planned}"
    );
    let (code, said) = failure(&server.run_with(&prune, &file));
    assert_eq!(code, 2);
    let expected = "to delete 1 topic and 1 subscription gives up their settings, keys and secrets";
    assert!(said.contains(expected), "{said}");
    assert_eq!(
        server.json(&["topics"], "")["topics"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let done = server.json(&["apply", "-f", "-", "--prune", "--yes"], &file);
    assert_eq!(
        changes(&done["applied"]),
        ["unchanged", "unchanged", "deleted", "deleted"]
    );
    let left = server.json(&["topics", "show", "orders"], "");
    let names: Vec<_> = left["subscriptions"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["Billing"]);
    let again = server.json(&["apply", "-f", "-", "--prune"], &file);
    assert_eq!(changes(&again["applied"]), ["unchanged"; 2]);
}

#[test]
fn export_is_a_file_that_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    apply(&server, FULL);
    apply(&server, &many());
    let exported = text(&server.run_with(&["topics", "export"], ""));
    assert!(
        !exported.contains("s3cret") && !exported.contains("whsec_"),
        "{exported}"
    );
    assert!(!exported.contains("status"), "{exported}");
    assert_eq!(changes(&apply(&server, &exported)), ["unchanged"; 123]);
    let some = server.json(&["topics", "export", "--prefix", "t0"], "");
    assert_eq!(some["topics"].as_object().unwrap().len(), 10);
}
