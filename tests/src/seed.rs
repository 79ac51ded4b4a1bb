//! Chance that can be repeated.

use crate::patience::now;

/// Repeats a run: the number of a run that failed, as it printed it.
const SEED_VARIABLE: &str = "POSTHASTE_SEED";

/// A source of numbers.
#[derive(Debug)]
pub struct Seed(u64);

impl Seed {
    /// The one that is asked for, or another one each time.
    #[expect(
        clippy::print_stdout,
        reason = "whoever sees a run fail needs it to repeat the run"
    )]
    pub fn of_this_run() -> Self {
        let seed = std::env::var(SEED_VARIABLE)
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed: u32 = seed.unwrap_or_else(|| now().subsec_nanos());
        println!("repeat this run with {SEED_VARIABLE}={seed}");
        Self::new(u64::from(seed))
    }

    /// The one with this number.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`. `SplitMix64` <https://prng.di.unimi.it/splitmix64.c>: enough to be
    /// somewhere else in every run.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("it is small")
    }
}
