//! As many seeds as fit into a minute, another part of them for each commit, and those that once
//! failed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests panic, and say what they did"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use posthaste_simulation_campaign::{Course, run};

/// Time for the seeds of a commit, and the least number of them, however slow the machine is.
const TIME: Duration = Duration::from_secs(60);
const SEEDS_MIN: u64 = 60;

/// Repeats a run from the seed that it printed.
const FROM_VARIABLE: &str = "POSTHASTE_CAMPAIGN_FROM";

/// Seeds that failed once, each with what it found.
const FOUND: [(u64, &str); 0] = [];

/// The first seed of this commit.
fn first_seed() -> u64 {
    let asked = std::env::var(FROM_VARIABLE).ok();
    let asked = asked.and_then(|seed| seed.parse().ok());
    asked.unwrap_or_else(|| {
        let head = Command::new("git").args(["rev-parse", "HEAD"]).output();
        let hash = head.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let digits: String = hash.unwrap_or_default().chars().take(8).collect();
        u64::from_str_radix(&digits, 16).unwrap_or(1)
    })
}

#[tokio::test]
async fn all_promises_hold_whatever_happens() {
    let from = first_seed();
    println!("repeat this run with {FROM_VARIABLE}={from}");
    let end = Instant::now() + TIME;
    let mut seed = from;
    while Instant::now() < end || seed < from + SEEDS_MIN {
        let outcome = run(&Course::draw(seed)).await;
        assert_eq!(outcome.faults, Vec::<String>::new(), "seed {seed}");
        seed += 1;
    }
    println!("seeds {from} to {}", seed - 1);
}

#[tokio::test]
async fn seeds_that_failed_once_hold() {
    for (seed, found) in FOUND {
        let outcome = run(&Course::draw(seed)).await;
        assert_eq!(outcome.faults, Vec::<String>::new(), "seed {seed}: {found}");
    }
}

#[tokio::test]
async fn one_seed_gives_one_trace() {
    for seed in 1..6 {
        let course = Course::draw(seed);
        let (one, other) = (run(&course).await, run(&course).await);
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_eq!(one.faults, other.faults, "seed {seed}");
    }
}
