//! Chance that repeats itself, for tests and simulations.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_ports::Entropy;

/// A sequence that is the same for the same seed. Clones draw from one sequence. Not fit for
/// secrets.
///
/// `SplitMix64` (Steele, Lea and Flood, 2014): small, and its state is one counter, so no lock is
/// needed.
#[derive(Debug, Clone)]
pub struct SeededEntropy(Arc<AtomicU64>);

impl SeededEntropy {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    fn next(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self
            .0
            .fetch_add(GAMMA, Ordering::Relaxed)
            .wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Digits of a commit's hash that are a seed: as many as fit.
const DIGITS: usize = 16;

/// A seed that every run of a commit has, so that what passed before it was handed in passes for the
/// next person, and why it is this one. Another commit has another one. A variable of the environment
/// chooses it by hand.
pub fn seed_of_run(variable: &str) -> (u64, String) {
    let asked = std::env::var(variable).ok();
    if let Some(seed) = asked.and_then(|seed| seed.parse().ok()) {
        return (seed, format!("by {variable}"));
    }
    match commit() {
        Some(hash) => (
            u64::from_str_radix(&hash[..DIGITS], 16).unwrap(),
            format!("by commit {hash}"),
        ),
        None => (0, "without a commit".to_owned()),
    }
}

/// The hash of the commit under test. `None` outside of a checkout.
fn commit() -> Option<String> {
    let asked = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let hash = String::from_utf8(asked.ok()?.stdout).ok()?;
    (hash.len() > DIGITS).then(|| hash.trim().to_owned())
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use posthaste_core::model::Timestamp;

    use super::*;

    #[test]
    fn the_seeded_sequence_is_splitmix64() {
        // The first outputs of the reference implementation for seed 1234567.
        let entropy = SeededEntropy::new(1_234_567);
        assert_eq!(
            [entropy.next(), entropy.next(), entropy.next()],
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn clones_draw_from_one_sequence_and_equal_seeds_repeat_it() {
        let one = SeededEntropy::new(7);
        let other = SeededEntropy::new(7);
        let drawn = [one.uuid(), one.clone().uuid(), one.uuid()];
        assert_eq!(drawn, [other.uuid(), other.uuid(), other.uuid()]);
        assert_ne!(drawn[0], drawn[1]);
        assert_ne!(SeededEntropy::new(8).uuid(), drawn[0]);
    }

    #[test]
    fn uuid_at_a_time_is_of_version_7_and_sorts_by_it() {
        let entropy = SeededEntropy::new(7);
        let at = Timestamp::from_millis;
        let uuids = [0, 1, 255, 256, 1_700_000_000_000, 1_700_000_000_001]
            .map(|ms| entropy.uuid_at(at(ms)).simple().to_string());
        assert!(uuids.is_sorted(), "{uuids:?}");
        assert!(uuids.iter().all(|uuid| &uuid[12..13] == "7"), "{uuids:?}");
        assert_eq!(&uuids[4][..12], "018bcfe56800");
        let same = [(); 1_000].map(|()| entropy.uuid_at(at(1)));
        assert_eq!(same.iter().collect::<BTreeSet<_>>().len(), 1_000);
    }

    #[test]
    fn fractions_lie_between_zero_and_one() {
        let entropy = SeededEntropy::new(1);
        let fractions: Vec<f64> = (0..10_000).map(|_| entropy.fraction()).collect();
        assert!(fractions.iter().all(|f| (0.0..1.0).contains(f)));
        assert!(fractions.iter().any(|f| *f < 0.01) && fractions.iter().any(|f| *f > 0.99));
    }

    #[test]
    fn any_length_is_the_start_of_the_same_sequence() {
        let mut whole = [0; 40];
        SeededEntropy::new(3).fill(&mut whole);
        for length in 0..whole.len() {
            let mut bytes = vec![0; length];
            SeededEntropy::new(3).fill(&mut bytes);
            assert_eq!(bytes, whole[..length]);
        }
    }
}
