//! The report of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::trouble::Trouble;

/// The counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) published: usize,
    pub(crate) acknowledged: usize,
    pub(crate) refused: usize,
    pub(crate) unknown: usize,
    pub(crate) requests_of_events: usize,
    pub(crate) delivered: usize,
    pub(crate) dead_letters: usize,
    /// Dead letters of events that no receiver refuses for what they are.
    pub(crate) given_up: usize,
    /// Events that have arrived and are dead letters as well.
    pub(crate) also_dead: usize,
    /// Second arrivals without a known reason.
    pub(crate) unexplained: usize,
    /// Second arrivals, by their reason.
    pub(crate) again: BTreeMap<String, usize>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Report {
    pub(crate) seed: u64,
    pub(crate) length: Duration,
    pub(crate) counts: Counts,
    pub(crate) troubles: BTreeMap<Trouble, usize>,
    /// Events that the delivery log was asked for and knew.
    pub(crate) known_to_the_log: usize,
    /// The time until everything had its end, from when everything was well again.
    pub(crate) rested_after: Duration,
    pub(crate) faults: Vec<String>,
}

impl Report {
    /// The faults; none if all holds.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            published,
            acknowledged,
            refused,
            unknown,
            requests_of_events,
            delivered,
            dead_letters,
            given_up,
            also_dead,
            unexplained,
            again,
        } = &self.counts;
        writeln!(f, "seed {}, {} s", self.seed, self.length.as_secs())?;
        writeln!(
            f,
            "{published} events published: {acknowledged} accepted, {refused} refused, {unknown} without an answer"
        )?;
        writeln!(
            f,
            "{requests_of_events} times an event was in a request: {delivered} deliveries, {dead_letters} dead \
             letters ({given_up} of events that receivers take, {also_dead} of events that arrived as well)"
        )?;
        writeln!(
            f,
            "arrived again, by the reason: {again:?}, and {unexplained} without one"
        )?;
        writeln!(
            f,
            "known to the delivery log of those asked for: {}",
            self.known_to_the_log
        )?;
        writeln!(
            f,
            "everything at rest after {:.1} s",
            self.rested_after.as_secs_f64()
        )?;
        for (trouble, times) in &self.troubles {
            writeln!(f, "{times:>6} × {trouble}")?;
        }
        if self.faults.is_empty() {
            return writeln!(f, "the ledger balances");
        }
        for fault in &self.faults {
            writeln!(f, "FAULT {fault}")?;
        }
        Ok(())
    }
}
