//! From the time at which an event is to be published to its arrival, at a rate.

use posthaste_tests::home::Home;

use crate::arguments::Arguments;
use crate::goal::{Goal, Verdict, joined};
use crate::paced;
use crate::process::{cpu_seconds, resident};
use crate::rounds::{in_turns, spread};
use crate::setup::{Mode, Setup};
use crate::shape::Shape;
use crate::sink::Sink;
use crate::table;
use crate::traffic::Traffic;

const HEAD: [&str; 9] = [
    "events/s",
    "delivery log",
    "p50",
    "p99",
    "most",
    "CPU of an event",
    "sent late, p99",
    "resident",
    "goal",
];

/// Seconds before the clock runs.
const WARM_UP_SECS: u32 = 1;

/// The goals of a rate, in milliseconds and microseconds.
struct Goals {
    rate: u32,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: Option<f64>,
}

const GOALS: [Goals; 2] = [
    Goals {
        rate: 100,
        p50_ms: 0.6,
        p99_ms: 1.5,
        cpu_us: None,
    },
    Goals {
        rate: 7_000,
        p50_ms: 1.0,
        p99_ms: 5.0,
        cpu_us: Some(80.0),
    },
];

/// One run.
struct Latency {
    took_ms: [f64; 3],
    cpu_us: f64,
    late_p99_ms: f64,
    resident_mib: f64,
}

/// Measures each rate in each mode, and prints the table.
pub(crate) fn measure(sink: &Sink, arguments: &Arguments) -> Vec<Verdict> {
    let modes = &arguments.delivery_log;
    let pairs = arguments
        .latency_rates
        .iter()
        .flat_map(|rate| modes.iter().map(|mode| (*rate, *mode)));
    let named =
        |(rate, mode): (u32, Mode)| (format!("{rate}/s, log {}", mode.name()), (rate, mode));
    let cases: Vec<_> = pairs.map(named).collect();
    let secs = arguments.latency_secs;
    let connections = arguments.latency_connections;
    let runs = in_turns(arguments.rounds, &cases, |(rate, mode)| {
        let setup = Setup {
            connections,
            ..arguments.setup(*mode)
        };
        run(sink, *rate, secs, &setup)
    });
    let (rows, verdicts): (Vec<_>, Vec<_>) = cases
        .iter()
        .zip(&runs)
        .map(|((_, (rate, mode)), runs)| row(*rate, *mode, runs))
        .unzip();
    let title = format!("Latency over {secs} s, {} rounds", arguments.rounds);
    table::print(&title, &HEAD, &rows);
    verdicts.into_iter().flatten().collect()
}

fn run(sink: &Sink, rate: u32, secs: u32, setup: &Setup<'_>) -> Latency {
    let home = Home::new();
    let server = setup.start(&home);
    let requests = Traffic::of_shape(Shape::One, &sink.url()).create(server.api());
    let address = server.url().trim_start_matches("http://");
    let publish = |secs| {
        let late = paced::publish(address, &requests[0], rate, secs, setup.connections);
        sink.wait_for(late.len());
        late
    };
    publish(WARM_UP_SECS);
    sink.reset();
    let cpu = cpu_seconds(server.pid());
    let late = publish(secs);
    let cpu_us = (cpu_seconds(server.pid()) - cpu) * 1e6 / late.len() as f64;
    let took_ms = sink.took_ms();
    sink.reset();
    let late_p99 = late.get(late.len() * 99 / 100).copied().unwrap_or_default();
    let late_p99_ms = late_p99.as_secs_f64() * 1e3;
    Latency {
        took_ms,
        cpu_us,
        late_p99_ms,
        resident_mib: resident(server.pid()).now_mib,
    }
}

fn row(rate: u32, mode: Mode, runs: &[Latency]) -> (Vec<String>, Vec<Verdict>) {
    let [p50, p99] = [0, 1].map(|index| spread(runs, |it| it.took_ms[index]).median);
    let most = spread(runs, |it| it.took_ms[2]).most;
    let cpu = spread(runs, |it| it.cpu_us).median;
    let name = format!("{rate}/s, log {}", mode.name());
    let judge = |goals: &Goals| {
        let mut verdicts = vec![
            Goal::AtMost(goals.p50_ms, " ms").judge(format!("{name}: p50"), p50),
            Goal::AtMost(goals.p99_ms, " ms").judge(format!("{name}: p99"), p99),
        ];
        verdicts.extend(
            goals
                .cpu_us
                .map(|max| Goal::AtMost(max, " us").judge(format!("{name}: CPU"), cpu)),
        );
        verdicts
    };
    let verdicts = GOALS
        .iter()
        .find(|goals| goals.rate == rate)
        .map(judge)
        .unwrap_or_default();
    let cells = vec![
        rate.to_string(),
        mode.name().to_owned(),
        format!("{p50:.2} ms"),
        format!("{p99:.2} ms"),
        format!("{most:.2} ms"),
        format!("{cpu:.1} us"),
        format!("{:.2} ms", spread(runs, |it| it.late_p99_ms).median),
        format!("{:.0} MiB", spread(runs, |it| it.resident_mib).median),
        joined(&verdicts),
    ];
    (cells, verdicts)
}
