//! The tries that records are about, counted as batches of them are written.

use std::error::Error;
use std::time::Duration;

use posthaste_core::delivery_log::LogRecord;
use posthaste_ports::{Clock, MessageId, Ports};
use posthaste_services::{BOOK_MAX_AGE, HealthError};

use crate::deadlines::in_time;
use crate::error::LogFilesError;
use crate::health::{HealthPorts, TriesByKey};

/// The longest time for reading or writing the book: the records themselves go first.
const BOOK_TIME: Duration = Duration::from_secs(3);

/// Counts tries.
pub(crate) struct TryCounter<P: Ports> {
    /// `None` embedded: there deliver sees each try.
    pub(crate) health: Option<HealthPorts<P>>,
    pub(crate) clock: P::Clock,
}

impl<P: Ports> TryCounter<P> {
    /// Learns which subscriptions fail, if that was some time ago.
    pub(crate) async fn know_health(&self, deadline: Duration) {
        let Some(health) = &self.health else {
            return;
        };
        let deadline = self.book_time(deadline);
        let known = health.arrivals.refresh_if_older(BOOK_MAX_AGE);
        log_health(in_time(&self.clock, deadline, async { Ok(known.await) }).await);
    }

    /// The tries of records that are about to be written.
    pub(crate) fn tries_by_key(&self, records: &[LogRecord]) -> TriesByKey {
        let health = self.health.as_ref();
        health
            .map(|health| health.tries_by_key(records))
            .unwrap_or_default()
    }

    /// Adds the tries of a batch to the book. If that fails, the next batch adds them. A batch that
    /// comes again, because its end was cut off, counts once.
    pub(crate) async fn add_tries(
        &self,
        tries: impl DoubleEndedIterator<Item = TriesByKey>,
        messages: &[MessageId],
        deadline: Duration,
    ) {
        let Some(health) = &self.health else {
            return;
        };
        tries.for_each(|tries| health.arrivals.gather_tries(tries));
        let first = messages.iter().map(|id| &*id.0).min();
        let run = format!("{}.{}", first.unwrap_or_default(), messages.len());
        let add = async {
            let is_changed = health.arrivals.write_gathered(&run).await;
            if matches!(is_changed, Ok(true)) {
                health.wake.signal_if_due().await;
            }
            Ok(is_changed.map(drop))
        };
        let deadline = self.book_time(deadline);
        log_health(in_time(&self.clock, deadline, add).await);
    }

    fn book_time(&self, deadline: Duration) -> Duration {
        deadline.min(self.clock.monotonic() + BOOK_TIME)
    }
}

fn log_health(ended: Result<Result<(), HealthError>, LogFilesError>) {
    let error: Box<dyn Error> = match ended {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.into(),
        Err(error) => error.into(),
    };
    tracing::warn!(
        error = &*error,
        "tries not counted yet, what is known of failing subscriptions is older"
    );
}
