//! Each target holds for its known inputs, for those that once failed, and for some that the
//! commit under test draws.

use posthaste_testkit::seed_of_run;
use posthaste_tests_parsers::{ROOMS, Run, Target};

/// Gives the inputs of another run: the number that it printed.
const SEED_VARIABLE: &str = "POSTHASTE_SEED";

/// Inputs that a plain target is given.
const INPUTS: usize = 1_500;

#[expect(clippy::print_stdout, reason = "it says how to repeat a run")]
fn seed() -> u64 {
    let (seed, why) = seed_of_run(SEED_VARIABLE);
    println!("{SEED_VARIABLE}={seed}, {why}");
    seed
}

fn hold(target: &'static Target, seed: u64) {
    let mut run = Run::begin(target, seed);
    for _ in 0..INPUTS.div_ceil(target.weight) {
        run = run.and_then(|mut run| run.step().map(|()| run));
    }
    if let Err(failure) = run {
        let kept = failure.keep(target);
        panic!(
            "{failure:#?}\n{:?}\nkept: {kept:?}",
            String::from_utf8_lossy(&failure.input)
        );
    }
}

/// A test of each room, so that they run side by side.
macro_rules! rooms {
    ($($test:ident: $room:literal;)*) => {
        const TESTED: &[&str] = &[$($room),*];

        $(#[test]
        fn $test() {
            let seed = seed();
            let (_, targets) = ROOMS.iter().find(|(room, _)| *room == $room).expect("a room");
            targets.iter().for_each(|target| hold(target, seed));
        })*
    };
}

rooms! {
    texts_hold_whatever_they_are: "texts";
    events_hold_whatever_they_are: "events";
    settings_hold_whatever_they_are: "settings";
    answers_hold_whatever_they_are: "answers";
    stored_objects_hold_whatever_they_are: "stored";
    log_holds_whatever_its_files_are: "log";
    requests_hold_whatever_they_are: "requests";
    commands_hold_whatever_they_are: "commands";
    answers_on_the_wire_hold_whatever_they_are: "wire";
}

#[test]
fn every_room_has_a_test() {
    let rooms: Vec<_> = ROOMS.iter().map(|(room, _)| *room).collect();
    assert_eq!(rooms, TESTED);
}

#[test]
fn every_target_has_a_name_of_its_own() {
    let mut names: Vec<_> = ROOMS
        .iter()
        .flat_map(|(_, all)| *all)
        .map(|it| it.name)
        .collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
