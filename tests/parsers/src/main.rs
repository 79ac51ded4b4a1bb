//! Gives every target inputs for so many minutes, shows what comes of known ones, or looks at what
//! long ones cost.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it runs for as long as it is told to, and says what came of it"
)]

use std::panic::set_hook;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use posthaste_tests_parsers::{Draw, Failure, Run, Shape, Target, takes, targets};

/// Inputs of a plain target between two looks at the clock.
const INPUTS_PER_TURN: usize = 400;

/// Most failures of a target until it is left alone.
const FAILURES_MAX: usize = 5;

/// Bytes of an input, and of one that is longer by [`TIMES_LONGER`].
const BYTES: usize = 20_000;
const TIMES_LONGER: usize = 8;

/// The growth of time above which a shape is told, and the time below which it is not looked at.
const TIMES_SLOWER: u32 = 24;
const TIME_MIN: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let text = |name: &str| {
        let place = arguments.iter().position(|it| it == name)?;
        arguments.get(place + 1)
    };
    let value = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
    // A panic is what came of an input, and is told with it.
    set_hook(Box::new(|_| {}));
    let length = Duration::from_secs(60 * value("--minutes").unwrap_or(1));
    let seed = value("--seed").unwrap_or(1);
    let chosen: Vec<_> = targets()
        .filter(|target| text("--target").is_none_or(|name| target.name.contains(name)))
        .collect();
    println!("{} targets, --seed {seed}", chosen.len());
    if arguments.iter().any(|it| it == "--known") {
        return show(&chosen);
    }
    if arguments.iter().any(|it| it == "--growth") {
        return grow(&chosen, seed, length);
    }
    play(&chosen, seed, length)
}

/// Shows what comes of known inputs: they should reach beyond the first checks.
fn show(chosen: &[&'static Target]) -> ExitCode {
    for target in chosen {
        for input in target.known() {
            let start: String = String::from_utf8_lossy(&input).chars().take(60).collect();
            let word: String = (target.check)(&input).chars().take(160).collect();
            println!("{}: {start:?}: {word}", target.name);
        }
    }
    ExitCode::SUCCESS
}

/// Gives each target a turn, again and again.
fn play(chosen: &[&'static Target], seed: u64, length: Duration) -> ExitCode {
    let end = Instant::now() + length;
    let mut runs = Vec::new();
    let mut failures = 0;
    for target in chosen {
        match Run::begin(target, seed) {
            Ok(run) => runs.push((run, *target, 0)),
            Err(failure) => failures += tell(&failure, target),
        }
    }
    while Instant::now() < end {
        for (run, target, failed) in &mut runs {
            for _ in 0..INPUTS_PER_TURN.div_ceil(target.weight) {
                if *failed >= FAILURES_MAX {
                    break;
                }
                if let Err(failure) = run.step() {
                    *failed += 1;
                    failures += tell(&failure, target);
                }
            }
        }
        if runs.is_empty() {
            break;
        }
    }
    for (run, target, _) in &runs {
        println!(
            "{}: {} inputs, {} outcomes",
            target.name,
            run.inputs,
            run.words()
        );
    }
    let inputs: u64 = runs.iter().map(|(run, ..)| run.inputs).sum();
    println!("{inputs} inputs, {failures} failures, --seed {seed}");
    if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Tells of a failure and keeps its input.
fn tell(failure: &Failure, target: &Target) -> usize {
    let input = String::from_utf8_lossy(&failure.input);
    println!("FAULT {}: {}\n  input {input:?}", target.name, failure.why);
    match failure.keep(target) {
        Ok(file) => println!("  kept as {}", file.display()),
        Err(error) => println!("  not kept: {error}"),
    }
    1
}

/// Tells which long inputs take far more than their share of time. That is looked at by hand, and
/// is no test.
fn grow(chosen: &[&'static Target], seed: u64, length: Duration) -> ExitCode {
    let end = Instant::now() + length;
    let mut draw = Draw::new(seed);
    let mut shapes = 0;
    while Instant::now() < end {
        for target in chosen {
            shapes += 1;
            let shape = Shape::draw(&mut draw, &target.known());
            let long = time(target, &shape.of(BYTES * TIMES_LONGER));
            if long < TIME_MIN {
                continue;
            }
            let short = time(target, &shape.of(BYTES));
            let long = long.min(time(target, &shape.of(BYTES * TIMES_LONGER)));
            if long > short * TIMES_SLOWER && long >= TIME_MIN {
                println!("{}: {short:?}, {long:?} of {}", target.name, shape.shown());
            }
        }
    }
    println!("{shapes} shapes");
    ExitCode::SUCCESS
}

/// Time of the processor that a target takes for an input.
fn time(target: &Target, input: &[u8]) -> Duration {
    let began = processor_time();
    takes(target, input);
    processor_time().saturating_sub(began)
}

/// Time that this thread had a processor, as Linux counts it.
/// <https://docs.kernel.org/scheduler/sched-stats.html>
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}
