//! Loads that rise, hold and fall on a manual clock, as exact traces: what arrives and what is
//! delivered go in, and the levels, the tarpit, the refused tiers and the log come out. The drain
//! time is measured as the monitor measures it.

use std::collections::VecDeque;
use std::fmt::Write;

use super::*;

/// A queue and a fleet that delivers from it, first in first out.
struct Fleet {
    per_poll: u64,
    waiting: VecDeque<(Timestamp, u64)>,
    rate: DrainRate,
    trace: Trace,
    shown: String,
    text: String,
}

impl Fleet {
    /// One that delivers so many in a second.
    fn new(settings: PressureSettings, per_second: u64) -> Self {
        let trace = Trace::new(settings);
        let per_poll = per_second * POLL.as_secs();
        Self {
            per_poll,
            waiting: VecDeque::new(),
            rate: DrainRate::default(),
            trace,
            shown: String::new(),
            text: String::new(),
        }
    }

    fn visible(&self) -> u64 {
        self.waiting.iter().map(|(_, count)| count).sum()
    }

    /// So many polls, with so many arrivals a second before each.
    fn load(&mut self, polls: u32, per_second: u64) -> &mut Self {
        for _ in 0..polls {
            self.waiting
                .push_back((self.trace.now, per_second * POLL.as_secs()));
            let (settled, oldest_wait) = self.deliver();
            let visible = self.visible();
            let drain_secs = self.rate.add_poll(visible, settled, oldest_wait, POLL);
            let readings = ResourceReadings {
                visible: Some(visible),
                drain_secs: Some(drain_secs),
                ..at_rest()
            };
            self.trace.poll(&readings);
            self.show(&readings);
        }
        self
    }

    /// The number of deliveries until the next poll, and the time for which the oldest had waited.
    fn deliver(&mut self) -> (u64, Duration) {
        let mut left = self.per_poll;
        let mut oldest_wait = Duration::ZERO;
        while let Some((at, count)) = self.waiting.front_mut().filter(|_| left > 0) {
            let taken = left.min(*count);
            oldest_wait = oldest_wait.max(self.trace.now.since(*at));
            *count -= taken;
            left -= taken;
            if *count == 0 {
                self.waiting.pop_front();
            }
        }
        (self.per_poll - left, oldest_wait)
    }

    /// A line, where something has changed besides the readings.
    fn show(&mut self, readings: &ResourceReadings) {
        let line = consequences(&self.trace);
        let log = logged(&mut self.trace);
        if line != self.shown || !log.is_empty() {
            let at = self.trace.now.since(START).as_secs();
            let visible = readings.visible.unwrap();
            let drain = readings.drain_secs.unwrap();
            let line = format!("{at:<3} s {visible:>7} {drain:>5} s  {line}  {log}");
            writeln!(self.text, "{}", line.trim_end()).unwrap();
        }
        self.shown = line;
    }

    fn text(&self) -> &str {
        self.text.trim_end()
    }
}

/// The level, the tarpit, and who is refused.
fn consequences(trace: &Trace) -> String {
    let refused: Vec<_> = trace
        .state
        .refused_tiers()
        .iter()
        .map(ToString::to_string)
        .collect();
    let refused = if refused.is_empty() {
        "-".to_owned()
    } else {
        refused.join("+")
    };
    format!(
        "{:<6} {:>2} s {refused:<22}",
        trace.state.effective_level().to_string(),
        trace.state.tarpit_wait().as_secs()
    )
}

