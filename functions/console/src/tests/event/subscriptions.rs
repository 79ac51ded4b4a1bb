//! The rows of an event's subscriptions, and the attempts below them.

use std::collections::BTreeSet;

use posthaste_core::delivery_log::{AttemptOrigin, LogRecord};
use serde_json::json;

use super::{dead, link_to, page_of};
use crate::tests::World;
use crate::tests::logged::{again, delivered, refused, with_payload};

/// A subscription has one row, whatever was sent to it, and its attempts are marked by their
/// origins.
#[tokio::test]
async fn one_row_for_each_subscription_with_attempts_by_origin() {
    let world = World::with_billing().await;
    let first = with_payload(dead("order-1", world.ago(900)), "x");
    let recovered = LogRecord {
        delivery_key: "key-of-recovery".to_owned(),
        origin: AttemptOrigin::Replay,
        run_id: Some("run-1".to_owned()),
        accepted_at: world.ago(600),
        ..again(refused("order-1", world.ago(600)), 1, world.ago(600))
    };
    let recovered = LogRecord {
        origin: AttemptOrigin::Replay,
        ..recovered
    };
    let resent = LogRecord {
        delivery_key: "key-of-resend".to_owned(),
        accepted_at: world.ago(300),
        ..again(delivered("order-1", world.ago(300)), 1, world.ago(300))
    };
    let resent = LogRecord {
        origin: AttemptOrigin::Resend,
        ..resent
    };
    let audit = LogRecord {
        subscription: "audit".to_owned(),
        ..again(delivered("order-1", world.ago(900)), 1, world.ago(900))
    };
    world.log_records(&[first, recovered, resent, audit]);
    let outage = json!({
        "v": 6, "id": "run-1", "topic": "orders", "subscription": "billing", "request": {},
        "recovery": { "outageSince": "2023-11-14T21:00:00.000Z", "rampFrom": 1_700_000_000_000_u64 },
        "createdAt": 1_700_000_000_000_u64, "updatedAt": 1_700_000_000_000_u64, "state": "Done",
        "progress": { "pacedUntil": 0, "objects": 0, "found": 0, "replayed": 0, "failed": 0 },
    });
    world.state.write("replays/run-1.json", outage.to_string());
    let page = world.get(&page_of("order-1")).await;
    page.has(&[
        "2 delivered. 2 earlier deliveries of this id",
        "<a class=\"badge\" href=\"/console/replays/run-1\">recovery</a>",
        "of the outage since <time datetime=\"2023-11-14T21:00:00.000Z\"",
        "sent again by its id",
        "<span class=\"badge\">first</span>",
        "key-of-order-1",
        "value=\"Billing key-of-order-1\"",
    ]);
    assert_eq!(page.html.matches("<tr role=\"row\"><td").count(), 2);
    assert_eq!(page.html.matches("<form id=\"send-again\"").count(), 1);
}

/// The pages of an event of many subscriptions stay short, and show each of them.
#[tokio::test]
async fn hundred_subscriptions_make_short_pages_with_each_of_them() {
    let world = World::with_billing().await;
    let endpoint = json!({ "endpoint": { "url": "https://billing.example.com/" } });
    let subscriptions: serde_json::Map<_, _> = (100..200)
        .map(|at| (format!("sub-{at}"), endpoint.clone()))
        .collect();
    let topic = json!({ "subscriptions": subscriptions });
    world.put(&["topics", "Orders"], topic).await;
    let text = Some("<\u{202e}\"".repeat(300));
    for is_failing in [false, true] {
        let id = if is_failing { "failing" } else { "well" };
        let records: Vec<_> = (100..200)
            .map(|at| {
                let record = if is_failing {
                    refused(id, world.ago(60))
                } else {
                    delivered(id, world.ago(60))
                };
                LogRecord {
                    subscription: format!("sub-{at}"),
                    error: text.clone(),
                    answer: text.clone(),
                    record_id: format!("{id:0>20}{at:0>12}"),
                    ..with_payload(record, "\"<é".repeat(20_000).as_str())
                }
            })
            .collect();
        world.log_records(&records);
        for query in ["", "?payload=true"] {
            let mut names = BTreeSet::new();
            let mut address = format!("{}{query}", page_of(id));
            loop {
                let page = world.get(&address).await;
                assert!(page.html.len() < 100_000, "{} bytes", page.html.len());
                page.has(&["100 "]).has_not(&["<\u{202e}"]);
                let rows = page.html.split("data-label=\"Subscription\"").skip(1);
                let of_page: Vec<_> = rows
                    .map(|row| row.split_once("<bdi>").unwrap().1)
                    .map(|row| row.split_once('<').unwrap().0.to_owned())
                    .collect();
                assert!(!of_page.is_empty());
                names.extend(of_page);
                match link_to(&page, "Next page") {
                    Some(next) => address = next,
                    None => break,
                }
            }
            assert_eq!(names.len(), 100, "{id} {query}");
        }
    }
}
