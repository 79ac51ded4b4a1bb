//! A run from its beginning to its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use posthaste_tests::patience::{now, rest};
use posthaste_tests::seed::Seed;
use posthaste_tests::seen::Seen;
use serde_json::json;

use crate::check::{ASKED_OF_THE_LOG, check, check_log, letters, open, troubles};
use crate::crowd::publish;
use crate::ledger::Ledger;
use crate::machine::{Machine, Parts, TOPIC};
use crate::moods::{Receivers, subscriptions};
use crate::report::Report;
use crate::trouble::Trouble;
use crate::waiting::{waiting, without_an_end};

const PUBLISHERS: usize = 4;

/// The pauses between two moods, and between two troubles, in milliseconds: drawn between these.
const MOOD_MILLIS: [usize; 2] = [500, 2500];
const TROUBLE_MILLIS: [usize; 2] = [500, 2500];

/// The disk of a run: what it needs at its beginning, and for each minute more.
const DISK_BYTES: u64 = 512 * 1024 * 1024;
const DISK_BYTES_PER_MINUTE: u64 = 32 * 1024 * 1024;

/// When all is well again, the rest lasts for as long as deliveries get their end, and this much
/// longer: a name that did not exist is asked for after five minutes.
const STILL_MAX: Duration = Duration::from_mins(6);

/// The same where a former release has taken over for a while: it puts off for 15 minutes what it
/// cannot read.
const STILL_AFTER_FORMER_MAX: Duration = Duration::from_mins(16);

/// The time between two looks whether anything waits in the program, and what of the ledger has no
/// end yet: for the second all dead letters are read.
const ASKED_EACH: Duration = Duration::from_secs(1);
const LOOKED_EACH: Duration = Duration::from_secs(15);

/// The time after which what waits for its link is asked to go again: a name that did not exist is
/// asked for after five minutes only.
const FORCE_EACH: Duration = Duration::from_secs(20);

/// The least events that must be accepted in a minute: a run in which everything fails shows nothing.
const ACCEPTED_PER_MINUTE_MIN: u64 = 200;

/// At most one of so many events is given up that receivers take: each fails some of the time only.
const GIVEN_UP_ONE_OF: usize = 100;

/// A run to make.
#[derive(Debug)]
pub struct Plan {
    /// The time in which things happen.
    pub length: Duration,
    /// Draws what happens, and when. A run that is repeated is not the same to the byte: the program
    /// and the machine have their own time.
    pub seed: u64,
    /// The library that moves the clock (libfaketime).
    pub clock: PathBuf,
    /// The program of a former release, which takes over for a while.
    pub former: Option<PathBuf>,
    /// The kinds of trouble; each comes once before one comes again.
    pub troubles: Vec<Trouble>,
}

