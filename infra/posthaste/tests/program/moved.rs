//! Topics that move to another server: exported with their secrets, and applied there.

use std::process::Output;

use crate::common::{Server, failure};
use serde_json::{Value, json};

/// Topics with every kind of secret.
const FILE: &str = r#"
topics:
  Orders:
    noticesTopic: ops
    keys: { key2: MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, bulkKey1: T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl }
    subscriptions:
      Billing:
        endpoint: { url: "https://a.example/hooks?token=t0ken" }
        signing: { secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw] }
        deliveryHeaders: [{ name: X-Key, value: s3cret, isSecret: true }]
      crm: { endpoint: { url: "https://b.example/" }, filter: { subjectBeginsWith: "/crm" } }
  ops: {}
"#;

fn stdout(output: &Output) -> String {
    let (code, error) = failure(output);
    assert_eq!((code, error.as_str()), (0, ""));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn changes(reply: &Value) -> Vec<&str> {
    let entities = reply["applied"].as_array().unwrap().iter();
    entities.map(|it| it["change"].as_str().unwrap()).collect()
}

#[test]
fn topics_with_their_secrets_are_the_same_on_another_server() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [here, there] = folders.each_ref().map(|it| Server::start(it.path(), &[]));
    here.json(&["apply", "-f", "-"], FILE);
    here.json(&["topics", "regenerate-key", "orders", "internalKey2"], "");
    // While a secret is rotated, both sign, one of them until a time.
    here.json(&["subscriptions", "rotate-secret", "orders", "billing"], "");
    let export = ["topics", "export", "--secrets"];
    let exported = stdout(&here.run(&export));
    for secret in [
        "whsec_MfKQ9",
        "s3cret",
        "T3RoZXJPdGhlck90",
        "internalKey2",
        "expiresAt",
    ] {
        assert!(exported.contains(secret), "{secret}: {exported}");
    }
    let applied = there.json(&["apply", "-f", "-"], &exported);
    assert_eq!(changes(&applied), ["created"; 4]);
    assert_eq!(applied["new"], json!([]), "nothing was made there");
    assert_eq!(stdout(&there.run(&export)), exported);
    for server in [&here, &there] {
        let again = server.json(&["apply", "-f", "-"], &exported);
        assert_eq!(changes(&again), ["unchanged"; 4]);
        assert_eq!(stdout(&server.run(&export)), exported);
    }
    let keys = ["topics", "keys", "orders"];
    assert_eq!(there.json(&keys, ""), here.json(&keys, ""));
    let audit = here.json(&["audit"], "");
    let reads = audit["entries"].as_array().unwrap().iter();
    let reads: Vec<_> = reads
        .filter(|it| it["action"] == "topic.read-secrets")
        .map(|it| (&it["target"], &it["detail"], &it["via"]))
        .collect();
    let expected = [
        json!("all topics"),
        json!("from ops to Orders"),
        json!("cli"),
    ];
    assert_eq!(reads[0], (&expected[0], &expected[1], &expected[2]));
}

#[test]
fn keys_of_a_file_are_compared_and_shown_as_masks() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let first = server.json(&["apply", "-f", "-"], FILE);
    let made = first["new"].as_array().unwrap().iter();
    let of_orders = made.filter(|it| it["of"] == "Orders");
    assert_eq!(of_orders.count(), 1, "key1 alone was made");
    let next = FILE.replace("bulkKey1: T3Ro", "bulkKey1: Q3Ro");
    let member = "\nOrders:\n  keys.bulkKey1: (masked:";
    let planned = stdout(&server.run_with(&["apply", "-f", "-", "--dry-run"], &next));
    assert!(
        planned.contains(member) && !planned.contains("Q3Ro"),
        "{planned}"
    );
    let applied = stdout(&server.run_with(&["apply", "-f", "-"], &next));
    assert!(
        applied.contains(member) && !applied.contains("Q3Ro"),
        "{applied}"
    );
    assert!(
        applied.ends_with("\n0 created, 1 changed, 3 unchanged\n"),
        "{applied}"
    );
    let again = server.json(&["apply", "-f", "-"], &next);
    assert_eq!(changes(&again), ["unchanged"; 4]);
    let bad = FILE.replace("T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl", "sh0rt");
    let (code, said) = failure(&server.run_with(&["apply", "-f", "-"], &bad));
    let expected = "topics.Orders.keys.bulkKey1: expected a publish key of 32 to 256";
    assert!(code == 3 && !said.contains("sh0rt"), "{code} {said}");
    assert!(said.contains(expected), "{said}");
}

#[test]
fn export_with_secrets_warns_of_states_that_no_file_has() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    server.json(&["apply", "-f", "-"], FILE);
    server.json(&["subscriptions", "pause", "orders", "crm"], "");
    let (code, said) = failure(&server.run(&["topics", "export", "--secrets"]));
    let expected = "warning: 1 subscription is paused, disabled or without consent here;";
    assert!(code == 0 && said.starts_with(expected), "{said}");
    assert_eq!(
        failure(&server.run(&["topics", "export"])),
        (0, String::new())
    );
}
