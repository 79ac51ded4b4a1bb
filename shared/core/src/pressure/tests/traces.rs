//! Traces over many polls: levels, tarpit, refusals and log ids in sequence.

use super::*;

/// Flapping around one threshold changes nothing after the first time.
#[test]
fn flapping_around_one_threshold_changes_nothing_after_once() {
    for (threshold, changes) in [(2000, 0), (4000, 1), (10_000, 2)] {
        let mut trace = Trace::new(exchange());
        trace.poll(&reading(Resource::SubmissionQueue, 4000.min(threshold - 1)));
        for _ in 0..50 {
            trace.poll(&reading(Resource::SubmissionQueue, threshold));
            trace.poll(&reading(Resource::SubmissionQueue, threshold - 1));
        }
        assert_eq!(trace.log.len(), changes, "{threshold}: {:?}", trace.log);
    }
}

#[test]
fn the_tarpit_goes_up_by_steps_and_down_by_steps() {
    let mut trace = Trace::new(exchange());
    let busy = reading(Resource::SubmissionQueue, 4000);
    let calm = at_rest();
    assert_eq!(
        trace.tarpits(12, &busy),
        [10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 55, 55]
    );
    assert_eq!(trace.tarpits(3, &calm), [50, 45, 40]);
    assert_eq!(trace.tarpits(2, &busy), [45, 50]);
    assert_eq!(
        trace.tarpits(11, &calm),
        [45, 40, 35, 30, 25, 20, 15, 10, 0, 0, 0]
    );
}

#[test]
fn rising_holding_and_falling_load_leaves_exactly_these_traces() {
    let mut trace = Trace::new(PressureSettings::default());
    let at = |buckets| reading(Resource::VersionBuckets, buckets);
    assert_eq!(trace.tarpits(2, &at(1999)), [0, 0]);
    assert_eq!(trace.tarpits(3, &at(2000)), [10, 15, 20]);
    assert_eq!(trace.tarpits(6, &at(2500)), [25, 30, 35, 40, 45, 50]);
    // The tenth poll: refusing begins and the tarpit ends.
    assert_eq!(trace.tarpits(1, &at(2500)), [0]);
    assert_eq!(trace.state.refused_tiers(), ProducerTier::ALL);
    // Below medium the level falls, but a refused tier is accepted again only at Normal, except
    // for the one that passes at Medium.
    let refused = [ProducerTier::Standard, ProducerTier::Bulk];
    assert_eq!(trace.poll(&at(1750)).refused_tiers(), refused);
    assert_eq!(trace.state.effective_level(), PressureLevel::Medium);
    assert_eq!(trace.poll(&at(1749)).refused_tiers(), []);
    let resource = Resource::VersionBuckets;
    let log = [
        vec![PRESSURE_ROSE],
        vec![PRESSURE_ROSE],
        vec![],
        vec![PRESSURE_FELL],
        vec![PRESSURE_FELL],
    ];
    assert_eq!(trace.log, log.map(|ids| (resource, ids)));
    assert_eq!(trace.admit(ProducerTier::Standard), Admission::Accept);
}

/// Other producers are not delayed once the usual ones are refused.
#[test]
fn refusing_the_usual_producers_ends_the_delay_of_others() {
    let mut trace = Trace::new(PressureSettings::default());
    trace.polls(5, &reading(Resource::BatchPoints, 2000));
    assert_eq!(
        trace.admit(ProducerTier::Standard),
        Admission::Delay(Duration::from_secs(30))
    );
    let mut both = reading(Resource::BatchPoints, 2000);
    both.memory = reading(Resource::SystemMemory, 92).memory;
    trace.poll(&both);
    assert_eq!(trace.admit(ProducerTier::Internal), Admission::Accept);
    let refused = Admission::Refuse {
        retry_after: REFUSED_RETRY_AFTER,
        resource: Resource::SystemMemory,
    };
    assert_eq!(trace.admit(ProducerTier::Standard), refused);
}

