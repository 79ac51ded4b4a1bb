//! The table as a whole, and what the other tests of back pressure share.

mod calm;
mod heard;
mod loads;
mod producers;
mod properties;
mod topic_changes;
mod topics;
mod traces;

use std::time::Duration;

use super::*;
use crate::model::{ProducerTier, Timestamp};

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const POLL: Duration = Duration::from_secs(2);
const GIB: u64 = 1024 * 1024 * 1024;

/// Readings with everything at rest: a disk of 100 GiB (95 / 97 / 99 and 94 / 96 / 98) and 100 GiB
/// of memory.
fn at_rest() -> ResourceReadings {
    let idle = ByteUsage {
        used: 0,
        total: 100 * GIB,
    };
    ResourceReadings {
        visible: Some(0),
        version_buckets: Some(0),
        batch_points: Some(0),
        database: Some(DatabaseSpace::Disk(idle)),
        log_disk: Some(idle),
        process_bytes: Some(0),
        memory: Some(idle),
        dead_letters: Some(0),
        drain_secs: Some(0),
    }
}

/// The same with one resource at a reading in its own unit. The submission queue is seen with a
/// slow drain.
fn reading(resource: Resource, value: u64) -> ResourceReadings {
    let share = ByteUsage {
        used: value * GIB,
        total: 100 * GIB,
    };
    let mut readings = at_rest();
    match resource {
        Resource::SubmissionQueue => {
            readings.visible = Some(value);
            readings.drain_secs = Some(30);
        }
        Resource::VersionBuckets => readings.version_buckets = Some(value),
        Resource::BatchPoints => readings.batch_points = Some(value),
        Resource::DatabaseDisk => readings.database = Some(DatabaseSpace::Disk(share)),
        Resource::LogDisk => readings.log_disk = Some(share),
        Resource::ProcessMemory => readings.process_bytes = Some(share.used),
        Resource::SystemMemory => readings.memory = Some(share),
        Resource::DeadLetterBacklog => readings.dead_letters = Some(value),
        Resource::DrainTime => readings.drain_secs = Some(value),
    }
    readings
}

/// Polls every two seconds; keeps the state and what changed.
struct Trace {
    settings: PressureSettings,
    state: PressureState,
    now: Timestamp,
    log: Vec<(Resource, Vec<u32>)>,
    changes: Vec<LevelTransition>,
}

