//! Members that are named, and the others keep their values: `apply --keep`, and topics and
//! subscriptions of the command line.

use std::process::Output;

use crate::common::{Server, failure};
use serde_json::{Value, json};

const FILE: &str = r#"
topics:
  Orders:
    defaultTimeToLive: P2D
    subscriptions:
      Billing:
        endpoint: { url: "https://a.example/hooks", timeout: PT5S }
        retryPolicy: { maxDeliveryAttempts: 5, schedule: [PT1M] }
        deliveryHeaders: [{ name: X-Key, value: s3cret, isSecret: true }]
      crm: { endpoint: { url: "https://b.example/" } }
"#;

/// A server with the topics of the file.
struct Started {
    server: Server,
    _folder: tempfile::TempDir,
}

impl Started {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path(), &[]);
        server.json(&["apply", "-f", "-"], FILE);
        Self {
            server,
            _folder: folder,
        }
    }

    /// The topic with all of its secrets.
    fn topic(&self) -> Value {
        let export = ["topics", "export", "--secrets"];
        self.server.json(&export, "")["topics"]["Orders"].take()
    }

    fn refused(&self, arguments: &[&str], input: &str) -> (i32, String) {
        failure(&self.server.run_with(arguments, input))
    }
}

fn stdout(output: &Output) -> String {
    let (code, error) = failure(output);
    assert_eq!((code, error.as_str()), (0, ""));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn members(reply: &Value) -> Vec<&str> {
    let entities = reply["applied"].as_array().unwrap().iter();
    let members = entities.filter_map(|entity| entity["members"].as_array());
    members
        .flatten()
        .map(|it| it["member"].as_str().unwrap())
        .collect()
}

const KEEP: [&str; 4] = ["apply", "-f", "-", "--keep"];

#[test]
fn keep_changes_the_members_that_are_named_alone() {
    let started = Started::new();
    let mut expected = started.topic();
    let part = "topics: { ORDERS: { recordUnmatched: true, subscriptions: { billing: { \
                endpoint: { timeout: null }, retryPolicy: { maxDeliveryAttempts: 8 } } } } }";
    let dry_run = [&KEEP[..], &["--dry-run"]].concat();
    let planned = stdout(&started.server.run_with(&dry_run, part));
    assert!(
        planned.ends_with("\n0 to create, 2 to change, 0 unchanged; nothing was sent\n"),
        "{planned}"
    );
    assert_eq!(started.topic(), expected);
    let answer = started.server.json(&KEEP, part);
    assert_eq!(
        members(&answer),
        [
            "recordUnmatched",
            "endpoint.timeout",
            "retryPolicy.maxDeliveryAttempts"
        ]
    );
    expected["recordUnmatched"] = true.into();
    let billing = &mut expected["subscriptions"]["Billing"];
    billing["endpoint"]
        .as_object_mut()
        .unwrap()
        .remove("timeout");
    billing["retryPolicy"]["maxDeliveryAttempts"] = 8.into();
    assert_eq!(started.topic(), expected);
    assert_eq!(
        members(&started.server.json(&KEEP, part)),
        Vec::<&str>::new()
    );
    let nothing = "topics: { orders: , new: { subscriptions: { a: { endpoint: { url: 'https://c.example/' } } } } }";
    let done = started.server.json(&KEEP, nothing);
    let changes: Vec<_> = done["applied"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["change"])
        .collect();
    assert_eq!(changes, ["created", "created", "unchanged"], "{done}");
    assert_eq!(started.topic(), expected);
}

#[test]
fn mistakes_of_a_part_are_placed_and_nothing_is_written() {
    let started = Started::new();
    let before = started.topic();
    let part = "topics:\n  fresh: {}\n  orders:\n    subscriptions:\n      billing:\n        \
                retryPolicy: { schedule: [PT1S, P2D] }\n      new: { contentMode: binary }\n";
    let (code, said) = started.refused(&KEEP, part);
    assert_eq!(code, 3, "{said}");
    let expected = "error: 2 mistakes\n  \
        -:6:41: topics.orders.subscriptions.billing.retryPolicy.schedule[1]: expected PT0S to P1D, found P2D\n  \
        -:7:7: topics.orders.subscriptions.new: missing member `endpoint`\n";
    assert_eq!(said, expected);
    assert_eq!(started.topic(), before);
    assert_eq!(started.refused(&["topics", "show", "fresh"], "").0, 4);
    let (code, said) = started.refused(
        &KEEP,
        "topics: { orders: { subscriptions: { billing: { filters: {} } } } }",
    );
    assert!(
        code == 3 && said.contains("did you mean `filter`?"),
        "{said}"
    );
}

#[test]
fn keep_and_prune_exclude_each_other() {
    let started = Started::new();
    let prune = [&KEEP[..], &["--prune", "--yes"]].concat();
    let (code, said) = started.refused(&prune, "topics: {}");
    assert!(
        code == 2 && said.contains("--prune") && said.contains("--keep"),
        "{said}"
    );
    let part = "topics: { orders: { subscriptions: { crm: {} } } }";
    started.server.json(&KEEP, part);
    let names: Vec<_> = started.topic()["subscriptions"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, ["Billing", "crm"], "what is not named stays");
}

#[test]
fn topic_is_created_once_with_its_keys() {
    let started = Started::new();
    let create = [
        "topics",
        "create",
        "Parcels",
        "defaultTimeToLive=1d",
        "recordUnmatched=true",
    ];
    let text = stdout(&started.server.run(&create));
    assert!(text.contains("Parcels                created"), "{text}");
    assert_eq!(text.matches("publish key").count(), 2, "{text}");
    let shown = started.server.json(&["topics", "show", "parcels"], "");
    assert_eq!(
        (&shown["defaultTimeToLive"], &shown["recordUnmatched"]),
        (&json!("P1D"), &json!(true))
    );
    let (code, said) = started.refused(&["topics", "create", "parcels"], "");
    assert_eq!(
        (code, said.lines().next()),
        (3, Some("error: the topic parcels exists already"))
    );
    assert_eq!(
        started.server.json(&["topics", "show", "parcels"], ""),
        shown
    );
    let (code, said) = started.refused(&["topics", "create", "bad", "defaultTimeToLiv=1d"], "");
    let expected = "error: bad: defaultTimeToLiv: unknown member `defaultTimeToLiv`, did you mean `defaultTimeToLive`?";
    assert_eq!((code, said.lines().next()), (3, Some(expected)));
    let (code, said) = started.refused(&["topics", "create", "bad", "whsec_hush"], "");
    assert!(code == 2 && !said.contains("hush"), "{said}");
}

#[test]
fn subscription_is_created_once_with_its_secret() {
    let started = Started::new();
    let before = started.topic();
    let create = |name, topic| {
        [
            "subscriptions",
            "create",
            topic,
            name,
            "--endpoint",
            "https://c.example/",
            "filter.includedEventTypes=[order.paid]",
            "retryPolicy.maxDeliveryAttempts=3",
        ]
    };
    let text = stdout(&started.server.run(&create("audit", "orders")));
    assert!(
        text.contains("orders  audit         created    Active"),
        "{text}"
    );
    assert_eq!(text.matches("whsec_").count(), 1, "{text}");
    let mut after = started.topic();
    let audit = after["subscriptions"]
        .as_object_mut()
        .unwrap()
        .remove("audit")
        .unwrap();
    assert_eq!(after, before);
    assert_eq!(audit["filter"]["includedEventTypes"], json!(["order.paid"]));
    let (code, said) = started.refused(&create("BILLING", "orders"), "");
    assert!(
        code == 3 && said.starts_with("error: orders has a subscription BILLING already\n"),
        "{said}"
    );
    let (code, said) = started.refused(&create("a", "nowhere"), "");
    assert!(
        code == 4 && said.starts_with("error: there is no topic nowhere\n"),
        "{said}"
    );
    let (code, said) = started.refused(&["subscriptions", "create", "orders", "a"], "");
    assert!(
        code == 3 && said.contains("subscriptions.a: missing member `endpoint`"),
        "{said}"
    );
}

#[test]
fn set_changes_the_members_that_are_named_alone() {
    let started = Started::new();
    let mut expected = started.topic();
    let set = |members: &[&'static str]| {
        [&["subscriptions", "set", "orders", "billing"][..], members].concat()
    };
    let changed = started.server.json(
        &set(&["retryPolicy.schedule=[PT2M, PT4M]", "endpoint.timeout="]),
        "",
    );
    assert_eq!(
        members(&changed),
        ["endpoint.timeout", "retryPolicy.schedule"]
    );
    let billing = &mut expected["subscriptions"]["Billing"];
    billing["retryPolicy"]["schedule"] = json!(["PT2M", "PT4M"]);
    billing["endpoint"]
        .as_object_mut()
        .unwrap()
        .remove("timeout");
    assert_eq!(started.topic(), expected);
    let (code, said) = started.refused(&set(&["retryPolicy.schedule=[P2D]"]), "");
    let member = "error: orders: subscriptions.billing.retryPolicy.schedule[0]: expected PT0S to P1D, found P2D";
    assert_eq!((code, said.lines().next()), (3, Some(member)));
    let (code, said) = started.refused(
        &[
            "subscriptions",
            "set",
            "orders",
            "nobody",
            "contentMode=binary",
        ],
        "",
    );
    assert!(
        code == 4 && said.starts_with("error: orders has no subscription nobody\n"),
        "{said}"
    );
    assert_eq!(started.refused(&set(&[]), "").0, 2);
    assert_eq!(started.topic(), expected);
}
