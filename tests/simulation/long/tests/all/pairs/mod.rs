//! Two faults in one run, and a fault with a kill after it, over the scenarios of the tests with one
//! fault: whichever effects fail, nothing is lost, all comes to rest, and each fault at most doubles
//! how often an event arrives.
//!
//! `tests/run` draws some of the pairs. `just pairs` tries all of them.

mod play;
mod scenario;

use std::panic::{AssertUnwindSafe, catch_unwind};

use posthaste_ports::{Entropy, ErrorKind};
use posthaste_testkit::{CallFault, SeededEntropy, seed_of_run};

use play::{Prepared, play};
use scenario::{Recovery, Replay, Scenario, ThreeEnds};

/// Draws the pairs of a run again: the number that it printed.
const SEED_VARIABLE: &str = "POSTHASTE_SEED";

/// The number of pairs to draw of each scenario, or `all` to try every one.
const PAIRS_VARIABLE: &str = "POSTHASTE_PAIRS";

/// Draws for one pair at most: the second fault of a draw may be behind the end of its run.
const DRAWS_PER_PAIR: usize = 4;

/// Mistakes that are told in full.
const TOLD_MAX: usize = 20;

/// An effect, and how it fails.
type Fall = (u64, CallFault);

fn firsts() -> [CallFault; 2] {
    [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::TimedOut),
    ]
}

/// The kinds of a second fault: two that the process lives through, and two with which it is killed.
fn seconds() -> [CallFault; 4] {
    let [before, after] = firsts();
    [before, after, CallFault::HangBefore, CallFault::HangAfter]
}

/// The tries of one scenario.
struct Tries {
    prepared: Prepared,
    /// Effects of the run in which nothing fails.
    effects: u64,
    pairs: usize,
    mistakes: Vec<String>,
}

impl Tries {
    fn of<S: Scenario>() -> Self {
        Self {
            prepared: Prepared::of::<S>(),
            effects: 0,
            pairs: 0,
            mistakes: Vec::new(),
        }
    }

    /// Plays these faults. Returns the number of effects of the first process and whether all of
    /// the faults happened.
    fn play<S: Scenario>(&mut self, faults: &[Fall]) -> (u64, bool) {
        let run = || play::<S>(&self.prepared, faults);
        let Ok(played) = catch_unwind(AssertUnwindSafe(run)) else {
            self.pairs += 1;
            self.mistakes.push(format!("{faults:?}: it panics"));
            return (0, true);
        };
        let has_both = played.faults == faults.len() as u64;
        self.pairs += usize::from(has_both && faults.len() > 1);
        if !played.mistakes.is_empty() {
            let [failed, mistakes] = [played.failed, played.mistakes].map(|it| it.join("; "));
            self.mistakes
                .push(format!("{faults:?}: {failed}: {mistakes}"));
        }
        (played.effects, has_both)
    }

    /// Draws so many pairs by a seed.
    fn draw<S: Scenario>(&mut self, seed: u64, pairs: usize) {
        let chance = SeededEntropy::new(seed);
        let below = |end: u64| {
            let mut bytes = [0; 8];
            chance.fill(&mut bytes);
            u64::from_le_bytes(bytes) % end.max(1)
        };
        let (effects, _) = self.play::<S>(&[]);
        self.effects = effects;
        for _ in 0..pairs * DRAWS_PER_PAIR {
            if self.pairs == pairs {
                return;
            }
            let first = below(effects);
            let second = first + 1 + below(effects - first);
            let [kind, then] = [below(2), below(4)].map(|it| usize::try_from(it).expect("small"));
            self.play::<S>(&[
                (first, firsts()[kind].clone()),
                (second, seconds()[then].clone()),
            ]);
        }
    }

    /// Plays every pair.
    fn play_all<S: Scenario>(&mut self) {
        let (effects, _) = self.play::<S>(&[]);
        self.effects = effects;
        for fault in firsts() {
            for at in 0..effects {
                let first = (at, fault.clone());
                let (end, _) = self.play::<S>(std::slice::from_ref(&first));
                for then in at + 1..end {
                    for second in seconds() {
                        self.play::<S>(&[first.clone(), (then, second)]);
                    }
                }
            }
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "it says what it tried, and how to try it again"
)]
fn try_pairs<S: Scenario>() {
    let asked = |name| std::env::var(name).ok();
    let number = |name| asked(name)?.parse::<u64>().ok();
    let mut tries = Tries::of::<S>();
    if asked(PAIRS_VARIABLE).as_deref() == Some("all") {
        tries.play_all::<S>();
    } else {
        let (seed, why) = seed_of_run(SEED_VARIABLE);
        println!("{SEED_VARIABLE}={seed}, {why}");
        let pairs = number(PAIRS_VARIABLE).and_then(|it| usize::try_from(it).ok());
        let pairs = pairs.unwrap_or(S::PAIRS);
        tries.draw::<S>(seed, pairs);
        assert_eq!(tries.pairs, pairs, "{}", S::NAME);
    }
    let Tries {
        effects,
        pairs,
        mistakes,
        ..
    } = tries;
    println!(
        "{}: {effects} effects, {pairs} pairs, {} with mistakes",
        S::NAME,
        mistakes.len()
    );
    for mistake in mistakes.iter().take(TOLD_MAX) {
        println!("{mistake}");
    }
    assert!(mistakes.is_empty(), "{}: {}", S::NAME, mistakes[0]);
}

#[test]
fn two_faults_lose_none_of_three_events() {
    try_pairs::<ThreeEnds>();
}

#[test]
fn two_faults_lose_nothing_of_a_recovery() {
    try_pairs::<Recovery>();
}

#[test]
fn two_faults_lose_nothing_of_a_replay() {
    try_pairs::<Replay>();
}
