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

    /// Half of them are below.
    pub(crate) fn median(&self) -> Duration {
        self.at(0.5)
    }

    /// Nine in ten are below.
    pub(crate) fn p90(&self) -> Duration {
        self.at(0.9)
    }

    /// By nearest rank.
    fn at(&self, share: f64) -> Duration {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }
}