/// Refusing replays for the dead letters leaves the tarpit of others alone.
#[test]
fn replay_refusal_for_dead_letters_leaves_the_tarpit_alone() {
    let mut trace = Trace::new(PressureSettings::default());
    let mut readings = reading(Resource::DeadLetterBacklog, 4000);
    trace.polls(300, &readings);
    assert_eq!(trace.state.refused_tiers(), [ProducerTier::Bulk]);
    readings.drain_secs = Some(60);
    trace.poll(&readings);
    assert_eq!(
        trace.admit(ProducerTier::Standard),
        Admission::Delay(Duration::from_secs(10))
    );
}

#[test]
fn a_fast_fleet_is_not_throttled_at_ten_thousand_messages() {
    let mut trace = Trace::new(PressureSettings::default());
    let fast = ResourceReadings {
        visible: Some(1_000_000),
        drain_secs: Some(29),
        ..at_rest()
    };
    assert_eq!(
        trace.polls(1000, &fast).effective_level(),
        PressureLevel::Normal
    );
    let queue = trace.state.resource(Resource::SubmissionQueue).unwrap();
    assert_eq!(
        (queue.level, queue.acts, queue.polls),
        (PressureLevel::High, false, 0)
    );
    assert_eq!(
        (trace.log.len(), trace.admit(ProducerTier::Bulk)),
        (0, Admission::Accept)
    );
    let slow = ResourceReadings {
        drain_secs: Some(30),
        ..fast
    };
    assert_eq!(trace.poll(&slow).effective_level(), PressureLevel::High);
    // The history begins when the row begins to act.
    assert_eq!(trace.polls(298, &slow).refused_tiers(), []);
    assert_eq!(trace.poll(&slow).refused_tiers(), ProducerTier::ALL);
    // It ends below half of where it began.
    assert_eq!(trace.poll(&fast).refused_tiers(), ProducerTier::ALL);
    assert_eq!(
        trace
            .poll(&ResourceReadings {
                drain_secs: Some(15),
                ..fast
            })
            .refused_tiers(),
        ProducerTier::ALL
    );
    assert_eq!(
        trace
            .poll(&ResourceReadings {
                drain_secs: Some(14),
                ..fast
            })
            .refused_tiers(),
        []
    );
}

