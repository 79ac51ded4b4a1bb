//! As many of the known seeds as fit into a minute, and those that once failed. New seeds are played by
//! hand until some thousands of them have passed: the checker was wrong about one of a hundred.

#![expect(
    clippy::disallowed_methods,
    reason = "it plays for as long as it is told to, and says by which seed it goes on"
)]

mod found;

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use posthaste_simulation_campaign::{Behaviour, Course, Outcome, Step, run, shrunk, shrunk_by};

/// Time for the known seeds, and the least number of them, however slow the machine is.
const TIME: Duration = Duration::from_mins(1);
const SEEDS_MIN: u64 = 60;

/// The seeds that have been played, and whose runs were looked at where one failed.
const KNOWN: [RangeInclusive<u64>; 3] = [200_000..=200_040, 201_000..=201_038, 202_000..=202_024];

/// Plays others, from this seed on.
const SEED_VARIABLE: &str = "POSTHASTE_CAMPAIGN_SEED";

/// The seeds to play.
fn seeds() -> impl Iterator<Item = u64> {
    let asked = std::env::var(SEED_VARIABLE).ok();
    let asked = asked.and_then(|seed| seed.parse().ok());
    let ranges = asked.map_or(KNOWN.to_vec(), |first: u64| vec![first..=u64::MAX]);
    ranges.into_iter().flatten()
}

/// Fails with the least course that fails as this one does.
#[expect(clippy::print_stdout, reason = "to shrink a course may take minutes")]
fn check(seed: u64) {
    let course = Course::draw(seed);
    let outcome = run(&course);
    if !outcome.faults.is_empty() {
        println!("seed {seed}: {:#?}", outcome.faults);
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
    let end = Instant::now() + TIME;
    let mut played = 0;
    for seed in seeds() {
        if played >= SEEDS_MIN && Instant::now() >= end {
            break;
        }
        check(seed);
        played += 1;
    }
    println!("{played} seeds");
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
