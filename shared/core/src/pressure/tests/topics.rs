//! Topics under pressure of their own: their producers are slowed and refused as the row of the
//! drain time says, and nobody else is.

use super::*;
use crate::model::{SubscriptionName, TopicName};

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

fn drain(name: &str, drain_secs: u64) -> TopicDrain {
    TopicDrain {
        topic: topic(name),
        subscription: SubscriptionName::parse("billing").unwrap(),
        due: 470,
        drain_secs,
    }
}

/// Polls every two seconds, in which the installation is at rest and topics have drain times.
struct Topics {
    settings: PressureSettings,
    state: PressureState,
}

impl Topics {
    fn new() -> Self {
        Self {
            settings: PressureSettings::default(),
            state: PressureState::normal(START),
        }
    }

    fn poll_after(&mut self, passed: Duration, drains: Option<Vec<TopicDrain>>) -> &PressureState {
        let now = self.state.at + passed;
        let (mut state, _) = evaluate_pressure(&self.state, &at_rest(), &self.settings, now);
        state.topics = evaluate_topics(&self.state, drains, &self.settings, now);
        self.state = state;
        &self.state
    }

    /// Polls so often with this drain time of `orders`.
    fn polls(&mut self, count: u32, drain_secs: u64) -> &PressureState {
        for _ in 0..count {
            self.poll_after(POLL, Some(vec![drain("orders", drain_secs)]));
        }
        &self.state
    }

    /// The answers to internal, standard and bulk producers of a topic.
    fn heard(&self, name: &str) -> [Admission; 3] {
        ProducerTier::ALL.map(|tier| admit_to(Some(&self.state), &topic(name), tier, self.state.at))
    }

    fn header(&self, name: &str, tier: ProducerTier) -> String {
        let admission = admit_to(Some(&self.state), &topic(name), tier, self.state.at);
        let pressing = pressure_cause(&self.state, Some(&topic(name)), tier, &admission);
        pressure_header(Some(&self.state), pressing.as_ref(), &admission).unwrap_or_default()
    }
}

const REFUSED: Admission = Admission::Refuse {
    retry_after: REFUSED_RETRY_AFTER,
    resource: Resource::DrainTime,
};

fn waits(secs: u64) -> Admission {
    Admission::Delay(Duration::from_secs(secs))
}

#[test]
fn slow_topic_slows_then_refuses_its_own_producers_alone() {
    let mut topics = Topics::new();
    topics.polls(1, 59);
    assert_eq!(topics.state.topics, []);
    let calm = [Admission::Accept; 3];
    assert_eq!(topics.heard("orders"), calm);
    topics.polls(1, 60);
    assert_eq!(
        topics.heard("Orders"),
        [Admission::Accept, waits(10), waits(10)]
    );
    topics.polls(1, 60);
    assert_eq!(
        topics.heard("orders"),
        [Admission::Accept, waits(15), waits(15)]
    );
    topics.polls(28, 60);
    assert_eq!(
        topics.heard("orders"),
        [Admission::Accept, REFUSED, REFUSED]
    );
    topics.polls(1, 300);
    assert_eq!(topics.heard("orders"), [REFUSED; 3]);
    assert_eq!(topics.heard("others"), calm);
    assert_eq!(topics.state.effective_level(), PressureLevel::Normal);
    assert!(!topics.state.is_calm());
    topics.polls(1, 29);
    assert_eq!(topics.heard("orders"), calm);
    assert_eq!(topics.state.topics, []);
}

#[test]
fn wait_of_a_topic_becomes_shorter_step_by_step() {
    let mut topics = Topics::new();
    topics.polls(3, 60);
    let wait = |topics: &Topics| topics.heard("orders")[1];
    assert_eq!(wait(&topics), waits(20));
    let waited = [(); 3].map(|()| {
        topics.poll_after(POLL, Some(Vec::new()));
        wait(&topics)
    });
    assert_eq!(waited, [waits(15), waits(10), Admission::Accept]);
}

#[test]
fn answer_of_a_slow_topic_names_the_subscription() {
    let mut topics = Topics::new();
    topics.polls(1, 60);
    assert_eq!(
        topics.header("orders", ProducerTier::Standard),
        "medium; resource=drain-time; subscription=billing; delay=10"
    );
    assert_eq!(
        topics.header("orders", ProducerTier::Internal),
        "medium; resource=drain-time; subscription=billing; delay=0"
    );
    assert_eq!(topics.header("others", ProducerTier::Standard), "");
    topics.polls(30, 60);
    assert_eq!(
        topics.header("orders", ProducerTier::Bulk),
        "medium; resource=drain-time; subscription=billing; retry-after=30"
    );
}

#[test]
fn longer_wait_of_installation_and_topic_counts() {
    let mut topics = Topics::new();
    topics.polls(3, 60);
    let mut slow = topics.state.clone();
    slow.tarpit_ms = 55_000;
    let admitted = |state: &PressureState| {
        admit_to(
            Some(state),
            &topic("orders"),
            ProducerTier::Standard,
            state.at,
        )
    };
    assert_eq!(admitted(&slow), waits(55));
    slow.tarpit_ms = 5000;
    assert_eq!(admitted(&slow), waits(20));
}

