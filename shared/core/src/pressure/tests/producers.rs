//! The answers that producers get by a state and its age, and the headers that say so.

use super::*;

#[test]
fn stale_state_keeps_the_first_step_and_a_forgotten_one_nothing() {
    let mut trace = Trace::new(PressureSettings::default());
    trace.polls(10, &reading(Resource::VersionBuckets, 2000));
    let at = |age_ms: i64, tier| {
        let now = trace.now.as_millis().checked_add_signed(age_ms).unwrap();
        admit_producer(Some(&trace.state), tier, Timestamp::from_millis(now))
    };
    let first_step = Admission::Delay(Duration::from_secs(10));
    let refused = Admission::Refuse {
        retry_after: REFUSED_RETRY_AFTER,
        resource: Resource::VersionBuckets,
    };
    // The same for a state that much from the future.
    for sign in [1, -1] {
        assert_eq!(
            [0, 6000].map(|age| at(sign * age, ProducerTier::Standard)),
            [refused; 2]
        );
        assert_eq!(
            [6001, 900_000].map(|age| at(sign * age, ProducerTier::Standard)),
            [first_step; 2]
        );
        assert_eq!(
            at(sign * 900_001, ProducerTier::Standard),
            Admission::Accept
        );
        // Whom nothing held is not held by age either.
        assert_eq!(
            [0, 6001].map(|age| at(sign * age, ProducerTier::Internal)),
            [Admission::Accept; 2]
        );
    }
    assert!(
        !trace
            .state
            .is_forgotten(trace.now + Duration::from_mins(15))
    );
    assert!(
        trace
            .state
            .is_forgotten(trace.now + Duration::from_millis(900_001))
    );
    assert!(!PressureState::unmonitored(START).is_forgotten(START + Duration::from_hours(24)));
}

#[test]
fn on_aws_a_state_is_stale_after_150_seconds() {
    let mut trace = Trace::new(PressureSettings {
        interval: Duration::from_secs(10),
        stale_after: Some(STATE_STALE_AFTER_AWS),
        ..PressureSettings::default()
    });
    assert_eq!(trace.settings.validate(), Ok(()));
    let busy = ResourceReadings {
        database: Some(DatabaseSpace::InFlight {
            messages: 490,
            max: 500,
        }),
        drain_secs: Some(40),
        ..ResourceReadings::default()
    };
    trace.polls(30, &busy);
    let at = |secs| {
        admit_producer(
            Some(&trace.state),
            ProducerTier::Bulk,
            trace.now + Duration::from_secs(secs),
        )
    };
    assert_eq!([at(150), at(151)].map(letter), ['r', 'd']);
}

/// The places of deliver are what runs out on AWS, and they are all taken in any burst.
#[test]
fn places_of_deliver_refuse_only_where_a_backlog_lasts() {
    let busy = |messages, drain_secs| ResourceReadings {
        database: Some(DatabaseSpace::InFlight { messages, max: 500 }),
        drain_secs: Some(drain_secs),
        ..ResourceReadings::default()
    };
    for profile in [PressureProfile::Scaled, PressureProfile::Exchange2013] {
        let mut trace = Trace::new(PressureSettings {
            profile,
            ..PressureSettings::default()
        });
        let heard = |trace: &Trace| ProducerTier::ALL.map(|tier| letter(trace.admit(tier)));
        trace.polls(100, &busy(500, 29));
        assert_eq!(heard(&trace), ['a'; 3], "{profile:?}");
        trace.polls(29, &busy(500, 30));
        assert_eq!(heard(&trace), ['a'; 3], "{profile:?}");
        trace.polls(1, &busy(500, 30));
        assert_eq!(heard(&trace), ['r'; 3], "{profile:?}");
        trace.polls(1, &busy(364, 30));
        assert_eq!(heard(&trace), ['a', 'r', 'r'], "{profile:?}");
        trace.polls(1, &busy(354, 30));
        assert_eq!(heard(&trace), ['a'; 3], "{profile:?}");
    }
}

#[test]
fn without_a_state_everybody_is_accepted() {
    for tier in ProducerTier::ALL {
        assert_eq!(admit_producer(None, tier, START), Admission::Accept);
    }
    assert_eq!(pressure_header(None, None, &Admission::Accept), None);
}

