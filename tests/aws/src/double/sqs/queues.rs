//! All queues: found by their URLs, and the redrive from one to another.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_ports::Clock;

use super::error::Error;
use super::queue::{Queue, Redrive, Stored};

/// All queues, by name.
#[derive(Debug, Default)]
pub(crate) struct Queues(BTreeMap<String, Queue>);

impl Queues {
    pub(crate) fn make(&mut self, name: &str, url: &str, redrive: Option<Redrive>) {
        self.0
            .insert(name.to_owned(), Queue::new(name, url, redrive));
    }

    pub(crate) fn bodies(&self, name: &str) -> Vec<String> {
        self.0.get(name).map(Queue::bodies).unwrap_or_default()
    }

    pub(crate) fn limit_in_flight(&mut self, name: &str, max: usize) {
        self.0
            .get_mut(name)
            .expect("the test made the queue")
            .in_flight_max = max;
    }

    pub(crate) fn show_copies(&mut self, name: &str, clock: &impl Clock) {
        self.0
            .get_mut(name)
            .expect("the test made the queue")
            .show_copies(clock);
    }

    /// The queue of a URL, which must be exactly the one the double gave.
    pub(super) fn named(&mut self, url: &str) -> Result<&mut Queue, Error> {
        let name = url.rsplit('/').next().unwrap_or_default();
        let queue = self.0.get_mut(name).filter(|queue| queue.url == url);
        queue.ok_or_else(Error::no_such_queue)
    }

    /// Takes at most `max` messages, after moving away those received too often.
    pub(super) fn receive(
        &mut self,
        url: &str,
        max: usize,
        visibility: Duration,
        clock: &impl Clock,
    ) -> Result<Vec<(String, &Stored)>, Error> {
        let queue = self.named(url)?;
        let name = queue.name.clone();
        let to = queue.redrive.as_ref().map(|redrive| redrive.to.clone());
        let moved = queue.worn_out(clock);
        if let Some(to) = to {
            self.0
                .get_mut(&to)
                .expect("the test made the queue to move to")
                .adopt(moved, &name);
        }
        Ok(self.named(url)?.take(max, visibility, clock))
    }
}
