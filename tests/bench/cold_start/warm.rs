//! The CPU of a warm invocation that has next to nothing to do.

use std::time::Duration;

use crate::events;
use crate::figures::Figures;
use crate::process::Process;
use crate::programs::{NOTHING, World};
use crate::runtime_api::RuntimeApi;

/// The invocations are made in so many rounds, in each of which every program has its turn: what a
/// wake-up costs differs from one moment to the next more than the programs do.
const ROUNDS: usize = 20;

/// Invocations before those that count.
const WARM_UP: usize = 200;

/// A program that has started, and what it is given.
struct Warm {
    api: RuntimeApi,
    process: Process,
    event: Vec<u8>,
}

/// Median CPU per invocation of each program; `None` for one every invocation of which calls S3 or
/// SQS.
pub(crate) fn measure(
    world: &World,
    programs: &[&str],
    invocations: usize,
) -> Vec<Option<Duration>> {
    let started: Vec<_> = programs
        .iter()
        .map(|program| Warm::start(world, program))
        .collect();
    let mut spent = vec![Vec::new(); programs.len()];
    for _ in 0..ROUNDS {
        for (warm, spent) in started.iter().zip(&mut spent) {
            let round = || {
                warm.as_ref()
                    .map(|warm| warm.round(invocations.div_ceil(ROUNDS)))
            };
            spent.extend(round());
        }
    }
    spent
        .into_iter()
        .map(|spent| (!spent.is_empty()).then(|| Figures::new(spent).median()))
        .collect()
}

impl Warm {
    fn start(world: &World, program: &str) -> Option<Self> {
        let event = match program {
            NOTHING | "deliver" | "deadletter" => events::empty_batch(),
            "publish" => events::unauthorized(),
            "manage" => events::without_key(),
            _ => return None,
        };
        let (api, process) = world.start(program);
        api.invoke(&event, WARM_UP);
        Some(Self {
            api,
            process,
            event,
        })
    }

    fn round(&self, invocations: usize) -> Duration {
        let before = self.process.cpu();
        self.api.invoke(&self.event, invocations);
        self.process.cpu().saturating_sub(before) / u32::try_from(invocations).unwrap_or(u32::MAX)
    }
}
