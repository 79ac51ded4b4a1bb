//! Events that arrived, and the time they took.

use posthaste_tests::patience::now;
use serde_json::{Value, json};

use crate::wire::{SENT, SENT_DIGITS, find};

/// Most times that are kept.
const TIMES_MAX: usize = 1_000_000;

/// Events that arrived since the last reset.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// The number of resets.
    pub(super) resets: usize,
    count: usize,
    last_ns: u128,
    took_ns: Vec<u64>,
}

impl Arrived {
    /// An event is here.
    pub(super) fn note(&mut self, body: &[u8]) {
        self.count += 1;
        self.last_ns = now().as_nanos();
        let Some(begin) = find(body, SENT).map(|begin| begin + SENT.len()) else {
            return;
        };
        let digits = body.get(begin..begin + SENT_DIGITS).unwrap_or_default();
        let sent = digits.iter().fold(0_u128, |sum, digit| {
            sum * 10 + u128::from(digit.wrapping_sub(b'0'))
        });
        if self.took_ns.len() < TIMES_MAX {
            self.took_ns
                .push(u64::try_from(self.last_ns.saturating_sub(sent)).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self {
            resets: self.resets + 1,
            ..Self::default()
        };
    }

    pub(super) fn count(&self) -> Value {
        json!({ "count": self.count, "last": self.last_ns as f64 / 1e9 })
    }

    /// Percentiles of the times from publish to arrival, in milliseconds.
    pub(super) fn took(&mut self) -> Value {
        self.took_ns.sort_unstable();
        let ms = |share: f64| {
            self.took_ns
                .get(rank(self.took_ns.len(), share))
                .map(|ns| *ns as f64 / 1e6)
        };
        json!({ "p50": ms(0.5), "p99": ms(0.99), "max": ms(1.0) })
    }
}

/// The index of a percentile in sorted values (nearest rank).
fn rank(count: usize, share: f64) -> usize {
    ((count as f64 * share).ceil() as usize).clamp(1, count.max(1)) - 1
}
