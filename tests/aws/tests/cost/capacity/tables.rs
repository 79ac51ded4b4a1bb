//! The tables, in Markdown.

use std::fmt::Write;
use std::time::Duration;

use super::case::{Case, Measured};
use super::formula::{Needs, delivering, per_second, per_second_of_one};
use super::loads::SILENCE;
use crate::world::BATCH_MAX;

/// The time after which slow endpoints are known.
pub(super) const SETTLED_AFTER: Duration = Duration::from_secs(15);

/// Invocations at once, in the columns of the first table.
const INVOCATIONS: [usize; 4] = [5, 50, 200, 1_000];

/// Answer times in seconds, in its rows.
const ANSWERS: [(&str, f64); 4] = [
    ("100 ms", 0.1),
    ("1 s", 1.0),
    ("10 s", 10.0),
    ("30 s", 30.0),
];

/// Requests of an invocation with ten messages of ten events.
const PACKED: usize = 100;

/// Longest answer time with which all of them begin within an invocation.
const PACKED_SECONDS_MAX: f64 = 1.0;

/// Deliveries a second by invocations and answer time.
pub(super) fn thumb() -> String {
    let mut table = "\
| answers in | requests of an invocation | 5 invocations | 50 (the default) | 200 | 1,000 |
|---|---|---|---|---|---|
"
    .to_owned();
    for (answers, seconds) in ANSWERS {
        let plain = INVOCATIONS.map(|most| per_second(most, BATCH_MAX, seconds));
        row(&mut table, answers, "10, one of each message", plain);
        if seconds > PACKED_SECONDS_MAX {
            continue;
        }
        let packed = INVOCATIONS.map(|most| per_second_of_one(most, PACKED, seconds));
        row(&mut table, answers, "100, all to one endpoint", packed);
    }
    table
}

fn row(table: &mut String, answers: &str, requests: &str, per_second: [f64; 4]) {
    let _ = write!(table, "| {answers} | {requests} |");
    for per_second in per_second {
        let _ = write!(table, " {} |", whole(per_second));
    }
    table.push('\n');
}

/// Healthy endpoints. `by_formula` says what was expected.
pub(super) fn healthy(cases: &[Case], measured: &[Measured], by_formula: &[Option<f64>]) -> String {
    let mut table = "\
| load | deliveries/s | by the formula | invocations | messages of each | each takes | messages in flight |
|---|---|---|---|---|---|---|
"
    .to_owned();
    for ((case, run), formula) in cases.iter().zip(measured).zip(by_formula) {
        let formula = formula.map_or("–".to_owned(), whole);
        let _ = writeln!(
            table,
            "| {} | {} | {formula} | {} | {:.1} | {:.2} s | {} |",
            case.name,
            whole(run.per_second()),
            run.invocations.count,
            run.batch(),
            run.seconds(),
            run.queue.in_flight_most
        );
    }
    table
}

/// One slow endpoint beside healthy ones.
pub(super) fn slow(cases: &[Case], measured: &[Measured]) -> String {
    let mut table = "\
| ten endpoints, 20 events/s each, 50 invocations | half of the healthy ones' events wait | the longest wait \
| everything delivered after |
|---|---|---|---|
"
    .to_owned();
    for (case, run) in cases.iter().zip(measured) {
        waits_row(&mut table, case.name, case, run);
    }
    table
}

/// The slow endpoint beside healthy ones, for longer.
pub(super) fn longer(cases: &[Case], measured: &[Measured]) -> String {
    let mut table = "\
| one of ten answers in 10 s, for | half of the healthy ones' events wait | the longest wait \
| everything delivered after |
|---|---|---|---|
"
    .to_owned();
    for (case, run) in cases.iter().zip(measured) {
        let load = case.pace.as_secs_f64() * case.events as f64;
        waits_row(&mut table, &format!("{load} s"), case, run);
    }
    table
}

fn waits_row(table: &mut String, name: &str, case: &Case, run: &Measured) {
    let waits = run.healthy_waits(case);
    let [half, longest] = [waits.len() / 2, waits.len() - 1].map(|n| waits[n].as_secs_f64());
    let end = run.invocations.end.as_secs();
    let _ = writeln!(table, "| {name} | {half:.1} s | {longest:.1} s | {end} s |");
}

/// The effect of slow endpoints on healthy ones.
pub(super) struct Isolation {
    /// The wait of half of their events, and the longest, from [`SETTLED_AFTER`] on.
    pub(super) half: Duration,
    pub(super) longest: Duration,
    /// The longest before that.
    pub(super) first: Duration,
}