#[test]
fn the_header_tells_level_resource_and_wait() {
    let mut trace = Trace::new(PressureSettings::default());
    let header =
        |trace: &Trace, tier| header_of(&trace.state, tier, &trace.admit(tier)).unwrap_or_default();
    assert_eq!(header(&trace, ProducerTier::Standard), "");
    trace.polls(2, &reading(Resource::SubmissionQueue, 4000));
    assert_eq!(
        header(&trace, ProducerTier::Standard),
        "medium; resource=submission-queue; delay=15"
    );
    trace.poll(&at_rest());
    assert_eq!(header(&trace, ProducerTier::Standard), "normal; delay=10");
    trace.poll(&reading(Resource::LogDisk, 97));
    assert_eq!(
        header(&trace, ProducerTier::Standard),
        "medium; resource=log-disk; retry-after=30"
    );
    assert_eq!(
        header(&trace, ProducerTier::Internal),
        "medium; resource=log-disk; delay=0"
    );
}

/// The header that a tier gets, so many seconds after the poll.
fn header_after(trace: &Trace, tier: ProducerTier, secs: u64) -> String {
    let now = trace.now + Duration::from_secs(secs);
    let admission = admit_producer(Some(&trace.state), tier, now);
    header_of(&trace.state, tier, &admission).unwrap_or_default()
}

/// A producer is told of the resource that it waits for, and not of something worse.
#[test]
fn waiting_producer_is_told_its_own_cause_not_a_worse_one() {
    // Slow, but in the documents' profile that delays nobody: the length of the queue does.
    let mut trace = Trace::new(exchange());
    trace.poll(&ResourceReadings {
        drain_secs: Some(400),
        ..reading(Resource::SubmissionQueue, 4000)
    });
    assert_eq!(
        header_after(&trace, ProducerTier::Standard, 0),
        "medium; resource=submission-queue; delay=10"
    );
    // Dead letters refuse replays only.
    let mut trace = Trace::new(PressureSettings::default());
    let backlog = ResourceReadings {
        dead_letters: Some(4000),
        ..at_rest()
    };
    trace.poll(&ResourceReadings {
        drain_secs: Some(60),
        ..backlog
    });
    assert_eq!(
        header_after(&trace, ProducerTier::Standard, 0),
        "medium; resource=drain-time; delay=10"
    );
    trace.poll(&ResourceReadings {
        drain_secs: Some(60),
        ..backlog
    });
    trace.poll(&backlog);
    assert_eq!(
        header_after(&trace, ProducerTier::Standard, 0),
        "high; delay=10"
    );
}

/// A producer that a stale state would have refused is told on whose account.
#[test]
fn stale_refusal_still_names_its_resource() {
    let mut trace = Trace::new(PressureSettings::default());
    trace.poll(&reading(Resource::LogDisk, 98));
    assert_eq!(
        header_after(&trace, ProducerTier::Standard, 0),
        "high; resource=log-disk; retry-after=30"
    );
    assert_eq!(
        header_after(&trace, ProducerTier::Standard, 7),
        "high; resource=log-disk; delay=10"
    );
}

#[test]
fn a_state_survives_writing_and_reading() {
    let mut trace = Trace::new(PressureSettings::default());
    let state = trace.polls(3, &reading(Resource::SystemMemory, 95)).clone();
    assert_eq!(PressureState::parse(&state.render()).unwrap(), state);
    assert_eq!(state.level_since(), Some(START + POLL));
}

#[test]
fn a_state_is_written_like_this() {
    let mut trace = Trace::new(PressureSettings::default());
    let blind = ResourceReadings {
        version_buckets: Some(2100),
        ..ResourceReadings::default()
    };
    let value: serde_json::Value = serde_json::from_slice(&trace.poll(&blind).render()).unwrap();
    insta::assert_json_snapshot!(value);
}

#[test]
fn garbage_is_no_state_and_holds_nobody() {
    let parse = |text: &str| {
        PressureState::parse(text.as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(parse(""), "not a pressure state");
    assert_eq!(parse("{\"v\":1}"), "not a pressure state");
    assert_eq!(parse("{\"v\":2}"), "version 2 is newer than this program");
    let mut endless = PressureState::normal(START);
    endless.tarpit_ms = u64::MAX;
    let text = String::from_utf8(endless.render()).unwrap();
    assert_eq!(
        parse(&text),
        format!(
            "a tarpit of {} ms is longer than any setting allows",
            u64::MAX
        )
    );
}
