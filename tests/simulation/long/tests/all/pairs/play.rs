//! One run of a scenario, in one process, or in two where the first one is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;
use posthaste_services::LeftWork;
use posthaste_simulation::{Faults, Start, World, data_folder};
use posthaste_testkit::faulty::{CallFault, FaultPlan, PortEffect};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::scenario::{Scenario, id_of, messages};

/// Steps that are made after all has come to rest: what rests begins nothing by itself.
const STEPS_AT_REST: usize = 2;

/// The state that a scenario has left before anything fails. Each run has a copy of it.
pub(crate) struct Prepared {
    folder: TempDir,
    now: Timestamp,
}

/// A run that has ended.
#[derive(Debug, Default)]
pub(crate) struct Played {
    /// Calls of ports that the first process made.
    pub(crate) effects: u64,
    /// Faults that happened, the kill included.
    pub(crate) faults: u64,
    /// The calls that failed, in words.
    pub(crate) failed: Vec<String>,
    /// The rule that does not hold, in words.
    pub(crate) mistakes: Vec<String>,
}

/// A run that goes on.
struct Running {
    plan: FaultPlan,
    /// The number of faults with which the process is killed.
    killed_by: Option<u64>,
    step: usize,
    rested: usize,
    /// The number of times that the endpoint took each event.
    arrivals: BTreeMap<String, u64>,
    mistakes: Vec<String>,
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.build().expect("a runtime")
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

impl Prepared {
    /// Lets everything happen that is before the first fault.
    pub(crate) fn of<S: Scenario>() -> Self {
        runtime().block_on(async {
            let world = S::begin().await;
            let now = world.clock.now();
            let folder = world.end().await;
            Self { folder, now }
        })
    }

    fn copy(&self) -> TempDir {
        let copy = data_folder();
        copy_folder(self.folder.path(), copy.path()).expect("a copy");
        copy
    }
}

/// Plays a scenario in which the effects of these numbers fail so. If the last fault hangs, the
/// process is killed there, and another one goes on with what it left.
pub(crate) fn play<S: Scenario>(prepared: &Prepared, faults: &[(u64, CallFault)]) -> Played {
    let is_kill = |fault: &CallFault| matches!(fault, CallFault::HangBefore | CallFault::HangAfter);
    let is_killed = faults.last().is_some_and(|(_, fault)| is_kill(fault));
    let failed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&failed);
    let planned: BTreeMap<_, _> = faults.iter().cloned().collect();
    let mut running = Running {
        plan: FaultPlan::by(move |effect| {
            let fault = planned.get(&effect.number)?.clone();
            let mut failed = noted.lock().expect("no panic");
            let PortEffect {
                number,
                port,
                operation,
                key,
            } = effect;
            failed.push(format!("{fault:?} at {number}: {port} {operation:?} {key}"));
            Some(fault)
        }),
        killed_by: is_killed.then_some(faults.len() as u64),
        step: 0,
        rested: 0,
        arrivals: BTreeMap::new(),
        mistakes: Vec::new(),
    };
    let folder = prepared.copy();
    let now = prepared.now;
    let failing = Faults::everywhere(&running.plan);
    let first = Start {
        folder,
        now,
        seed: 1,
    };
    if let Some(second) = running.live_and_die::<S>(first, &failing) {
        running.live_and_die::<S>(second, &Faults::none());
    }
    Played {
        effects: running.plan.effects(),
        faults: running.plan.faults(),
        failed: failed.lock().expect("no panic").clone(),
        mistakes: running.mistakes,
    }
}

impl Running {
    /// One process, from its start to the end of the scenario, or to its kill: then it gives what it
    /// leaves.
    fn live_and_die<S: Scenario>(&mut self, start: Start, faults: &Faults) -> Option<Start> {
        let now = start.now;
        let seed = start.seed + 1;
        let process = runtime();
        let world = process.block_on(async { World::over_with(start, faults) });
        let is_whole = process.block_on(self.live::<S>(&world, now));
        if is_whole {
            process.block_on(self.check::<S>(&world));
        }
        // With it everything ends that the process had begun.
        drop(process);
        let now = world.clock.now();
        let folder = runtime().block_on(world.end());
        (!is_whole).then_some(Start { folder, now, seed })
    }

    /// Makes steps until all has come to rest. False if the process is killed before.
    async fn live<S: Scenario>(&mut self, world: &World, began: Timestamp) -> bool {
        let mut left = LeftWork::From(began);
        if self.step > 0 {
            world.finish_left(left).await;
        }
        while self.step < S::STEPS_MAX && self.rested <= STEPS_AT_REST {
            let work = Box::pin(S::step(world, self.step, left));
            let outcome = tokio::select! {
                biased;
                outcome = work => Some(outcome),
                () = self.death() => None,
            };
            self.note_arrivals::<S>(world);
            self.step += 1;
            if self.is_dead() {
                self.killed_by = None;
                return false;
            }
            if let Some(Err(error)) = outcome
                && self.plan.faults() == 0
            {
                self.mistakes.push(format!("wake: {error}"));
            }
            left = LeftWork::Old;
            let is_at_rest = messages(world).await == 0 && S::is_at_rest(world).await;
            self.rested = if is_at_rest { self.rested + 1 } else { 0 };
        }
        true
    }

    fn is_dead(&self) -> bool {
        self.killed_by
            .is_some_and(|faults| self.plan.faults() >= faults)
    }

    async fn death(&self) {
        while !self.is_dead() {
            tokio::task::yield_now().await;
        }
    }

    fn note_arrivals<S: Scenario>(&mut self, world: &World) {
        let requests = world.endpoint.take().into_iter();
        for request in requests.filter(|request| S::is_taken(self.step, request)) {
            let event: Value = serde_json::from_str(&request.body).expect("an event");
            *self.arrivals.entry(id_of(&event)).or_default() += 1;
        }
    }

    /// Checks what must hold, whatever has failed.
    async fn check<S: Scenario>(&mut self, world: &World) {
        if self.rested == 0 {
            let waiting = messages(world).await;
            self.mistakes
                .push(format!("not at rest, with {waiting} messages"));
        }
        // A fault may double what is there: a message that was sent and seemed not to be, and both of
        // them, where the invocation that has them dies.
        let faults = u32::try_from(self.plan.faults()).unwrap_or(u32::MAX);
        let times_max = 2_u64.saturating_pow(faults);
        let often = self
            .arrivals
            .iter()
            .filter(|(_, times)| **times > times_max);
        let often = often.map(|(id, times)| format!("{id} arrived {times} times"));
        self.mistakes.extend(often.collect::<Vec<_>>());
        let arrived: BTreeSet<_> = self.arrivals.keys().cloned().collect();
        self.mistakes.extend(S::mistakes(world, &arrived).await);
    }
}