/// A drain time that wobbles neither begins the history anew nor lifts a refusal.
#[test]
fn wobbling_drain_time_keeps_history_and_refusal() {
    let mut trace = Trace::new(PressureSettings::default());
    let queue = |visible, drain_secs| ResourceReadings {
        visible: Some(visible),
        drain_secs: Some(drain_secs),
        ..at_rest()
    };
    let wobble = |trace: &mut Trace, polls: u64| {
        (0..polls)
            .map(|n| {
                trace
                    .poll(&queue(5000, 31 - n % 2 * 2))
                    .refused_tiers()
                    .len()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(wobble(&mut trace, 299), [0; 299]);
    assert_eq!(wobble(&mut trace, 20), [2; 20]);
    assert_eq!(
        trace.log,
        [vec![PRESSURE_ROSE], vec![]].map(|ids| (Resource::SubmissionQueue, ids))
    );
    // At Normal it begins anew only where it did before.
    trace.poll(&queue(1999, 29));
    assert_eq!(
        (trace.state.effective_level(), trace.state.refused_tiers()),
        (PressureLevel::Normal, vec![])
    );
    assert_eq!(
        trace.poll(&queue(5000, 29)).effective_level(),
        PressureLevel::Normal
    );
    assert_eq!(
        trace.poll(&queue(5000, 30)).effective_level(),
        PressureLevel::Medium
    );
}

/// Nearly full disks and memory are logged as critical when refusing begins.
#[test]
fn nearly_full_disks_and_memory_are_critical_once_refusing() {
    let critical = |resource, value, polls| {
        let mut trace = Trace::new(PressureSettings::default());
        trace.polls(polls, &reading(resource, value));
        trace
            .log
            .into_iter()
            .map(|(_, ids)| ids)
            .collect::<Vec<_>>()
    };
    let at_once = |id| vec![vec![PRESSURE_ROSE, id]];
    assert_eq!(
        critical(Resource::DatabaseDisk, 97, 5),
        at_once(DISK_CRITICALLY_LOW)
    );
    assert_eq!(
        critical(Resource::LogDisk, 98, 5),
        at_once(DISK_CRITICALLY_LOW)
    );
    assert_eq!(
        critical(Resource::SystemMemory, 92, 5),
        at_once(MEMORY_CRITICALLY_LOW)
    );
    assert_eq!(critical(Resource::ProcessMemory, 75, 29), [[PRESSURE_ROSE]]);
    assert_eq!(
        critical(Resource::ProcessMemory, 75, 30),
        [[PRESSURE_ROSE], [MEMORY_CRITICALLY_LOW]]
    );
}

/// Measures last as long as their level, and dehydration until Normal.
#[test]
fn measures_last_as_long_as_their_level_dehydration_to_normal() {
    let mut trace = Trace::new(PressureSettings::default());
    let mut measures = |value| {
        let state = trace.poll(&reading(Resource::SystemMemory, value));
        [
            PressureMeasure::TrimCaches,
            PressureMeasure::FlushDns,
            PressureMeasure::Dehydrate,
        ]
        .map(|measure| state.asks_for(measure))
    };
    assert_eq!(measures(91), [false; 3]);
    assert_eq!(measures(92), [true, false, false]);
    assert_eq!(measures(94), [true; 3]);
    assert_eq!(measures(91), [true, false, true]);
    assert_eq!(measures(89), [false; 3]);
}

#[test]
fn process_above_its_normal_threshold_trims_caches_at_once() {
    let mut trace = Trace::new(PressureSettings::default());
    let mut trims = |percent| {
        trace
            .poll(&reading(Resource::ProcessMemory, percent))
            .asks_for(PressureMeasure::TrimCaches)
    };
    assert_eq!([71, 72, 71].map(&mut trims), [false, true, false]);
    assert_eq!(trace.state.effective_level(), PressureLevel::Normal);
}

/// An unreadable resource keeps its level with the history frozen, and is forgotten in the end.
#[test]
fn unreadable_resource_keeps_its_level_and_is_forgotten_later() {
    let mut trace = Trace::new(PressureSettings::default());
    trace.polls(5, &reading(Resource::VersionBuckets, 2000));
    let blind = ResourceReadings {
        version_buckets: None,
        ..at_rest()
    };
    assert_eq!(trace.tarpits(3, &blind), [30, 30, 30]);
    let buckets = trace.state.resource(Resource::VersionBuckets).unwrap();
    assert_eq!((buckets.level, buckets.polls), (PressureLevel::Medium, 5));
    // Fifteen minutes are 450 polls.
    assert_eq!(
        trace.polls(447, &blind).effective_level(),
        PressureLevel::Medium
    );
    assert_eq!(trace.poll(&blind).effective_level(), PressureLevel::Normal);
    assert_eq!(
        trace.log.last(),
        Some(&(Resource::VersionBuckets, vec![PRESSURE_FELL]))
    );
}

#[test]
fn returning_monitor_goes_on_at_the_first_step_or_begins_anew() {
    let settings = PressureSettings::default();
    let mut trace = Trace::new(settings.clone());
    let busy = reading(Resource::BatchPoints, 2000);
    trace.polls(8, &busy);
    let after = |pause_ms: u64| {
        let now = trace.now + Duration::from_millis(pause_ms);
        let (state, _) = evaluate_pressure(&trace.state, &busy, &settings, now);
        (
            state.tarpit_wait().as_secs(),
            state.resource(Resource::BatchPoints).unwrap().polls,
        )
    };
    assert_eq!(after(6000), (50, 9));
    assert_eq!(after(6001), (15, 9));
    assert_eq!(after(900_000), (15, 9));
    assert_eq!(after(900_001), (10, 1));
}

#[test]
fn switched_off_nothing_is_watched() {
    let settings = PressureSettings {
        enable_resource_monitoring: false,
        ..PressureSettings::default()
    };
    let mut trace = Trace::new(PressureSettings::default());
    trace.poll(&reading(Resource::SystemMemory, 99));
    let memory = reading(Resource::SystemMemory, 99);
    let (state, changes) = evaluate_pressure(&trace.state, &memory, &settings, trace.now);
    assert_eq!(state, PressureState::unmonitored(trace.now));
    // What was told to be under pressure is told to be so no more, once.
    assert_eq!(
        changes,
        [moved(
            Resource::SystemMemory,
            PressureLevel::High,
            PressureLevel::Normal
        )]
    );
    assert_eq!(
        evaluate_pressure(&state, &memory, &settings, trace.now).1,
        []
    );
}

fn moved(resource: Resource, previous: PressureLevel, current: PressureLevel) -> LevelTransition {
    LevelTransition {
        resource,
        previous,
        current,
        refusal_began: false,
    }
}

/// A monitor that comes back after an hour tells what became of what it told.
#[test]
fn monitor_back_after_an_hour_tells_how_its_last_news_ended() {
    let mut trace = Trace::new(PressureSettings::default());
    trace.poll(&reading(Resource::BatchPoints, 4000));
    let after_an_hour = |readings: &ResourceReadings| {
        let now = trace.now + Duration::from_hours(1);
        evaluate_pressure(&trace.state, readings, &trace.settings, now).1
    };
    let fell = |level| vec![moved(Resource::BatchPoints, PressureLevel::High, level)];
    assert_eq!(after_an_hour(&at_rest()), fell(PressureLevel::Normal));
    assert_eq!(
        after_an_hour(&reading(Resource::BatchPoints, 2000)),
        fell(PressureLevel::Medium)
    );
    assert_eq!(after_an_hour(&reading(Resource::BatchPoints, 4000)), []);
}

/// Every acknowledgement waits the base, and the tarpit is never added to it.
#[test]
fn acknowledgements_wait_the_base_never_added_to_the_tarpit() {
    let secs = Duration::from_secs;
    let tarpit = TarpitSettings {
        base: secs(2),
        ..TarpitSettings::default()
    };
    let mut trace = Trace::new(PressureSettings {
        tarpit,
        ..PressureSettings::default()
    });
    let pressed = reading(Resource::BatchPoints, 2000);
    assert_eq!(trace.tarpits(1, &at_rest()), [2]);
    assert_eq!(
        trace.admit(ProducerTier::Internal),
        Admission::Delay(secs(2))
    );
    assert_eq!(trace.tarpits(3, &pressed), [10, 15, 20]);
    assert_eq!(trace.tarpits(4, &at_rest()), [15, 10, 2, 2]);
    // Where refusing begins the tarpit ends, and who is still admitted waits the base.
    trace.poll(&reading(Resource::SystemMemory, 92));
    assert_eq!(
        trace.admit(ProducerTier::Internal),
        Admission::Delay(secs(2))
    );
}

#[test]
fn base_outlasts_the_monitor_and_does_not_grow_when_stale() {
    let secs = Duration::from_secs;
    let tarpit = TarpitSettings {
        base: secs(2),
        ..TarpitSettings::default()
    };
    let mut trace = Trace::new(PressureSettings {
        tarpit,
        ..PressureSettings::default()
    });
    let later = |trace: &Trace, age| {
        admit_producer(Some(&trace.state), ProducerTier::Bulk, trace.now + age)
    };
    trace.poll(&at_rest());
    assert_eq!(
        [secs(7), secs(901)].map(|age| later(&trace, age)),
        [Admission::Delay(secs(2)); 2]
    );
    trace.polls(3, &reading(Resource::BatchPoints, 2000));
    let expected = [20, 10, 2].map(|delay| Admission::Delay(secs(delay)));
    assert_eq!(
        [secs(6), secs(7), secs(901)].map(|age| later(&trace, age)),
        expected
    );
}

#[test]
fn memory_that_must_not_dehydrate_leaves_it_to_the_queue() {
    let mut trace = Trace::new(PressureSettings {
        dehydrates_for_memory: false,
        ..PressureSettings::default()
    });
    let state = trace.poll(&reading(Resource::SystemMemory, 94));
    assert_eq!(
        (
            state.asks_to_dehydrate(),
            state.asks_for(PressureMeasure::FlushDns)
        ),
        (false, true)
    );
    assert!(
        trace
            .poll(&reading(Resource::SubmissionQueue, 10_000))
            .asks_to_dehydrate()
    );
    assert!(
        !trace
            .polls(2, &reading(Resource::SystemMemory, 94))
            .asks_to_dehydrate()
    );
}