impl Isolation {
    pub(super) fn of(case: &Case, run: &Measured) -> Self {
        let settled = case.slow_from + SETTLED_AFTER;
        let later = run.healthy_waits_in(case, settled..Duration::MAX);
        let first = run.healthy_waits_in(case, case.slow_from..settled);
        let longest = |waits: &[Duration]| *waits.last().expect("a delivery");
        Self {
            half: later[later.len() / 2],
            longest: longest(&later),
            first: longest(&first),
        }
    }
}

/// Slow endpoints with a lane of their own, and without.
pub(super) fn lanes(cases: &[Case], measured: &[Measured]) -> String {
    let mut table = "\
| ten endpoints, 20 events/s each, for 120 s | half of the healthy ones' events wait | the longest wait \
| in the first 15 s | everything delivered after | a million deliveries |
|---|---|---|---|---|---|
"
    .to_owned();
    for (case, run) in cases.iter().zip(measured) {
        let Isolation {
            half,
            longest,
            first,
        } = Isolation::of(case, run);
        let [half, longest, first] = [half, longest, first].map(|wait| wait.as_secs_f64());
        let end = run.invocations.end.as_secs();
        let dollars = delivering(case, run);
        let _ = writeln!(
            table,
            "| {} | {half:.1} s | {longest:.1} s | {first:.1} s | {end} s | ${dollars:.2} |",
            case.name
        );
    }
    table
}

/// Bounds over all invocations.
pub(super) fn limited(cases: &[Case], measured: &[Measured]) -> String {
    let mut table = "\
| 500 events wait, 50 invocations | requests/s | the most in any second | open at once, at most | invocations \
| requests to SQS per event | to S3 |
|---|---|---|---|---|---|---|
"
    .to_owned();
    for (case, run) in cases.iter().zip(measured) {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} | {:.1} | {:.1} |",
            case.name,
            whole(run.per_second()),
            run.most_in_a_second(),
            run.open_most(),
            run.invocations.count,
            run.queue.requests as f64 / case.events as f64,
            (run.gets + run.puts) as f64 / case.events as f64
        );
    }
    table
}

/// Silent endpoints.
pub(super) fn failing(case: &Case, run: &Measured) -> String {
    let end = run.invocations.end;
    let rows = [
        ("deliveries", (case.events * case.subscribers).to_string()),
        (
            "requests in these ten minutes",
            whole(run.requests_before(SILENCE) as f64),
        ),
        (
            "requests open at once, at most",
            run.open_most().to_string(),
        ),
        (
            "messages in flight, at most",
            run.queue.in_flight_most.to_string(),
        ),
        (
            "invocations of `deliver` until all is delivered",
            run.invocations.count.to_string(),
        ),
        (
            "their time",
            format!("{} s", whole(run.invocations.time.as_secs_f64())),
        ),
        (
            "all delivered, each once",
            format!("{} s after the end", end.saturating_sub(SILENCE).as_secs()),
        ),
    ];
    let mut table = format!("| {} | |\n|---|---|\n", case.name);
    for (name, value) in rows {
        let _ = writeln!(table, "| {name} | {value} |");
    }
    table
}

/// Needs of 5,000 events a second.
pub(super) fn sustained(cases: &[Case], measured: &[Measured]) -> String {
    let mut table = "\
| 5,000 events/s, one subscriber | concurrency of `publish` | of `deliver` | messages in flight | memory \
| per million | per month |
|---|---|---|---|---|---|---|
"
    .to_owned();
    for (case, run) in cases.iter().zip(measured) {
        let Needs {
            publish,
            deliver,
            in_flight,
            gb,
            million,
            month,
        } = Needs::of(case, run);
        let _ = writeln!(
            table,
            "| {} | {publish} | {deliver} | {in_flight:.0} | {gb:.1} GB | ${million:.2} | ${} |",
            case.name,
            whole(month)
        );
    }
    table
}

/// A number without a fraction, its thousands separated. Small ones keep one place.
fn whole(number: f64) -> String {
    if number < 100.0 {
        return format!("{number:.1}");
    }
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn thousands_are_separated() {
    let check = |number, expected| assert_eq!(whole(number), expected);
    check(0.25, "0.2");
    check(99.94, "99.9");
    check(416.67, "417");
    check(1_234_567.0, "1,234,567");
}
