//! As many seeds as fit into a minute, which the commit under test chooses of those that have passed,
//! and the courses that once failed. New seeds are played by hand: of them one in a thousand shows
//! that a rule of the checker does not fit, and nobody's commit is at fault then.

#![expect(
    clippy::disallowed_methods,
    reason = "it plays for as long as it is told to, and says by which seed it goes on"
)]

mod found;

use std::ops::Range;
use std::time::{Duration, Instant};

use posthaste_simulation_campaign::{Behaviour, Course, Outcome, Step, run, shrunk, shrunk_by};
use posthaste_testkit::seed_of_run;

/// Time for seeds, and the least number of them, however slow the machine is.
const TIME: Duration = Duration::from_mins(1);
const SEEDS_MIN: u64 = 60;

/// The seeds that have passed by the rules of today, or failed, were looked at, and pass now.
const PASSED: [Range<u64>; 4] = [
    400_000..401_379,
    402_500..403_791,
    404_000..431_437,
    500_883..516_571,
];

/// Plays others, from this seed on.
const SEED_VARIABLE: &str = "POSTHASTE_CAMPAIGN_SEED";

/// The seeds to play, in order, and why these.
fn seeds() -> (Box<dyn Iterator<Item = u64>>, String) {
    let (chosen, why) = seed_of_run(SEED_VARIABLE);
    let asked = std::env::var(SEED_VARIABLE);
    if asked.is_ok_and(|seed| seed.parse::<u64>().is_ok()) {
        return (Box::new(chosen..), why);
    }
    let all: Vec<u64> = PASSED.into_iter().flatten().collect();
    let first = usize::try_from(chosen % all.len() as u64).expect("a place among them");
    let (before, from) = all.split_at(first);
    (Box::new([from, before].concat().into_iter()), why)
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
    let (seeds, why) = seeds();
    let mut seeds = seeds.peekable();
    let first = *seeds.peek().expect("there are seeds");
    println!("seeds from {first}, {why}");
    let mut played = 0;
    for seed in seeds {
        if played >= SEEDS_MIN && Instant::now() >= end {
            break;
        }
        check(seed);
        played += 1;
    }
    println!("{played} seeds from {first}, {why}");
}

#[test]
fn courses_that_failed_once_hold() {
    for (why, course) in found::all() {
        let outcome = run(&course);
        assert_eq!(outcome.faults, Vec::<String>::new(), "{why}");
    }
}

#[test]
fn same_seed_gives_the_same_trace() {
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
