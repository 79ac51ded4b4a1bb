//! Notices of topics that are slowed by themselves.

use crate::model::{ProducerTier, SubscriptionName, Timestamp, TopicName};
use crate::pressure::topic_changes::TOPIC_CHANGES_MAX;
use crate::pressure::{
    PressureChange, PressureLevel, PressureSettings, PressureState, TopicDrain, UNTOLD_MAX,
    carry_changes, evaluate_topics,
};

/// A state after another, in which these topics drain in so many seconds.
fn polled(before: &PressureState, drains: &[(&str, u64)]) -> (PressureState, usize) {
    let settings = PressureSettings::default();
    let at = before.at + settings.interval;
    let drain = |(topic, drain_secs): &(&str, u64)| TopicDrain {
        topic: TopicName::parse(topic).unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
        due: 470,
        drain_secs: *drain_secs,
    };
    let drains = drains.iter().map(drain).collect();
    let mut state = PressureState::normal(at);
    state.topics = evaluate_topics(before, Some(drains), &settings, at);
    let dropped = carry_changes(&mut state, before, &[]);
    (state, dropped)
}

fn short(state: &PressureState) -> Vec<(String, PressureLevel, PressureLevel, bool)> {
    let of = |change: &PressureChange| {
        let topic = change.topic.as_ref().unwrap();
        assert_eq!(topic.subscription.as_str(), "billing");
        let name = topic.name.to_string();
        (name, change.previous, change.current, change.refusal_began)
    };
    state.untold.iter().map(of).collect()
}

fn start() -> PressureState {
    PressureState::normal(Timestamp::from_millis(1_800_000_000_000))
}

#[test]
fn topic_that_is_slowed_refused_and_well_again_is_told() {
    let (slowed, _) = polled(&start(), &[("Orders", 96), ("calm", 20)]);
    let told = |previous, current, refused| vec![("Orders".into(), previous, current, refused)];
    assert_eq!(
        short(&slowed),
        told(PressureLevel::Normal, PressureLevel::Medium, false)
    );
    assert_eq!(slowed.untold[0].tarpit_ms, 10_000);
    assert_eq!(slowed.untold[0].topic.as_ref().unwrap().due, 470);
    let mut state = slowed;
    for _ in 2..30 {
        state.untold.clear();
        state = polled(&state, &[("orders", 96)]).0;
        assert_eq!(state.untold, []);
    }
    state = polled(&state, &[("Orders", 96)]).0;
    assert_eq!(
        short(&state),
        told(PressureLevel::Medium, PressureLevel::Medium, true)
    );
    assert_eq!(
        state.untold[0].refused_tiers,
        [ProducerTier::Standard, ProducerTier::Bulk]
    );
    state.untold.clear();
    state = polled(&state, &[]).0;
    assert_eq!(
        short(&state),
        told(PressureLevel::Medium, PressureLevel::Normal, false)
    );
    assert_eq!(state.untold[0].refused_tiers, []);
}

#[test]
fn worst_of_many_topics_that_change_at_once_are_told() {
    let names: Vec<_> = (0..50).map(|index| format!("t{index}")).collect();
    let drains: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.as_str(), if index < 3 { 400 } else { 70 }))
        .collect();
    let (state, dropped) = polled(&start(), &drains);
    assert_eq!(
        (state.untold.len(), dropped),
        (TOPIC_CHANGES_MAX, 50 - TOPIC_CHANGES_MAX)
    );
    let high = |change: &&PressureChange| change.current == PressureLevel::High;
    assert_eq!(state.untold.iter().filter(high).count(), 3);
    const { assert!(TOPIC_CHANGES_MAX * 4 <= UNTOLD_MAX) }
}

#[test]
fn state_with_a_change_of_a_topic_is_read_as_it_was_written() {
    let (state, _) = polled(&start(), &[("Orders", 96)]);
    assert_eq!(PressureState::parse(&state.render()).unwrap(), state);
}
