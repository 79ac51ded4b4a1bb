//! Plays courses for so many minutes, or one of them.

#![expect(clippy::print_stdout, reason = "what it finds is its answer")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use posthaste_simulation_campaign::{Course, run, shrunk};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|it| it == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    if let Some(seed) = value("--seed") {
        return runtime.block_on(show(seed));
    }
    let length = Duration::from_secs(60 * value("--minutes").unwrap_or(1));
    let from = value("--from").unwrap_or(1);
    runtime.block_on(play(from, length))
}

/// Plays one course, and shows its steps and what is wrong.
async fn show(seed: u64) -> ExitCode {
    let course = Course::draw(seed);
    let outcome = run(&course).await;
    if outcome.faults.is_empty() {
        println!("{course:#?}\nseed {seed}: all holds, {} requests", outcome.trace.len());
        return ExitCode::SUCCESS;
    }
    let least = shrunk(&course).await;
    let outcome = run(&least).await;
    println!("{least:#?}");
    outcome.trace.iter().for_each(|line| println!("{line}"));
    outcome.faults.iter().for_each(|fault| println!("{fault}"));
    ExitCode::FAILURE
}

/// Plays the courses of one seed after the other. A run that is ended goes on with the seed after
/// the last one that it names.
async fn play(from: u64, length: Duration) -> ExitCode {
    let (end, mut failed) = (Instant::now() + length, Vec::new());
    let mut seed = from;
    while Instant::now() < end {
        let course = Course::draw(seed);
        let outcome = run(&course).await;
        if let Some(fault) = outcome.faults.first() {
            println!("seed {seed} fails: {fault}");
            failed.push(seed);
        }
        if seed % 100 == 0 {
            println!("seeds up to {seed}, {} fail", failed.len());
        }
        seed += 1;
    }
    println!("seeds {from} to {}: {} fail: {failed:?}", seed - 1, failed.len());
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
