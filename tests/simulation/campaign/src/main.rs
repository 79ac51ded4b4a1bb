//! Plays courses for so many minutes, or one of them.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it plays for as long as it is told to, and says by which seed it goes on"
)]

use std::collections::BTreeMap;
use std::panic::set_hook;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use posthaste_simulation_campaign::{Course, rules, run, shrunk};

/// The seeds between two lines that say how far it is.
const SEEDS_PER_LINE: u64 = 500;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|it| it == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    let has = |name: &str| arguments.iter().any(|it| it == name);
    // A panic in a run is a fault of it, and is told with it.
    set_hook(Box::new(|_| {}));
    if let Some(seed) = value("--seed") {
        return show(seed, has("--shrink"));
    }
    let length = Duration::from_secs(60 * value("--minutes").unwrap_or(1));
    play(value("--from").unwrap_or(1), length)
}

/// Plays one course, and shows its steps and what is wrong.
fn show(seed: u64, shrinks: bool) -> ExitCode {
    let course = Course::draw(seed);
    let outcome = run(&course);
    let is_well = outcome.faults.is_empty();
    let (course, outcome) = if shrinks && !is_well {
        let least = shrunk(&course);
        let outcome = run(&least);
        (least, outcome)
    } else {
        (course, outcome)
    };
    println!("{course}");
    outcome.trace.iter().for_each(|line| println!("{line}"));
    outcome
        .faults
        .iter()
        .for_each(|fault| println!("FAULT {fault}"));
    println!("seed {seed}: {} faults", outcome.faults.len());
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Plays the courses of one seed after the other. Whoever ends it goes on with the seed that it
/// named last.
fn play(from: u64, length: Duration) -> ExitCode {
    let began = Instant::now();
    let mut failed = BTreeMap::<String, Vec<u64>>::new();
    let mut seed = from;
    while began.elapsed() < length {
        let outcome = run(&Course::draw(seed));
        if let Some(fault) = outcome.faults.first() {
            println!("seed {seed}: {}", shortened(fault));
        }
        for rule in rules(&outcome.faults).into_keys() {
            failed.entry(rule).or_default().push(seed);
        }
        seed += 1;
        if (seed - from).is_multiple_of(SEEDS_PER_LINE) {
            println!("seeds {from} to {} in {:?}", seed - 1, began.elapsed());
        }
    }
    println!("seeds {from} to {} in {:?}", seed - 1, began.elapsed());
    for (rule, seeds) in &failed {
        println!("{rule}: {} seeds: {seeds:?}", seeds.len());
    }
    println!("go on with --from {seed}");
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The beginning of a fault, which may tell all requests of an event.
fn shortened(fault: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    fault.chars().take(CHARACTERS_MAX).collect()
}
