//! Events that arrived, and the time they took.

use std::collections::HashSet;

use posthaste_tests::patience::now;
use serde::{Deserialize, Serialize};

use crate::endpoints::LINKS;
use crate::wire::{SENT, SENT_DIGITS, find};

/// Events that arrived since the beginning, or since the last reset.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// Of the healthy ones: which subscription got the event of which time.
    distinct: HashSet<(usize, u64)>,
    took_ns: Vec<u64>,
    nine_took_ns: Vec<u64>,
    taken: u64,
}

/// A summary of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Requests to the healthy ones, and how many different ones.
    pub(crate) arrived: usize,
    pub(crate) distinct: usize,
    /// From publish to arrival at them: median, 99th percentile, most.
    pub(crate) took_ms: [f64; 3],
    /// The 99th percentile of the nine whose host the hundredth may share.
    pub(crate) nine_p99_ms: f64,
    /// Requests that the hundredth answered with 204.
    pub(crate) taken: u64,
}

impl Arrived {
    /// A healthy subscription got an event.
    pub(crate) fn note(&mut self, subscription: usize, body: &[u8]) {
        let sent = sent_ns(body).expect("an event says when it was sent");
        let at = u64::try_from(now().as_nanos()).unwrap_or(u64::MAX);
        let took = at.saturating_sub(sent);
        self.distinct.insert((subscription, sent));
        self.took_ns.push(took);
        if subscription.is_multiple_of(LINKS) {
            self.nine_took_ns.push(took);
        }
    }

    /// The hundredth took one.
    pub(crate) fn take(&mut self) {
        self.taken += 1;
    }

    pub(crate) fn seen(&mut self) -> Seen {
        self.took_ns.sort_unstable();
        self.nine_took_ns.sort_unstable();
        Seen {
            arrived: self.took_ns.len(),
            distinct: self.distinct.len(),
            took_ms: [0.5, 0.99, 1.0].map(|share| ms(&self.took_ns, share)),
            nine_p99_ms: ms(&self.nine_took_ns, 0.99),
            taken: self.taken,
        }
    }
}

fn sent_ns(body: &[u8]) -> Option<u64> {
    let begin = find(body, SENT)? + SENT.len();
    std::str::from_utf8(body.get(begin..begin + SENT_DIGITS)?)
        .ok()?
        .parse()
        .ok()
}

/// A percentile of sorted values (nearest rank), in milliseconds; 0 of none.
fn ms(sorted_ns: &[u64], share: f64) -> f64 {
    let rank = ((sorted_ns.len() as f64 * share).ceil() as usize).max(1) - 1;
    sorted_ns.get(rank).map_or(0.0, |ns| *ns as f64 / 1e6)
}