impl Trace {
    fn new(settings: PressureSettings) -> Self {
        Self {
            settings,
            state: PressureState::normal(START),
            now: START,
            log: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn poll(&mut self, readings: &ResourceReadings) -> &PressureState {
        self.now = self.now + POLL;
        let (state, transitions) =
            evaluate_pressure(&self.state, readings, &self.settings, self.now);
        self.state = state;
        self.log
            .extend(transitions.iter().map(|t| (t.resource, t.log_ids())));
        self.changes.extend(transitions);
        &self.state
    }

    fn polls(&mut self, count: u32, readings: &ResourceReadings) -> &PressureState {
        for _ in 0..count {
            self.poll(readings);
        }
        &self.state
    }

    /// The tarpit in seconds after each of so many polls.
    fn tarpits(&mut self, count: u32, readings: &ResourceReadings) -> Vec<u64> {
        (0..count)
            .map(|_| self.poll(readings).tarpit_wait().as_secs())
            .collect()
    }

    fn admit(&self, tier: ProducerTier) -> Admission {
        admit_producer(Some(&self.state), tier, self.now)
    }
}

/// The header of an answer to a producer of any topic.
fn header_of(state: &PressureState, tier: ProducerTier, admission: &Admission) -> Option<String> {
    let pressing = pressure_cause(state, None, tier, admission);
    pressure_header(Some(state), pressing.as_ref(), admission)
}

fn exchange() -> PressureSettings {
    PressureSettings {
        profile: PressureProfile::Exchange2013,
        ..PressureSettings::default()
    }
}

/// A tier's answer in one letter: accepted `a`, delayed `d` by 10 s, by 55 s `D`, refused `r`.
fn letter(admission: Admission) -> char {
    match admission {
        Admission::Accept => 'a',
        Admission::Delay(delay) if delay == Duration::from_secs(10) => 'd',
        Admission::Delay(delay) if delay == Duration::from_secs(55) => 'D',
        Admission::Delay(other) => panic!("unexpected delay {other:?}"),
        Admission::Refuse { .. } => 'r',
    }
}

/// The answers to internal, standard and bulk after the first poll at a reading, and when the
/// history has passed.
fn heard(settings: &PressureSettings, resource: Resource, value: u64, history: u32) -> [String; 2] {
    let readings = reading(resource, value);
    let after = |polls| {
        let mut trace = Trace::new(settings.clone());
        trace.polls(polls, &readings);
        ProducerTier::ALL
            .map(|tier| letter(trace.admit(tier)))
            .into_iter()
            .collect()
    };
    [after(1), after(history)]
}

#[test]
fn every_resource_does_at_every_level_what_the_table_says() {
    // Resource, history depth, then reading, heard at once and heard after the history: Normal,
    // Medium, High.
    type Case = (Resource, u32, [(u64, &'static str, &'static str); 3]);
    let queue = [
        (3999, "aaa", "aaa"),
        (4000, "add", "arr"),
        (10_000, "ddd", "rrr"),
    ];
    let cases: [Case; 9] = [
        (Resource::SubmissionQueue, 300, queue),
        (
            Resource::VersionBuckets,
            10,
            [
                (1999, "aaa", "aaa"),
                (2000, "add", "arr"),
                (2500, "ddd", "rrr"),
            ],
        ),
        (
            Resource::BatchPoints,
            300,
            [
                (1999, "aaa", "aaa"),
                (2000, "add", "arr"),
                (4000, "ddd", "rrr"),
            ],
        ),
        (
            Resource::DatabaseDisk,
            1,
            [(96, "aaa", "aaa"), (97, "arr", "arr"), (99, "rrr", "rrr")],
        ),
        (
            Resource::LogDisk,
            1,
            [(95, "aaa", "aaa"), (96, "arr", "arr"), (98, "rrr", "rrr")],
        ),
        (
            Resource::ProcessMemory,
            30,
            [(72, "aaa", "aaa"), (73, "aaa", "arr"), (75, "aaa", "rrr")],
        ),
        (
            Resource::SystemMemory,
            1,
            [(91, "aaa", "aaa"), (92, "arr", "arr"), (94, "rrr", "rrr")],
        ),
        (
            Resource::DeadLetterBacklog,
            300,
            [
                (1999, "aaa", "aaa"),
                (2000, "aaa", "aaa"),
                (4000, "aaa", "aar"),
            ],
        ),
        (
            Resource::DrainTime,
            30,
            [(59, "aaa", "aaa"), (60, "add", "arr"), (300, "ddd", "rrr")],
        ),
    ];
    assert_eq!(cases.map(|case| case.0), Resource::ALL);
    for (resource, history, levels) in cases {
        for (value, at_once, after_history) in levels {
            let heard = heard(&PressureSettings::default(), resource, value, history);
            assert_eq!(heard, [at_once, after_history], "{resource} at {value}");
        }
    }
}

/// One poll before the history has passed, no producer is refused.
#[test]
fn poll_just_before_the_full_history_refuses_no_tier() {
    for row in rows_of_profile(PressureProfile::Scaled) {
        let (Some(depth), ThresholdRule::Fixed(thresholds)) = (row.history_depth, row.thresholds)
        else {
            continue;
        };
        let mut trace = Trace::new(PressureSettings::default());
        let readings = reading(row.resource, thresholds.high);
        assert_eq!(
            trace.polls(depth - 1, &readings).refused_tiers(),
            [],
            "{}",
            row.resource
        );
        assert!(
            !trace.poll(&readings).refused_tiers().is_empty(),
            "{}",
            row.resource
        );
    }
}

#[test]
fn a_profile_has_one_row_per_resource_in_order() {
    for profile in [
        PressureProfile::Scaled,
        PressureProfile::Exchange2013,
        PressureProfile::Exchange2013German,
    ] {
        assert_eq!(
            rows_of_profile(profile).map(|row| row.resource),
            Resource::ALL
        );
    }
    let german = PressureSettings {
        profile: PressureProfile::Exchange2013German,
        ..PressureSettings::default()
    };
    assert_eq!(
        heard(&german, Resource::VersionBuckets, 119, 10),
        ["aaa", "aaa"]
    );
    assert_eq!(
        heard(&german, Resource::VersionBuckets, 120, 10),
        ["add", "arr"]
    );
    assert_eq!(
        heard(&german, Resource::VersionBuckets, 200, 10),
        ["ddd", "rrr"]
    );
}

#[test]
fn our_own_rows_turn_nobody_away_in_the_documents_profile() {
    assert_eq!(
        heard(&exchange(), Resource::DrainTime, 300, 30),
        ["aaa", "aaa"]
    );
    assert_eq!(
        heard(&exchange(), Resource::DeadLetterBacklog, 4000, 300),
        ["aaa", "aaa"]
    );
    for (resource, value) in [
        (Resource::DeadLetterBacklog, 4000),
        (Resource::DrainTime, 300),
    ] {
        let mut trace = Trace::new(exchange());
        let state = trace.poll(&reading(resource, value)).clone();
        let seen = state.resource(resource).unwrap();
        // Their level is seen, logged and alarmed about, and counts for nobody else.
        assert_eq!(
            (seen.level, seen.told_level(), seen.acts),
            (PressureLevel::High, PressureLevel::High, false)
        );
        assert_eq!(
            state.asks_for(PressureMeasure::Alarm),
            resource == Resource::DeadLetterBacklog
        );
        assert_eq!(
            (
                state.effective_level(),
                state.level_since(),
                state.worst_resource()
            ),
            (PressureLevel::Normal, None, None)
        );
        assert_eq!(
            header_of(&state, ProducerTier::Bulk, &trace.admit(ProducerTier::Bulk)),
            None
        );
        trace.poll(&at_rest());
        assert_eq!(
            trace.log,
            [vec![PRESSURE_ROSE], vec![PRESSURE_FELL]].map(|ids| (resource, ids))
        );
    }
}

#[test]
fn level_follows_the_reading_with_hysteresis_at_every_border() {
    let thresholds = LevelThresholds::new(10, 20, 30);
    let normal = PressureLevel::Normal;
    let medium = PressureLevel::Medium;
    let high = PressureLevel::High;
    // Reading, then the level that Normal, Medium and High lead to.
    let cases = [
        (9, [normal, normal, normal]),
        (10, [normal, medium, medium]),
        (19, [normal, medium, medium]),
        (20, [medium, medium, high]),
        (29, [medium, medium, high]),
        (30, [high, high, high]),
    ];
    for (reading, expected) in cases {
        let seen = [normal, medium, high].map(|previous| next_level(previous, reading, thresholds));
        assert_eq!(seen, expected, "{reading}");
    }
}
