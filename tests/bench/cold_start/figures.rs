//! Medians and percentiles of what was measured.

use std::time::Duration;

/// Sorted measurements, at least one.
#[derive(Debug, Clone)]
pub(crate) struct Figures(Vec<Duration>);

impl Figures {
    /// Of these.
    pub(crate) fn new(mut all: Vec<Duration>) -> Self {
        assert!(!all.is_empty(), "something was measured");
        all.sort_unstable();
        Self(all)
    }

    /// Half of them are below, in milliseconds.
    pub(crate) fn median_ms(&self) -> f64 {
        self.at(0.5)
    }

    /// Nine in ten are below, in milliseconds.
    pub(crate) fn p90_ms(&self) -> f64 {
        self.at(0.9)
    }

    /// By nearest rank.
    fn at(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1].as_secs_f64() * 1e3
    }
}