#[test]
fn topic_whose_drain_is_not_known_keeps_its_level_for_a_while() {
    let mut topics = Topics::new();
    topics.polls(31, 60);
    for _ in 0..3 {
        topics.poll_after(Duration::from_mins(5), None);
        assert_eq!(topics.heard("orders")[1], REFUSED);
    }
    topics.poll_after(Duration::from_mins(5), None);
    assert_eq!(topics.state.topics, []);
}

#[test]
fn stale_state_keeps_the_first_step_of_a_topic() {
    let mut topics = Topics::new();
    topics.polls(31, 60);
    let at = |secs| {
        let now = topics.state.at + Duration::from_secs(secs);
        admit_to(
            Some(&topics.state),
            &topic("orders"),
            ProducerTier::Standard,
            now,
        )
    };
    assert_eq!(
        [at(6), at(7), at(901)],
        [REFUSED, waits(10), Admission::Accept]
    );
}

#[test]
fn in_the_documents_profiles_no_topic_is_slowed() {
    let settings = exchange();
    let now = START + POLL;
    let slow = Some(vec![drain("orders", 5000)]);
    assert_eq!(
        evaluate_topics(&PressureState::normal(START), slow, &settings, now),
        []
    );
}

#[test]
fn state_names_at_most_a_thousand_topics_the_slowest() {
    let mut topics = Topics::new();
    let slow = (0..TOPICS_MAX as u64 + 2).map(|index| drain(&format!("t{index}"), 60 + index));
    topics.poll_after(POLL, Some(slow.collect()));
    assert_eq!(topics.state.topics.len(), TOPICS_MAX);
    let heard = ["t0", "t1", "t2", "t1001"].map(|name| topics.heard(name)[1]);
    assert_eq!(
        heard,
        [Admission::Accept, Admission::Accept, waits(10), waits(10)]
    );
}

#[test]
fn state_with_topics_is_read_with_and_without_them() {
    let mut topics = Topics::new();
    topics.polls(1, 60);
    let state = &topics.state;
    assert_eq!(PressureState::parse(&state.render()).unwrap(), *state);
    let mut json: serde_json::Value = serde_json::from_slice(&state.render()).unwrap();
    assert!(json.as_object_mut().unwrap().remove("topics").is_some());
    let without = PressureState::parse(json.to_string().as_bytes()).unwrap();
    assert_eq!(without.topics, []);
    json["topics"] = serde_json::json!([{ "topic": "orders", "subscription": "billing", "due": 1,
        "drainTime": state.topics[0].drain_time, "tarpitMs": 900_000_000 }]);
    // Bytes from outside hold no producer longer than a setting could.
    assert!(PressureState::parse(json.to_string().as_bytes()).is_err());
}

#[test]
fn replay_waits_for_its_topic_and_for_every_level_above_normal() {
    let mut topics = Topics::new();
    let wait = |state: &PressureState, name| {
        let wait = replay_wait(Some(state), &topic(name), state.at)?;
        let pressing = wait
            .pressing
            .map(|of| (of.resource.resource, of.subscription.is_some()));
        Some((wait.retry_after.as_secs(), pressing))
    };
    topics.polls(1, 59);
    assert_eq!(wait(&topics.state, "orders"), None);
    topics.polls(1, 60);
    let own = Some((Resource::DrainTime, true));
    assert_eq!(wait(&topics.state, "orders"), Some((10, own)));
    assert_eq!(wait(&topics.state, "others"), None);
    topics.polls(30, 60);
    assert_eq!(wait(&topics.state, "orders"), Some((30, own)));
    // A level that refuses nobody at Medium.
    let backlog = reading(Resource::DeadLetterBacklog, 2000);
    let now = topics.state.at + POLL;
    let (state, _) = evaluate_pressure(&topics.state, &backlog, &topics.settings, now);
    let expected = Some((30, Some((Resource::DeadLetterBacklog, false))));
    assert_eq!(wait(&state, "others"), expected);
    let now = state.at + Duration::from_secs(901);
    assert_eq!(replay_wait(Some(&state), &topic("orders"), now), None);
}

#[test]
fn state_tells_what_is_due_of_the_subscriptions_it_names() {
    let mut topics = Topics::new();
    topics.polls(1, 60);
    let due = ["orders.billing", "orders.other", "others.billing", "x"];
    assert_eq!(due.map(|group| topics.state.due_of(group)), [470, 0, 0, 0]);
}

#[test]
fn state_tells_the_share_of_a_slow_subscription() {
    let mut state = Topics::new().state;
    assert_eq!(state.due_of_slow(), 0);
    let lane = SlowLaneState {
        targets: 3,
        due: 100,
        delayed: 0,
        in_flight: 0,
        places: 10,
    };
    for (targets, share) in [(3, 34), (1, 100), (0, 100)] {
        state.slow_lane = Some(SlowLaneState { targets, ..lane });
        assert_eq!(state.due_of_slow(), share);
    }
}
