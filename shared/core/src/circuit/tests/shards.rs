//! A part of what is known of all targets.

use super::*;
use crate::model::{EndpointUrl, FormatError, Link};
use crate::stored::layout;

fn link(host: &str) -> Link {
    EndpointUrl::parse(&format!("https://{host}/"))
        .unwrap()
        .link()
}

fn subscription(host: &str, name: &str) -> DeliveryTarget {
    DeliveryTarget::parse(&format!("{} orders.{name}", link(host))).unwrap()
}

fn with(seen: &[(DeliveryTarget, Observation)]) -> LinkShard {
    let mut shard = LinkShard::default();
    for (target, observation) in seen {
        shard.apply_observation(target, observation, NOW, &HealthSettings::default());
    }
    shard
}

/// A link and its subscriptions are in one part, and links are spread over all parts.
#[test]
fn link_shares_a_part_with_its_subscriptions() {
    let used: std::collections::BTreeSet<_> = (0..500)
        .map(|n| shard_index(&link(&format!("h{n}.example"))))
        .collect();
    assert_eq!(used.len(), LINK_SHARDS);
    assert_eq!(layout::link_shard_key(11), "links/b.json");
}

#[test]
fn a_part_is_read_as_it_was_written() {
    let shard = with(&[
        (DeliveryTarget::Link(link("a.example")), failing()),
        (subscription("a.example", "billing"), failing()),
    ]);
    assert_eq!(LinkShard::parse(&shard.render()).unwrap(), shard);
    insta::assert_snapshot!(String::from_utf8(shard.render().to_vec()).unwrap());
}

#[test]
fn a_pause_is_a_glitch_to_a_program_that_knows_none() {
    let shard = with(&[(subscription("a.example", "billing"), asked(900, None))]);
    assert_eq!(LinkShard::parse(&shard.render()).unwrap(), shard);
    insta::assert_snapshot!(String::from_utf8(shard.render().to_vec()).unwrap());
}

#[test]
fn malformed_shard_is_refused_and_a_newer_one_told_apart() {
    assert!(matches!(
        LinkShard::parse(b"{}"),
        Err(FormatError::Malformed(..))
    ));
    assert!(matches!(
        LinkShard::parse(br#"{"v":2,"targets":{}}"#),
        Err(FormatError::Newer(2))
    ));
}

/// A failing link stops all of its subscriptions; a failing subscription stops only itself.
#[test]
fn failing_link_stops_its_subscriptions_and_each_only_itself() {
    let settings = HealthSettings::default();
    let gates = |shard: &LinkShard| {
        ["billing", "audit"]
            .map(|name| shard.decide_for_target(&subscription("a.example", name), NOW, &settings))
    };
    let delay = CircuitDecision::Delay {
        until: NOW + secs(60),
    };
    assert_eq!(
        gates(&with(&[(
            DeliveryTarget::Link(link("a.example")),
            failing()
        )])),
        [delay, delay]
    );
    assert_eq!(
        gates(&with(&[(subscription("a.example", "billing"), failing())])),
        [delay, CircuitDecision::Open]
    );
}

/// One probe asks a link and its subscription, and no other delivery gets a probe.
#[test]
fn single_probe_asks_a_link_and_its_subscription_at_once() {
    let settings = HealthSettings::default();
    let own = subscription("a.example", "billing");
    let link = DeliveryTarget::Link(link("a.example"));
    let mut shard = with(&[(link.clone(), failing()), (own.clone(), failing())]);
    assert_eq!(shard.claim_probe(&own, "a", NOW, &settings), None);
    let due = NOW + secs(60);
    assert_eq!(
        shard.claim_probe(&own, "a", due, &settings),
        Some(ProbedTargets {
            link: true,
            subscription: true
        })
    );
    assert_eq!(shard.claim_probe(&own, "b", due, &settings), None);
    assert_eq!(
        shard.claim_probe(&subscription("a.example", "audit"), "b", due, &settings),
        None
    );
    assert_eq!(
        shard.decide_for_target(&subscription("a.example", "audit"), due, &settings),
        CircuitDecision::Delay {
            until: due + PROBE_LOOK_AGAIN
        }
    );
}

#[test]
fn records_by_a_wrong_clock_hold_nothing() {
    let settings = HealthSettings::default();
    let own = subscription("a.example", "billing");
    let mut shard = LinkShard::default();
    shard.apply_observation(&own, &failing(), NOW + mins(60 * 24 * 365), &settings);
    assert_eq!(
        shard.decide_for_target(&own, NOW, &settings),
        CircuitDecision::Open
    );
    assert!(shard.apply_observation(&own, &failing(), NOW, &settings));
    assert_eq!(
        shard.decide_for_target(&own, NOW, &settings),
        CircuitDecision::Delay {
            until: NOW + secs(60)
        }
    );
}

/// A clock that is set back ends holds and ramps instead of lengthening them.
#[test]
fn clock_set_back_ends_holds_and_ramps_early() {
    let settings = HealthSettings::default();
    let own = subscription("a.example", "billing");
    let glitch = with(&[(own.clone(), failing())]);
    let pause = with(&[(own.clone(), asked(900, None))]);
    let mut retry = glitch.clone();
    let mut later = NOW;
    for _ in 0..6 {
        later = later + mins(15);
        assert!(retry.claim_probe(&own, "p", later, &settings).is_some());
        let failed = Observation::ProbeFailed {
            by: "p".to_owned(),
            last: BUSY,
        };
        assert!(retry.apply_observation(&own, &failed, later, &settings));
    }
    let mut recovering = glitch.clone();
    assert!(recovering.apply_observation(&own, &Observation::Succeeded, NOW, &settings));
    for (shard, at) in [
        (glitch, NOW),
        (pause, NOW),
        (retry, later),
        (recovering, NOW),
    ] {
        let decide = |back| {
            shard.decide_for_target(
                &own,
                Timestamp::from_millis(at.as_millis() - back),
                &settings,
            )
        };
        assert_ne!(decide(0), CircuitDecision::Open, "{shard:?}");
        assert_ne!(decide(60_000), CircuitDecision::Open, "{shard:?}");
        assert_eq!(decide(6 * 3_600_000), CircuitDecision::Open, "{shard:?}");
    }
}

#[test]
fn a_part_takes_no_more_than_it_may_and_forgets_what_is_over() {
    let settings = HealthSettings::default();
    let mut shard = LinkShard::default();
    for index in 0..TARGETS_PER_SHARD_MAX {
        assert!(shard.apply_observation(
            &subscription("a.example", &format!("s{index}")),
            &failing(),
            NOW,
            &settings
        ));
    }
    let one_more = subscription("a.example", "more");
    assert!(!shard.apply_observation(&one_more, &failing(), NOW, &settings));
    let later = NOW + mins(60 * 50);
    assert!(shard.apply_observation(&one_more, &failing(), later, &settings));
    assert_eq!(shard.conditions().count(), 1);
}