/// Tells the threads of a run to stop when it is dropped.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes a run, and answers what became of it.
pub fn run(plan: Plan) -> Report {
    let mut seed = Seed::new(plan.seed);
    let minutes = plan.length.as_secs() / 60;
    let has_former = plan.former.is_some();
    let parts = Parts {
        clock: plan.clock,
        former: plan.former,
        disk_bytes: DISK_BYTES + minutes * DISK_BYTES_PER_MINUTE,
    };
    let ledger = Arc::new(Ledger::default());
    let topics = Seen::default();
    let stop = AtomicBool::new(false);
    let receivers = Receivers::start(&ledger);
    let mut machine = Machine::start(parts, &receivers.topic(), topics.clone());
    thread::scope(|scope| {
        for _ in 0..PUBLISHERS {
            let mut own = Seed::new(seed.below(usize::MAX) as u64);
            let ledger = &ledger;
            let topics = &topics;
            let stop = &stop;
            scope.spawn(move || publish(ledger, topics, &mut own, stop));
        }
        let mut own = Seed::new(seed.below(usize::MAX) as u64);
        let receivers = &receivers;
        let stopped = &stop;
        scope.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                receivers.change(&mut own);
                rest(between(&mut own, MOOD_MILLIS));
            }
        });
        // Also where it panics: the scope waits for its threads.
        let _stopping = Stopping(&stop);
        let end = now() + plan.length;
        torture(&mut machine, &ledger, &plan.troubles, &mut seed, end);
    });
    receivers.recover();
    // A batch that a caught panic left is hidden for twelve minutes, and from a new process for none.
    machine.suffer(Trouble::Restart, &mut seed);
    let still_max = if has_former {
        STILL_AFTER_FORMER_MAX
    } else {
        STILL_MAX
    };
    let rested_after = come_to_rest(&machine, &ledger, still_max);
    // In this order: what gets its end meanwhile is missing in the second.
    let still = waiting(machine.api());
    let letters = letters(machine.home());
    // Receivers go on meanwhile.
    let known = ledger.lock().clone();
    let (counts, mut faults) = check(&known, &letters);
    faults.extend(without_an_end(&open(&known, &letters), &still));
    let (known_to_the_log, of_the_log) = check_log(machine.api(), &known, &letters, &mut seed);
    faults.extend(of_the_log);
    let accepted_min = ACCEPTED_PER_MINUTE_MIN * minutes.max(1);
    if known_to_the_log * 2 < ASKED_OF_THE_LOG.min(counts.acknowledged) {
        faults.push(format!(
            "the delivery log knows {known_to_the_log} events only"
        ));
    }
    if counts.given_up * GIVEN_UP_ONE_OF > counts.delivered {
        faults.push(format!("{} events were given up", counts.given_up));
    }
    if (counts.acknowledged as u64) < accepted_min {
        faults.push(format!(
            "void: fewer than {accepted_min} events were accepted"
        ));
    }
    let troubles = troubles(&known);
    faults.extend(machine.stop());
    Report {
        seed: plan.seed,
        length: plan.length,
        counts,
        troubles,
        known_to_the_log,
        rested_after,
        faults,
    }
}

/// One trouble after the other until the end; each kind comes once before one comes again.
fn torture(
    machine: &mut Machine,
    ledger: &Ledger,
    kinds: &[Trouble],
    seed: &mut Seed,
    end: Duration,
) {
    let mut left: Vec<Trouble> = Vec::new();
    while now() < end {
        rest(between(seed, TROUBLE_MILLIS));
        if left.is_empty() {
            left = kinds.to_vec();
        }
        let trouble = left.swap_remove(seed.below(left.len()));
        if let Some(log) = machine.revive() {
            ledger.fault(format!(
                "the program ended by itself before: {trouble}: {log}"
            ));
        }
        let died = ledger.during(trouble, || {
            machine.suffer(trouble, seed);
            machine.revive()
        });
        if let Some(log) = died.filter(|_| !trouble.may_end_the_process()) {
            ledger.fault(format!("the program ended by itself: {trouble}: {log}"));
        }
    }
}

/// Waits until everything has its end, and answers how long that took.
fn come_to_rest(machine: &Machine, ledger: &Ledger, still_max: Duration) -> Duration {
    let began = now();
    let mut forced = Every::new(FORCE_EACH);
    let mut looked = Every::new(LOOKED_EACH);
    let mut least_open = usize::MAX;
    let mut ended_at = Duration::ZERO;
    loop {
        let elapsed = now().saturating_sub(began);
        if forced.is_due(elapsed) {
            for name in subscriptions() {
                let path = format!("/topics/{TOPIC}/subscriptions/{name}/force");
                machine.api().manage("POST", &path, Some(&json!({})));
            }
        }
        let waits = !waiting(machine.api()).is_empty();
        if looked.is_due(elapsed) || !waits {
            let letters = letters(machine.home());
            let open = open(&ledger.lock(), &letters).len();
            if open < least_open {
                least_open = open;
                ended_at = elapsed;
            }
            let is_still = elapsed >= ended_at + still_max;
            if (open == 0 && !waits) || is_still {
                return elapsed;
            }
        }
        rest(ASKED_EACH);
    }
}

/// Something that is done again and again.
struct Every {
    each: Duration,
    last: Option<Duration>,
}

impl Every {
    fn new(each: Duration) -> Self {
        Self { each, last: None }
    }

    /// Whether it is to be done now; then the next time is later.
    fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.last.is_none_or(|last| now >= last + self.each);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

fn between(seed: &mut Seed, [least, most]: [usize; 2]) -> Duration {
    Duration::from_millis((least + seed.below(most - least)) as u64)
}
