//! Links that are not well, and force: what is shown, what ends, what is marked.

use std::time::Duration;

use posthaste_core::circuit::{
    DeliveryTarget, HealthSettings, LINK_SHARDS, LinkShard, Observation, RequestFailure,
    shard_index,
};
use posthaste_core::lane::{LaneObservation, SLOW_FOR, SlowTargets};
use posthaste_core::model::{OutcomeName, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::{DisabledMark, layout};
use posthaste_ports::{Clock, ErrorKind};
use serde_json::{Value, json};

use super::{Api, billing};

const LINK: &str = "https://billing.example.com:443";
const OWN: &str = "https://billing.example.com:443 orders.billing";
const BUSY: RequestFailure = RequestFailure {
    outcome: OutcomeName::Busy,
    status: Some(503),
};

impl Api {
    /// Writes that these targets, all on one link, failed and are in Glitch.
    fn fail(&self, targets: &[&str]) {
        let mut shard = LinkShard::default();
        let failing = Observation::Failing {
            failures: 10,
            last: BUSY,
            began: self.clock.now(),
        };
        for target in targets {
            let target = DeliveryTarget::parse(target).unwrap();
            shard.apply_observation(
                &target,
                &failing,
                self.clock.now(),
                &HealthSettings::default(),
            );
            self.state.write(
                &layout::link_shard_key(shard_index(target.link())),
                shard.render(),
            );
        }
    }

    /// Writes so many held objects for a subscription.
    fn hold(&self, topic: &str, name: &str, objects: usize) {
        let topic = TopicName::parse(topic).unwrap();
        let name = SubscriptionName::parse(name).unwrap();
        for index in 0..objects {
            self.state.write(
                &layout::held_key(&topic, &name, Timestamp::EPOCH, &index.to_string()),
                "{}",
            );
        }
    }

    async fn links(&self) -> Vec<Value> {
        let view = self.get("/links").await.json();
        assert_eq!(view.get("truncated"), None);
        view["links"].as_array().unwrap().clone()
    }

    /// The states of what is shown, by link and subscription.
    async fn states(&self) -> Vec<String> {
        let text = |row: &Value, member: &str| row[member].as_str().unwrap_or("-").to_owned();
        let one = |row: &Value| {
            format!(
                "{} {} {}",
                text(row, "link"),
                text(row, "subscription"),
                text(row, "state")
            )
        };
        self.links().await.iter().map(one).collect()
    }

    async fn act(&self, action: &str) -> super::Answer {
        self.call(
            "POST",
            &format!("/topics/orders/subscriptions/billing/{action}"),
            &[],
            "",
        )
        .await
    }

    fn is_marked(&self) -> bool {
        self.state.read("forcing/orders.billing").is_some()
    }
}

#[tokio::test]
async fn healthy_links_show_nothing() {
    let api = Api::with_billing().await;
    assert_eq!(api.get("/links").await.json(), json!({ "links": [] }));
    api.state.fail(ErrorKind::Other);
    api.get("/links").await.problem(503, "unavailable");
}

#[tokio::test]
async fn link_goes_with_the_last_subscription_that_uses_it() {
    let path = "/topics/orders/subscriptions/billing";
    let other = "/topics/parcels/subscriptions/crm";
    let moved = json!({ "endpoint": { "url": "https://elsewhere.example.com/" } });
    for step in ["delete", "topic", "move"] {
        let api = Api::with_billing().await;
        api.put("/topics/parcels", json!({})).await;
        api.put(other, billing()).await;
        api.fail(&[LINK, OWN]);
        api.delete(other).await;
        assert_eq!(api.links().await.len(), 2, "another subscription uses it");
        match step {
            "delete" => api.delete(path).await,
            "topic" => api.delete("/topics/orders").await,
            _ => api.put(path, moved.clone()).await,
        };
        assert_eq!(api.links().await, [] as [Value; 0], "{step}");
    }
}

/// An attempt that was under way when the subscription was deleted failed afterwards.
#[tokio::test]
async fn subscription_that_is_gone_has_no_row() {
    let api = Api::with_billing().await;
    api.delete("/topics/orders/subscriptions/billing").await;
    api.fail(&[OWN]);
    assert_eq!(api.links().await, [] as [Value; 0]);
}

#[tokio::test]
async fn link_and_its_subscription_show_what_waits_for_them() {
    let api = Api::with_billing().await;
    api.fail(&[LINK, OWN]);
    api.hold("orders", "billing", 3);
    let now = api.clock.now();
    let row = |more: Value| {
        let mut row = json!({
            "link": LINK, "state": "glitch", "since": now.to_string(), "failingSince": now.to_string(),
            "failures": 10, "lastOutcome": "Busy", "lastHttpStatusCode": 503,
            "nextProbe": (now + Duration::from_mins(1)).to_string(), "heldObjects": 3,
            "waiting": {
                "count": 3, "atLeast": true, "queued": 0, "due": 0, "delayed": 0, "underWay": 0,
                "parked": 0, "held": 3,
            },
        });
        row.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        row
    };
    let own = json!({ "scope": "subscription", "topic": "Orders", "subscription": "Billing" });
    assert_eq!(
        api.links().await,
        [row(json!({ "scope": "link" })), row(own)]
    );
}

/// Events that are held on their own account are shown with the state of their subscription.
#[tokio::test]
async fn events_held_for_themselves_show_their_subscription_state() {
    let api = Api::with_billing().await;
    api.hold("orders", "billing", 1);
    api.hold("orders", "gone", 2);
    api.hold("nowhere", "gone", 1);
    let gone = ["- gone releasing", "- gone releasing"];
    let billing = |state| format!("{LINK} Billing {state}");
    assert_eq!(
        api.states().await,
        [gone[0], gone[1], &billing("releasing")]
    );
    assert_eq!(api.act("pause").await.status, 200);
    assert_eq!(api.states().await, [gone[0], gone[1], &billing("paused")]);
    // Its link's row shows what it has to do with the link, its own that it would wait all the
    // same.
    api.fail(&[LINK]);
    assert_eq!(
        api.states().await[2..],
        [format!("{LINK} - glitch"), billing("paused")]
    );
}

/// Events held for a subscription are shown even if another one on its link fails.
#[tokio::test]
async fn held_events_are_shown_though_another_subscription_fails() {
    let api = Api::with_billing().await;
    api.put("/topics/orders/subscriptions/other", billing())
        .await;
    api.hold("orders", "billing", 1);
    api.fail(&["https://billing.example.com:443 orders.other"]);
    let expected = ["Billing releasing", "other glitch"].map(|it| format!("{LINK} {it}"));
    assert_eq!(api.states().await, expected);
}

#[tokio::test]
async fn a_paused_subscription_that_fails_too_has_one_row() {
    let api = Api::with_billing().await;
    api.hold("orders", "billing", 1);
    api.fail(&[OWN]);
    assert_eq!(api.act("pause").await.status, 200);
    let [row] = api.links().await.try_into().unwrap();
    assert_eq!(
        (&row["state"], &row["failures"], row.get("nextProbe")),
        (&json!("paused"), &json!(10), None)
    );
    assert_eq!(row["heldObjects"], 1);
}

/// Held events are not counted where the subscription was before.
#[tokio::test]
async fn held_events_do_not_count_on_a_former_link() {
    let api = Api::with_billing().await;
    api.hold("orders", "billing", 1);
    api.fail(&["https://before.example.com:443 orders.billing"]);
    let counts: Vec<_> = api
        .links()
        .await
        .iter()
        .map(|row| (row["link"].clone(), row["heldObjects"].clone()))
        .collect();
    assert_eq!(
        counts,
        [
            (json!("https://before.example.com:443"), json!(0)),
            (json!(LINK), json!(1))
        ]
    );
}

/// A subscription is named as it was written, also where nothing is held.
#[tokio::test]
async fn subscription_is_named_as_written_though_nothing_is_held() {
    let api = Api::with_billing().await;
    api.fail(&[OWN]);
    let [row] = api.links().await.try_into().unwrap();
    assert_eq!(
        (&row["topic"], &row["subscription"]),
        (&json!("Orders"), &json!("Billing"))
    );
}

/// Held events of a topic that cannot be read have no link, and their state is unknown.
#[tokio::test]
async fn held_events_of_an_unreadable_topic_have_an_unknown_state() {
    let api = Api::with_billing().await;
    api.state.write("topics/broken.json", "{");
    api.hold("broken", "billing", 1);
    assert_eq!(api.states().await, ["- billing unknown"]);
}

/// A folder is counted up to a thousand objects, and does not hide the next one.
#[tokio::test]
async fn folder_is_counted_to_a_thousand_and_hides_no_other() {
    let api = Api::with_billing().await;
    api.hold("orders", "billing", 2500);
    api.hold("orders", "gone", 1);
    let counts: Vec<_> = api
        .links()
        .await
        .iter()
        .map(|row| row["heldObjects"].clone())
        .collect();
    assert_eq!(counts, [json!(1), json!(1000)]);
}

/// Folders that are listed in another order than their names are all seen.
#[tokio::test]
async fn folders_listed_out_of_name_order_are_all_seen() {
    let api = Api::with_billing().await;
    for (name, objects) in [("b", 1000), ("b-x", 1000), ("b0", 1)] {
        api.hold("a", name, objects);
    }
    api.hold("z", "last", 1);
    let counts: Vec<_> = api
        .links()
        .await
        .iter()
        .map(|row| row["heldObjects"].clone())
        .collect();
    assert_eq!(counts, [json!(1000), json!(1000), json!(1), json!(1)]);
}

/// Force ends the holds of a subscription and of its link, and marks the subscription.
#[tokio::test]
async fn force_ends_holds_of_subscription_and_link_and_marks_it() {
    let api = Api::with_billing().await;
    api.put("/topics/orders/subscriptions/other", billing())
        .await;
    api.fail(&[LINK, OWN, "https://billing.example.com:443 orders.other"]);
    let answer = api.act("force").await;
    assert_eq!(answer.status, 200);
    let forced = answer.json();
    assert_eq!(
        (&forced["topic"], &forced["subscription"]),
        (&json!("Orders"), &json!("Billing"))
    );
    let before: Vec<_> = forced["forced"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| [&row["scope"], &row["state"]])
        .collect();
    assert_eq!(
        before,
        [
            [&json!("link"), &json!("glitch")],
            [&json!("subscription"), &json!("glitch")]
        ]
    );
    assert!(
        forced["detail"]
            .as_str()
            .unwrap()
            .starts_with("2 holds have ended; what is held"),
        "{forced}"
    );
    let expected =
        ["- recovering", "Billing recovering", "other glitch"].map(|it| format!("{LINK} {it}"));
    assert_eq!(api.states().await, expected);
    assert!(api.is_marked());
}

#[tokio::test]
async fn the_holds_of_a_fallback_end_too() {
    let api = Api::with_billing().await;
    let endpoint =
        json!({ "url": "https://billing.example.com/hooks", "fallbackUrl": "https://b.example/" });
    api.put(
        "/topics/orders/subscriptions/billing",
        json!({ "endpoint": endpoint }),
    )
    .await;
    api.fail(&["https://b.example:443"]);
    assert_eq!(
        api.act("force").await.json()["forced"][0]["link"],
        "https://b.example:443"
    );
    assert_eq!(api.states().await, ["https://b.example:443 - recovering"]);
}

/// Force says that nothing was in the way, and releases parked events anyway.
#[tokio::test]
async fn force_without_a_hold_says_so_and_releases_parked_events() {
    let api = Api::with_billing().await;
    let forced = api.act("force").await.json();
    assert_eq!(forced["forced"], json!([]));
    assert!(
        forced["detail"]
            .as_str()
            .unwrap()
            .starts_with("no hold was in its way; "),
        "{forced}"
    );
    assert!(api.is_marked());
}

/// Subscriptions that do not deliver are not forced, and the problem says what to do instead.
#[tokio::test]
async fn force_of_an_inactive_subscription_is_refused_with_advice() {
    let api = Api::with_billing().await;
    for (action, expected) in [
        (
            "pause",
            "it is Paused, and only an Active one can be forced; resume it, which forces as well",
        ),
        (
            "disable",
            "it is Disabled, and only an Active one can be forced; enable it, which forces as well",
        ),
    ] {
        assert_eq!(api.act(action).await.status, 200);
        assert_eq!(
            api.act("force").await.problem(409, "wrong-state")["detail"],
            expected
        );
    }
    assert!(!api.is_marked());
    api.call("POST", "/topics/orders/subscriptions/x/force", &[], "")
        .await
        .problem(404, "unknown-subscription");
    api.call("POST", "/topics/x/subscriptions/x/force", &[], "")
        .await
        .problem(404, "unknown-topic");
}

#[tokio::test]
async fn resume_and_enable_end_a_hold_as_force_does() {
    for (stop, start) in [("pause", "resume"), ("disable", "enable")] {
        let api = Api::with_billing().await;
        api.act(stop).await;
        api.fail(&[LINK]);
        assert_eq!(api.act(start).await.status, 200);
        assert_eq!(
            api.states().await,
            [format!("{LINK} - recovering")],
            "{start}"
        );
        assert!(api.is_marked());
    }
}

/// A corrected path ends a hold, and a write that changes nothing there does not.
#[tokio::test]
async fn corrected_path_ends_a_hold_and_an_equal_url_does_not() {
    let check = async |url: &str, is_forced: bool| {
        let api = Api::with_billing().await;
        api.fail(&[LINK, OWN]);
        let body = json!({ "endpoint": { "url": url } });
        assert_eq!(
            api.put("/topics/orders/subscriptions/billing", body)
                .await
                .status,
            200
        );
        assert_eq!(api.is_marked(), is_forced, "{url}");
        let states = api.states().await;
        let first = states.first();
        assert_eq!(
            first.is_some_and(|state| state.ends_with("recovering")),
            is_forced,
            "{url}"
        );
    };
    check("https://billing.example.com/other", true).await;
    check("https://billing.example.com/hooks", false).await;
    check("https://billing.example.com:443/hooks", false).await;
    check("https://elsewhere.example.com/hooks", false).await;
    let api = Api::with_billing().await;
    api.fail(&[OWN]);
    let whole = json!({ "subscriptions": { "Billing": { "endpoint": { "url": "https://billing.example.com/b" } } } });
    assert_eq!(api.put("/topics/orders", whole).await.status, 200);
    assert!(api.is_marked());
}

#[tokio::test]
async fn a_corrected_path_of_what_does_not_deliver_ends_no_hold() {
    let check = async |action: Option<&str>, is_forced: bool| {
        let api = Api::with_billing().await;
        if let Some(action) = action {
            assert_eq!(api.act(action).await.status, 200);
        }
        api.fail(&[LINK]);
        let body = json!({ "endpoint": { "url": "https://billing.example.com/other" } });
        let state = api
            .put("/topics/orders/subscriptions/billing", body)
            .await
            .json()["status"]["state"]
            .clone();
        assert_eq!(api.is_marked(), is_forced, "{action:?} {state}");
        assert_eq!(
            api.states().await[0].ends_with("recovering"),
            is_forced,
            "{action:?} {state}"
        );
    };
    check(None, true).await;
    check(Some("pause"), false).await;
    // A new URL makes it active.
    check(Some("disable"), true).await;
}

/// Subscriptions that one write corrects end their holds in one change of the shard.
#[tokio::test]
async fn subscriptions_corrected_in_one_write_end_holds_together() {
    let api = Api::with_billing().await;
    let written = |path: &str| {
        let one = |number: usize| {
            (
                format!("s{number}"),
                json!({ "endpoint": { "url": format!("https://billing.example.com/{path}/{number}") } }),
            )
        };
        json!({ "subscriptions": (0..100).map(one).collect::<serde_json::Map<_, _>>() })
    };
    assert_eq!(api.put("/topics/orders", written("v1")).await.status, 200);
    api.fail(&[LINK, "https://billing.example.com:443 orders.s7"]);
    let before = api.state.reads();
    assert_eq!(api.put("/topics/orders", written("v2")).await.status, 200);
    // The record, and the part.
    assert_eq!(api.state.reads() - before, 2);
    assert_eq!(
        api.states().await,
        ["- recovering", "s7 recovering"].map(|it| format!("{LINK} {it}"))
    );
    for number in 0..100 {
        assert!(
            api.state
                .read(&format!("forcing/orders.s{number}"))
                .is_some(),
            "{number}"
        );
    }
}

/// Health goes when its subscription moves or is deleted, and a new one does not inherit it.
#[tokio::test]
async fn health_is_forgotten_when_a_subscription_moves_or_goes() {
    let other = "https://billing.example.com:443 orders.other";
    let left = format!("{LINK} other glitch");
    let billing = "/topics/orders/subscriptions/billing";
    let with_other = async || {
        let api = Api::with_billing().await;
        api.put("/topics/orders/subscriptions/other", super::billing())
            .await;
        api
    };
    let moved = || json!({ "endpoint": { "url": "https://elsewhere.example.com/hooks" } });
    let api = with_other().await;
    api.fail(&[OWN, other]);
    assert_eq!(api.put(billing, moved()).await.status, 200);
    assert_eq!(api.states().await, std::slice::from_ref(&left));
    assert!(!api.is_marked());
    let api = with_other().await;
    api.fail(&[OWN, other]);
    assert_eq!(api.delete(billing).await.status, 204);
    assert_eq!(api.states().await, std::slice::from_ref(&left));
    // Where the deletion could not reach it.
    api.fail(&[OWN, other]);
    assert_eq!(api.put(billing, super::billing()).await.status, 201);
    assert_eq!(api.states().await, std::slice::from_ref(&left));
    let api = with_other().await;
    api.fail(&[OWN, other]);
    assert_eq!(api.delete("/topics/orders").await.status, 204);
    assert_eq!(api.states().await, [] as [String; 0]);
}

#[tokio::test]
async fn force_looks_at_the_parts_of_its_own_links_alone() {
    let api = Api::with_billing().await;
    api.fail(&[LINK]);
    let own = shard_index(DeliveryTarget::parse(LINK).unwrap().link());
    api.state.write(
        &layout::link_shard_key((own + 1) % LINK_SHARDS),
        r#"{"v":99,"targets":{}}"#,
    );
    assert_eq!(api.act("force").await.json()["forced"][0]["link"], LINK);
}

#[tokio::test]
async fn a_write_is_done_although_nothing_can_be_forced() {
    let api = Api::with_billing().await;
    api.act("pause").await;
    // A newer program's: it is neither understood nor overwritten.
    let key = layout::link_shard_key(shard_index(DeliveryTarget::parse(LINK).unwrap().link()));
    api.state.write(&key, r#"{"v":99,"targets":{}}"#);
    assert_eq!(api.act("resume").await.json()["status"]["state"], "Active");
    api.act("force").await.problem(500, "about:blank");
    assert_eq!(
        api.put("/topics/orders/subscriptions/billing", billing())
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn whoever_disables_a_subscription_leaves_word_of_it_for_wake() {
    let api = Api::with_billing().await;
    api.act("pause").await;
    assert_eq!(api.state.read("telling/orders.billing"), None);
    let since = api.act("disable").await.json()["status"]["since"]
        .as_str()
        .unwrap()
        .to_owned();
    let mark = DisabledMark::parse(&api.state.read("telling/orders.billing").unwrap()).unwrap();
    assert_eq!(
        (mark.topic.as_str(), mark.subscription.as_str()),
        ("Orders", "Billing")
    );
    assert_eq!(
        (mark.reason.as_str(), mark.since.to_string()),
        ("disabled by an operator", since)
    );
}

#[tokio::test]
async fn slow_targets_are_shown_until_their_time_is_over() {
    let api = Api::with_billing().await;
    assert_eq!(api.get("/links").await.json(), json!({ "links": [] }));
    let late = LaneObservation::Late {
        in_invocation: 2,
        holds_others_up: true,
    };
    let now = api.clock.now();
    let targets = SlowTargets::default();
    let targets = targets
        .after_observation(late, &DeliveryTarget::parse(OWN).unwrap(), now)
        .unwrap();
    api.state.write(layout::LANES, targets.render());
    let until = (now + SLOW_FOR).to_string();
    let slow = json!([{
        "link": LINK, "scope": "subscription", "topic": "orders", "subscription": "billing",
        "slowUntil": until,
    }]);
    let shown = api.get("/links").await.json();
    assert_eq!(shown, json!({ "links": [], "slow": slow }));
    api.clock.advance(SLOW_FOR);
    assert_eq!(api.get("/links").await.json(), json!({ "links": [] }));
    api.state.write(layout::LANES, "{");
    assert_eq!(api.get("/links").await.json(), json!({ "links": [] }));
}
