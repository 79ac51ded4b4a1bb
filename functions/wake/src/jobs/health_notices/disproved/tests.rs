use std::time::Duration;

use posthaste_core::circuit::{DeliveryTarget, Observation, RequestFailure, TargetPhase};
use posthaste_core::health::{SeenTry, TryResult};
use posthaste_core::model::{EndpointUrl, OutcomeName};
use posthaste_ports::Clock;
use serde_json::{Value, json};

use super::super::check_health;
use crate::testing::{Kit, subscription};

const REFUSED: TryResult = TryResult::Failed {
    outcome: Some(OutcomeName::SocketError),
    status: None,
    is_last: true,
};

fn note(kit: &Kit, result: TryResult) {
    note_of(kit, "orders.billing", result);
}

fn note_of(kit: &Kit, subscription: &str, result: TryResult) {
    let at = kit.clock.now();
    let seen = SeenTry {
        key: "a",
        accepted_at: at,
        at,
        is_first: true,
        result,
    };
    let arrivals = kit.ports.links.arrivals();
    arrivals.note_try(|| subscription.to_owned(), &seen);
}

/// The subscription's target and its link.
fn targets() -> [DeliveryTarget; 2] {
    let link = EndpointUrl::parse("https://a.example/").unwrap().link();
    let own = DeliveryTarget::parse(&format!("{link} orders.billing")).unwrap();
    [own, DeliveryTarget::Link(link)]
}

/// A subscription of which all that was tried failed and was given up, and its link, both held for
/// a minute.
async fn held(settings: Value) -> Kit {
    let kit = Kit::new();
    kit.topic(json!({ "subscriptions": { "Billing": subscription(settings) } }));
    note(&kit, REFUSED);
    let last = RequestFailure {
        outcome: OutcomeName::SocketError,
        status: None,
    };
    let failing = Observation::Failing {
        failures: 3,
        last,
        began: kit.clock.now(),
    };
    let seen = targets().map(|target| (target, failing.clone()));
    kit.ports.links.observe(&seen).await.unwrap();
    check_health(kit.run(), None).await;
    kit
}

fn phases(kit: &Kit) -> [Option<TargetPhase>; 2] {
    targets().map(|target| kit.ports.links.condition(&target).map(|it| it.phase))
}

#[tokio::test]
async fn hold_ends_with_an_arrival_after_it_however_late() {
    for minutes in [17, 3 * 60] {
        let kit = held(json!({})).await;
        kit.clock.advance(Duration::from_mins(minutes));
        check_health(kit.run(), None).await;
        assert_eq!(phases(&kit), [Some(TargetPhase::Glitch); 2], "{minutes}");
        note(&kit, TryResult::Arrived);
        check_health(kit.run(), None).await;
        assert_eq!(
            phases(&kit),
            [Some(TargetPhase::Recovering); 2],
            "{minutes}"
        );
    }
}

#[tokio::test]
async fn hold_stays_after_an_arrival_before_its_end() {
    let kit = held(json!({})).await;
    note(&kit, TryResult::Arrived);
    kit.clock.advance(Duration::from_mins(2));
    check_health(kit.run(), None).await;
    assert_eq!(phases(&kit), [Some(TargetPhase::Glitch); 2]);
}

/// It may be down again, though too few tries failed for another hold.
#[tokio::test]
async fn hold_stays_after_a_failure_behind_the_arrival() {
    let kit = held(json!({})).await;
    kit.clock.advance(Duration::from_mins(17));
    note(&kit, TryResult::Arrived);
    kit.clock.advance(Duration::from_secs(1));
    note(&kit, REFUSED);
    check_health(kit.run(), None).await;
    assert_eq!(phases(&kit), [Some(TargetPhase::Glitch); 2]);
}

/// The event may have gone to the endpoint of before, or to its fallback.
#[tokio::test]
async fn hold_stays_after_an_arrival_beside_a_change() {
    let endpoint = json!({ "url": "https://a.example/", "fallbackUrl": "https://b.example/" });
    for before in [json!({}), json!({ "endpoint": endpoint })] {
        let kit = held(before.clone()).await;
        kit.clock.advance(Duration::from_mins(20));
        kit.topic(json!({ "subscriptions": { "Billing": subscription(json!({})) } }));
        note(&kit, TryResult::Arrived);
        check_health(kit.run(), None).await;
        assert_eq!(phases(&kit), [Some(TargetPhase::Glitch); 2], "{before}");
        kit.clock.advance(Duration::from_mins(17));
        note(&kit, TryResult::Arrived);
        check_health(kit.run(), None).await;
        assert_eq!(phases(&kit), [Some(TargetPhase::Recovering); 2], "{before}");
    }
}

/// A connection that another subscription of the link did not get speaks against the link, and a
/// refusal does not: the link was reached.
#[tokio::test]
async fn hold_of_a_link_stays_after_a_failure_of_another_subscription() {
    let refusal = TryResult::Failed {
        outcome: Some(OutcomeName::BadRequest),
        status: Some(400),
        is_last: true,
    };
    for (other, link) in [
        (REFUSED, TargetPhase::Glitch),
        (refusal, TargetPhase::Recovering),
    ] {
        let kit = held(json!({})).await;
        let subscriptions = ["Billing", "Audit"].map(|name| (name, subscription(json!({}))));
        let subscriptions = serde_json::Map::from_iter(
            subscriptions.map(|(name, settings)| (name.to_owned(), settings)),
        );
        kit.topic(json!({ "subscriptions": subscriptions }));
        kit.clock.advance(Duration::from_mins(20));
        note(&kit, TryResult::Arrived);
        kit.clock.advance(Duration::from_secs(1));
        note_of(&kit, "orders.audit", other);
        check_health(kit.run(), None).await;
        assert_eq!(
            phases(&kit),
            [Some(TargetPhase::Recovering), Some(link)],
            "{other:?}"
        );
    }
}

#[tokio::test]
async fn hold_stays_while_a_fallback_takes_the_events() {
    let endpoint = json!({ "url": "https://a.example/", "fallbackUrl": "https://b.example/" });
    let kit = held(json!({ "endpoint": endpoint })).await;
    kit.clock.advance(Duration::from_mins(17));
    note(&kit, TryResult::Arrived);
    check_health(kit.run(), None).await;
    assert_eq!(phases(&kit), [Some(TargetPhase::Glitch); 2]);
}

#[tokio::test]
async fn probe_that_is_under_way_decides_itself() {
    let kit = held(json!({})).await;
    kit.clock.advance(Duration::from_mins(17));
    let [own, _] = targets();
    let probed = kit.ports.links.claim_probe(&own, "a probe").await.unwrap();
    assert!(probed.is_some());
    note(&kit, TryResult::Arrived);
    check_health(kit.run(), None).await;
    assert_eq!(phases(&kit), [Some(TargetPhase::Glitch); 2]);
}
