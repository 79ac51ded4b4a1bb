//! Reads that are under way. Whoever needs the same topic meanwhile waits for the one read and takes what it found, an
//! error too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use super::Found;

type Flight = Arc<OnceCell<Found>>;

/// The reads under way, by key. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<String, Flight>>>);

/// One who waits for a read. The last one to leave, or the first after the read has ended, clears it away.
struct Waiting<'a> {
    flights: &'a Flights,
    key: &'a str,
    flight: Flight,
}

impl Flights {
    /// What a read finds: this one, or the one that is under way. A reader that is dropped in the middle, or panics,
    /// leaves its read to the next who waits.
    pub(super) async fn share<F: Future<Output = Found> + Send>(
        &self,
        key: &str,
        read: impl FnOnce() -> F + Send,
    ) -> Found {
        let flight = Arc::clone(self.lock().entry(key.to_owned()).or_default());
        let waiting = Waiting { flights: self, key, flight };
        waiting.flight.get_or_init(read).await.clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        let is_ours = flights.get(self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight));
        // One count is the map's and one is ours.
        let is_last = Arc::strong_count(&self.flight) <= 2;
        if is_ours && (is_last || self.flight.initialized()) {
            flights.remove(self.key);
        }
    }
}

#[cfg(test)]
impl Flights {
    /// How many reads are under way.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }
}
