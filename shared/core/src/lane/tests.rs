use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One late request among the messages of a batch.
const LATE: LaneObservation = LaneObservation::Late {
    in_invocation: 1,
    holds_others_up: true,
};

/// The second one in an invocation.
const SECOND: LaneObservation = LaneObservation::Late {
    in_invocation: 2,
    holds_others_up: true,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn target(text: &str) -> DeliveryTarget {
    DeliveryTarget::parse(text).unwrap()
}

fn billing() -> DeliveryTarget {
    target("https://a.example:443 orders.billing")
}

/// Targets that are slow at this time, as texts.
fn slow(targets: &SlowTargets, now: Timestamp) -> Vec<String> {
    targets
        .slow_at(now)
        .map(|(target, _)| target.to_string())
        .collect()
}

/// The targets that are slow after the second late request of each of these in an invocation.
fn entered(texts: &[&str]) -> SlowTargets {
    let enter = |targets: SlowTargets, text: &&str| {
        let next = targets.after_observation(SECOND, &target(text), NOW);
        next.unwrap_or(targets)
    };
    texts.iter().fold(SlowTargets::default(), enter)
}

#[test]
fn two_late_requests_of_one_invocation_make_a_target_slow() {
    let targets = SlowTargets::default()
        .after_observation(SECOND, &billing(), NOW)
        .unwrap();
    assert_eq!(
        targets.slow_at(NOW).collect::<Vec<_>>(),
        [(&billing(), NOW + SLOW_FOR)]
    );
}

/// If each batch has one message of a target, no invocation ever sees two.
#[test]
fn second_late_request_of_another_invocation_makes_slow() {
    let once = SlowTargets::default()
        .after_observation(LATE, &billing(), NOW)
        .unwrap();
    assert!(once.is_empty_at(NOW));
    let soon = NOW + LATE_REMEMBERED_FOR.saturating_sub(secs(1));
    assert_eq!(
        once.after_observation(LATE, &billing(), soon)
            .unwrap()
            .count_at(soon),
        1
    );
    let later = NOW + LATE_REMEMBERED_FOR;
    assert!(
        once.after_observation(LATE, &billing(), later)
            .unwrap()
            .is_empty_at(later)
    );
    let other = target("https://a.example:443 orders.crm");
    assert!(
        once.after_observation(LATE, &other, soon)
            .unwrap()
            .is_empty_at(soon)
    );
}

#[test]
fn late_request_of_a_message_alone_is_not_written_down() {
    let alone = LaneObservation::Late {
        in_invocation: 1,
        holds_others_up: false,
    };
    assert_eq!(
        SlowTargets::default().after_observation(alone, &billing(), NOW),
        None
    );
}

/// Stored targets have names in lower case.
#[test]
fn case_of_a_name_does_not_matter_to_lanes() {
    let written = target("https://a.example:443 Orders.Billing");
    let targets = SlowTargets::default()
        .after_observation(SECOND, &written, NOW)
        .unwrap();
    let stored = SlowTargets::parse(&targets.render()).unwrap();
    for targets in [targets, stored] {
        assert!(targets.is_slow(&written, NOW) && targets.is_slow(&billing(), NOW));
        assert_eq!(targets.after_observation(SECOND, &written, NOW), None);
    }
}

#[test]
fn slow_answer_of_a_quick_target_changes_nothing() {
    let seen =
        SlowTargets::default().after_observation(LaneObservation::SlowAnswer, &billing(), NOW);
    assert_eq!(seen, None);
}

#[test]
fn time_of_a_slow_target_is_extended_in_its_second_half() {
    let targets = entered(&["https://a.example:443 orders.billing"]);
    for seen in [LATE, SECOND, LaneObservation::SlowAnswer] {
        assert_eq!(
            targets.after_observation(seen, &billing(), NOW + secs(150)),
            None
        );
        let now = NOW + secs(151);
        let extended = targets.after_observation(seen, &billing(), now).unwrap();
        assert_eq!(
            extended.slow_at(now).next(),
            Some((&billing(), now + SLOW_FOR))
        );
    }
}

#[test]
fn slow_target_is_quick_once_its_time_is_over() {
    let targets = entered(&["https://a.example:443 orders.billing"]);
    assert_eq!(targets.count_at(NOW + SLOW_FOR.saturating_sub(secs(1))), 1);
    assert_eq!(targets.count_at(NOW + SLOW_FOR), 0);
    let after = targets.after_observation(LaneObservation::SlowAnswer, &billing(), NOW + SLOW_FOR);
    assert_eq!(after, None);
}

#[test]
fn link_is_slow_with_two_of_its_subscriptions() {
    let one = "https://a.example:443 orders.billing";
    let other = "https://b.example:443 orders.crm";
    assert_eq!(slow(&entered(&[one, other]), NOW), [one, other]);
    let targets = entered(&[one, other, "https://a.example:443 orders.stock"]);
    assert_eq!(slow(&targets, NOW), ["https://a.example:443", other]);
    // A third one is slow by its link, and adds nothing.
    let third = target("https://a.example:443 users.mail");
    assert_eq!(targets.after_observation(SECOND, &third, NOW), None);
}

#[test]
fn time_of_a_slow_link_is_extended_by_any_of_its_subscriptions() {
    let subscriptions = ["orders.billing", "orders.crm"];
    let subscriptions = subscriptions.map(|name| format!("https://a.example:443 {name}"));
    let targets = entered(&subscriptions.each_ref().map(String::as_str));
    let now = NOW + secs(200);
    let third = target("https://a.example:443 users.mail");
    let extended = targets
        .after_observation(LaneObservation::SlowAnswer, &third, now)
        .unwrap();
    assert_eq!(slow(&extended, NOW + secs(400)), ["https://a.example:443"]);
}

#[test]
fn more_than_a_thousand_links_count_as_quick() {
    let link = |n: usize| target(&format!("https://h{n}.example:443 orders.billing"));
    let mut targets = SlowTargets::default();
    for n in 0..SLOW_LINKS_MAX {
        targets = targets.after_observation(SECOND, &link(n), NOW).unwrap();
    }
    let one_more = link(SLOW_LINKS_MAX);
    assert_eq!(targets.after_observation(SECOND, &one_more, NOW), None);
    assert_eq!(targets.after_observation(LATE, &one_more, NOW), None);
    // Another subscription of a link that is among them makes that link slow.
    let beside = target("https://h7.example:443 orders.crm");
    assert!(targets.after_observation(SECOND, &beside, NOW).is_some());
    // When their time is over, there is room.
    let later = NOW + SLOW_FOR;
    assert_eq!(
        targets
            .after_observation(SECOND, &one_more, later)
            .unwrap()
            .count_at(later),
        1
    );
}

proptest! {
    /// Whatever is seen, a link has one entry, nothing is slow for longer than it may be, and what
    /// is written is bounded.
    #[test]
    fn observations_keep_one_entry_for_each_link(
        seen in prop::collection::vec((0..4_u8, 0..3_u8, 0..200_u64, 0..4_u8), 0..60),
    ) {
        let mut targets = SlowTargets::default();
        let mut now = NOW;
        for (host, name, wait, kind) in seen {
            now = now + secs(wait);
            let target = target(&format!("https://h{host}.example:443 orders.s{name}"));
            let seen = match kind {
                0 => LATE,
                1 => SECOND,
                _ => LaneObservation::SlowAnswer,
            };
            let was_slow = targets.slow_entry(&target, now).is_some();
            if let Some(next) = targets.after_observation(seen, &target, now) {
                prop_assert!(next.slow_entry(&target, now).is_some() || (!was_slow && seen == LATE));
                targets = next;
            }
            let links: BTreeSet<_> = targets.slow_at(now).map(|(target, _)| target.link()).collect();
            prop_assert_eq!(links.len(), targets.count_at(now));
            prop_assert!(targets.slow_at(now).all(|(_, until)| until <= now + SLOW_FOR));
        }
    }
}