/// The lines that the last poll logged: id, resource, and the levels before and after.
fn logged(trace: &mut Trace) -> String {
    let lines = |change: LevelTransition| {
        let LevelTransition {
            resource,
            previous,
            current,
            ..
        } = change;
        change
            .log_ids()
            .into_iter()
            .map(move |id| format!("{id} {resource} {previous}>{current}"))
    };
    trace
        .changes
        .drain(..)
        .flat_map(lines)
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn a_fast_fleet_with_ten_thousand_waiting_slows_nobody() {
    let mut fleet = Fleet::new(PressureSettings::default(), 5000);
    fleet.load(5, 4000).load(3, 20_000);
    let most = fleet.visible();
    fleet.load(300, 5000).load(30, 1000);
    assert_eq!((most, fleet.visible()), (90_000, 0));
    assert_eq!(
        (fleet.text(), fleet.trace.log.len()),
        ("2   s       0     0 s  normal  0 s -", 0)
    );
}

/// A slow fleet slows producers long before an hour of work waits.
#[test]
fn slow_fleet_slows_producers_long_before_an_hour_waits() {
    let mut fleet = Fleet::new(PressureSettings::default(), 2);
    // Five times as much as it can deliver, for two minutes; then nothing.
    fleet.load(5, 1).load(60, 10).load(250, 0);
    insta::assert_snapshot!(fleet.text(), @r"
    2   s       0     0 s  normal  0 s -
    26  s     128    64 s  medium 10 s -                       15004 drain-time normal>medium
    28  s     144    72 s  medium 15 s -
    30  s     160    80 s  medium 20 s -
    32  s     176    88 s  medium 25 s -
    34  s     192    96 s  medium 30 s -
    36  s     208   104 s  medium 35 s -
    38  s     224   112 s  medium 40 s -
    40  s     240   120 s  medium 45 s -
    42  s     256   128 s  medium 50 s -
    44  s     272   136 s  medium 55 s -
    84  s     592   296 s  medium  0 s standard+bulk
    86  s     608   304 s  high    0 s internal+standard+bulk  15004 drain-time medium>high
    610 s       0     0 s  normal  0 s -                       15005 drain-time high>normal
    ");
}

#[test]
fn by_the_documents_the_length_of_the_queue_alone_decides() {
    let mut fleet = Fleet::new(exchange(), 1000);
    fleet.load(3, 2000).load(4, 3000).load(20, 0);
    insta::assert_snapshot!(fleet.text(), @r"
    2   s    2000     0 s  normal  0 s -
    4   s    4000     4 s  medium 10 s -                       15004 submission-queue normal>medium
    6   s    6000     6 s  medium 15 s -
    8   s   10000    10 s  high   20 s -                       15004 submission-queue medium>high
    10  s   14000    14 s  high   25 s -
    12  s   18000    18 s  high   30 s -
    14  s   22000    22 s  high   35 s -
    16  s   20000    20 s  high   40 s -
    18  s   18000    18 s  high   45 s -
    20  s   16000    16 s  high   50 s -
    22  s   14000    14 s  high   55 s -
    34  s    2000    20 s  medium 55 s -                       15005 submission-queue high>medium
    36  s       0     0 s  normal 50 s -                       15005 submission-queue medium>normal
    38  s       0     0 s  normal 45 s -
    40  s       0     0 s  normal 40 s -
    42  s       0     0 s  normal 35 s -
    44  s       0     0 s  normal 30 s -
    46  s       0     0 s  normal 25 s -
    48  s       0     0 s  normal 20 s -
    50  s       0     0 s  normal 15 s -
    52  s       0     0 s  normal 10 s -
    54  s       0     0 s  normal  0 s -
    ");
}

/// A queue that stays long is refused after its history and accepted at Normal.
#[test]
fn long_queue_is_refused_after_its_history_accepted_at_normal() {
    let mut fleet = Fleet::new(exchange(), 100);
    fleet
        .load(20, 250)
        .load(295, 100)
        .load(4, 2000)
        .load(150, 0);
    insta::assert_snapshot!(fleet.text(), @r"
    2   s     300     0 s  normal  0 s -
    28  s    4200    42 s  medium 10 s -                       15004 submission-queue normal>medium
    30  s    4500    45 s  medium 15 s -
    32  s    4800    48 s  medium 20 s -
    34  s    5100    51 s  medium 25 s -
    36  s    5400    54 s  medium 30 s -
    38  s    5700    57 s  medium 35 s -
    40  s    6000    60 s  medium 40 s -                       15004 drain-time normal>medium
    42  s    6000    60 s  medium 45 s -
    44  s    6000    60 s  medium 50 s -
    46  s    6000    60 s  medium 55 s -
    626 s    6000    60 s  medium  0 s standard+bulk
    634 s   13600   136 s  high    0 s internal+standard+bulk  15004 submission-queue medium>high
    812 s    3800   174 s  medium  0 s standard+bulk           15005 submission-queue high>medium
    832 s    1800   194 s  normal  0 s -                       15005 submission-queue medium>normal
    850 s       0     0 s  normal  0 s -                       15005 drain-time medium>normal
    ");
}

/// Version buckets that rise, hold and fall, once by each page.
fn buckets(profile: PressureProfile, readings: [(u32, u64); 7]) -> String {
    let mut trace = Trace::new(PressureSettings {
        profile,
        ..PressureSettings::default()
    });
    let mut text = String::new();
    for (polls, buckets) in readings {
        for _ in 0..polls {
            trace.poll(&reading(Resource::VersionBuckets, buckets));
            let line = format!(
                "{buckets:<4}  {}  {}",
                consequences(&trace),
                logged(&mut trace)
            );
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
    }
    text
}

#[test]
fn version_buckets_leave_this_trace_by_the_english_page() {
    let readings = [
        (1, 1750),
        (2, 2000),
        (10, 2600),
        (1, 2400),
        (2, 1800),
        (1, 1700),
        (2, 2000),
    ];
    insta::assert_snapshot!(buckets(PressureProfile::Exchange2013, readings), @r"
    1750  normal  0 s -
    2000  medium 10 s -                       15004 version-buckets normal>medium
    2000  medium 15 s -
    2600  high   20 s -                       15004 version-buckets medium>high
    2600  high   25 s -
    2600  high   30 s -
    2600  high   35 s -
    2600  high   40 s -
    2600  high   45 s -
    2600  high   50 s -
    2600  high    0 s internal+standard+bulk
    2600  high    0 s internal+standard+bulk
    2600  high    0 s internal+standard+bulk
    2400  high    0 s internal+standard+bulk
    1800  medium  0 s standard+bulk           15005 version-buckets high>medium
    1800  medium  0 s standard+bulk
    1700  normal  0 s -                       15005 version-buckets medium>normal
    2000  medium 10 s -                       15004 version-buckets normal>medium
    2000  medium 15 s -
    ");
}

#[test]
fn version_buckets_leave_this_trace_by_the_german_page() {
    let readings = [
        (1, 80),
        (2, 120),
        (5, 210),
        (1, 150),
        (1, 100),
        (10, 70),
        (2, 130),
    ];
    insta::assert_snapshot!(buckets(PressureProfile::Exchange2013German, readings), @r"
    80    normal  0 s -
    120   medium 10 s -                       15004 version-buckets normal>medium
    120   medium 15 s -
    210   high   20 s -                       15004 version-buckets medium>high
    210   high   25 s -
    210   high   30 s -
    210   high   35 s -
    210   high   40 s -
    150   high   45 s -
    100   medium 50 s -                       15005 version-buckets high>medium
    70    normal 45 s -                       15005 version-buckets medium>normal
    70    normal 40 s -
    70    normal 35 s -
    70    normal 30 s -
    70    normal 25 s -
    70    normal 20 s -
    70    normal 15 s -
    70    normal 10 s -
    70    normal  0 s -
    70    normal  0 s -
    130   medium 10 s -                       15004 version-buckets normal>medium
    130   medium 15 s -
    ");
}

/// Flaps a resource around a threshold, from Normal and from High, and answers how often something
/// was logged.
fn flap(profile: PressureProfile, resource: Resource, threshold: u64, from: u64) -> usize {
    let mut trace = Trace::new(PressureSettings {
        profile,
        ..PressureSettings::default()
    });
    trace.poll(&reading(resource, from));
    // Fewer polls than the shortest history, whose end is logged as well.
    for _ in 0..4 {
        trace.poll(&reading(resource, threshold - 1));
        trace.poll(&reading(resource, threshold));
    }
    trace
        .changes
        .iter()
        .filter(|change| change.previous != change.current)
        .count()
}

/// Flapping around any threshold of any resource changes nothing after the first time.
#[test]
fn flapping_around_any_threshold_changes_nothing_after_once() {
    for profile in [
        PressureProfile::Scaled,
        PressureProfile::Exchange2013,
        PressureProfile::Exchange2013German,
    ] {
        for resource in Resource::ALL {
            let readings = reading(resource, 0);
            let row = rows_of_profile(profile)
                .iter()
                .find(|row| row.resource == resource)
                .unwrap();
            let thresholds = PressureSettings {
                profile,
                ..PressureSettings::default()
            };
            let LevelThresholds {
                normal,
                medium,
                high,
            } = thresholds.thresholds_of(row, &readings).unwrap().unwrap();
            let rises =
                [normal, medium, high].map(|threshold| flap(profile, resource, threshold, 0));
            // At the high one: to Medium below it, then to High.
            assert_eq!(rises, [0, 1, 2], "{resource} from Normal, {profile:?}");
            let falls =
                [high, medium, normal].map(|threshold| flap(profile, resource, threshold, high));
            // To High at first, and then: nothing; down to Medium; down to Normal.
            assert_eq!(falls, [1, 2, 2], "{resource} from High, {profile:?}");
        }
    }
}

/// Flaps the drain time around a border of the gate, with a queue of this length, and answers what
/// was logged.
fn flap_drain(visible: u64, border: u64, from: u64) -> Vec<u32> {
    let mut trace = Trace::new(PressureSettings::default());
    let queue = |drain_secs| ResourceReadings {
        visible: Some(visible),
        drain_secs: Some(drain_secs),
        ..at_rest()
    };
    trace.poll(&queue(from));
    for _ in 0..50 {
        trace.poll(&queue(border - 1));
        trace.poll(&queue(border));
    }
    trace.log.into_iter().flat_map(|(_, ids)| ids).collect()
}

/// A long queue acts once, however the drain time swings around a border.
#[test]
fn drain_time_at_a_border_does_not_make_a_long_queue_flap() {
    for visible in [5000, 50_000] {
        assert_eq!(flap_drain(visible, 30, 0), [PRESSURE_ROSE]);
        assert_eq!(flap_drain(visible, 30, 59), [PRESSURE_ROSE]);
        assert_eq!(flap_drain(visible, 15, 0), [0_u32; 0]);
        assert_eq!(flap_drain(visible, 15, 30), [PRESSURE_ROSE, PRESSURE_FELL]);
    }
    assert_eq!(flap_drain(3999, 30, 0), [0_u32; 0]);
}
