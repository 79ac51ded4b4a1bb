//! Chance that repeats itself, and whose fractions a test may set: the jitter of every wait is
//! drawn from them.

use std::sync::{Arc, Mutex, PoisonError};

use posthaste_ports::Entropy;
use posthaste_testkit::SeededEntropy;

/// A seeded sequence whose fractions can be held at one value. Clones share both.
#[derive(Debug, Clone)]
pub struct Chance {
    seeded: SeededEntropy,
    held: Arc<Mutex<Option<f64>>>,
}

impl Chance {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seeded: SeededEntropy::new(seed),
            held: Arc::default(),
        }
    }

    /// Draws this fraction from now on: 0 for no jitter, 1 for the most there is.
    pub fn hold(&self, fraction: f64) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(fraction);
    }
}

impl Entropy for Chance {
    fn fill(&self, bytes: &mut [u8]) {
        self.seeded.fill(bytes);
    }

    fn fraction(&self) -> f64 {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.unwrap_or_else(|| self.seeded.fraction())
    }
}
