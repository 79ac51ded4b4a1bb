//! Requests to a store that are under way. Callers that need the same at the same time wait for one
//! request and share its result, also an error. No lock is held meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

type FlightCell<T> = Arc<OnceCell<T>>;

/// The requests under way, by key. Clones share them.
#[derive(Debug, Clone)]
pub struct SingleFlight<T>(Arc<Mutex<HashMap<String, FlightCell<T>>>>);

/// A caller that waits for a request. The last one to leave, or the first after the request has
/// ended, removes it.
struct FlightWaiter<'a, T> {
    flights: &'a SingleFlight<T>,
    key: &'a str,
    flight: FlightCell<T>,
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> SingleFlight<T> {
    /// The result of this request, or of the one that is under way. If the one under way is dropped
    /// or panics, the next caller that waits makes its own.
    pub async fn run<F: Future<Output = T> + Send>(
        &self,
        key: &str,
        request: impl FnOnce() -> F + Send,
    ) -> T
    where
        T: Clone,
    {
        let flight = Arc::clone(self.0.lock().entry(key.to_owned()).or_default());
        let waiting = FlightWaiter {
            flights: self,
            key,
            flight,
        };
        waiting.flight.get_or_init(request).await.clone()
    }
}

impl<T> Drop for FlightWaiter<'_, T> {
    fn drop(&mut self) {
        let mut flights = self.flights.0.lock();
        let is_ours = flights
            .get(self.key)
            .is_some_and(|flight| Arc::ptr_eq(flight, &self.flight));
        // One count is the map's and one is ours.
        let is_last = Arc::strong_count(&self.flight) <= 2;
        if is_ours && (is_last || self.flight.initialized()) {
            flights.remove(self.key);
        }
    }
}

#[cfg(test)]
impl<T> SingleFlight<T> {
    /// The number of requests under way.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }
}
