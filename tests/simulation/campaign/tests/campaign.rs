//! As many seeds as fit into a minute, another part of them for each commit, and those that once
//! failed.

#![expect(
    clippy::disallowed_methods,
    reason = "it plays for as long as it is told to, and says by which seed it goes on"
)]

mod found;

use std::process::Command;
use std::time::{Duration, Instant};

use posthaste_simulation_campaign::{Behaviour, Course, Outcome, Step, run, shrunk, shrunk_by};

/// Time for the seeds of a commit, and the least number of them, however slow the machine is.
const TIME: Duration = Duration::from_mins(1);
const SEEDS_MIN: u64 = 60;

/// Repeats a run from the seed that it printed.
const SEED_VARIABLE: &str = "POSTHASTE_CAMPAIGN_SEED";

/// The first seed of this commit.
fn first_seed() -> u64 {
    let asked = std::env::var(SEED_VARIABLE).ok();
    let asked = asked.and_then(|seed| seed.parse().ok());
    asked.unwrap_or_else(|| {
        let head = Command::new("git").args(["rev-parse", "HEAD"]).output();
        let hash = head.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let digits: String = hash.unwrap_or_default().chars().take(8).collect();
        u64::from_str_radix(&digits, 16).unwrap_or(1)
    })
}

/// Fails with the least course that fails as this one does.
fn check(seed: u64) {
    let course = Course::draw(seed);
    let outcome = run(&course);
    if !outcome.faults.is_empty() {
        let least = shrunk(&course);
        let faults = run(&least).faults;
        panic!(
            "seed {seed}: {:#?}\n\nat least:\n{least}\n{faults:#?}",
            outcome.faults
        );
    }
}

#[test]
fn all_promises_hold_whatever_happens() {
    let from = first_seed();
    println!("repeat this run with {SEED_VARIABLE}={from}");
    let end = Instant::now() + TIME;
    let mut seed = from;
    while Instant::now() < end || seed < from + SEEDS_MIN {
        check(seed);
        seed += 1;
    }
    println!("seeds {from} to {}", seed - 1);
}

#[test]
fn courses_that_failed_once_hold() {
    for (why, course) in found::all() {
        let outcome = run(&course);
        assert_eq!(outcome.faults, Vec::<String>::new(), "{why}");
    }
}

#[test]
fn one_seed_gives_one_trace() {
    for seed in 1..20 {
        let course = Course::draw(seed);
        assert_eq!(run(&course), run(&course), "seed {seed}");
    }
}

/// A rule that is broken by three steps together, in this order, whatever is between them.
fn planted(course: &Course) -> Outcome {
    let is_refusing = |step: &&Step| {
        matches!(
            step,
            Step::Behave {
                like: Behaviour::Busy,
                ..
            }
        )
    };
    let mut steps = course.steps.iter();
    let is_broken = steps.find(is_refusing).is_some()
        && steps.any(|step| matches!(step, Step::Pass(_)))
        && steps.any(|step| matches!(step, Step::Publish(_)));
    let faults = if is_broken {
        vec!["Planted: it is broken".to_owned()]
    } else {
        Vec::new()
    };
    Outcome {
        faults,
        ..Outcome::default()
    }
}

#[test]
fn course_that_breaks_a_rule_shrinks_to_the_steps_that_do() {
    let mut tried = 0;
    for seed in 1..1000 {
        let course = Course::draw(seed);
        if planted(&course).faults.is_empty() {
            continue;
        }
        let least = shrunk_by(&course, &planted);
        assert_eq!(least.steps.len(), 3, "{least}");
        assert_eq!(least.subscribers.len(), 1 + first_of(&least), "{least}");
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

/// The number of the subscription that the first step names.
fn first_of(course: &Course) -> usize {
    match course.steps[0] {
        Step::Behave { of, .. } => of.into(),
        _ => 0,
    }
}
