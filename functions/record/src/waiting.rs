//! The number of events that wait, by subscription, added up from the records of each message whose
//! records are all written.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::{LogRecord, WaitChanges};
use posthaste_ports::{Clock, MessageId, Ports};
use posthaste_services::{WaitingBook, WaitingBookError};

use crate::deadlines::in_time;
use crate::error::LogFilesError;
use crate::waiting_ports::WaitingPorts;

/// The longest time for writing the numbers: the records themselves go first.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// The longest time for a look at whether everything is at rest.
const LOOK_TIME: Duration = Duration::from_secs(15);

/// The changes of each message of a batch that has any.
pub(crate) type ChangesByMessage = BTreeMap<MessageIdText, WaitChanges>;

/// A message's id.
type MessageIdText = Arc<str>;

/// The changes that the records of a message with this body make; none where nothing changes.
pub(crate) fn wait_changes(body: &[u8], records: &[LogRecord]) -> Option<WaitChanges> {
    let changes = WaitChanges::from_records(body, records.iter());
    (!changes.is_empty()).then_some(changes)
}

/// Counts what waits.
pub(crate) struct WaitingCounter<P: Ports> {
    /// `None` embedded: there the queue counts.
    pub(crate) waiting: Option<WaitingPorts<P>>,
    /// The queue of records, which is to be empty too when everything is at rest.
    pub(crate) records: Arc<P::Queue>,
    pub(crate) clock: P::Clock,
}

impl<P: Ports> WaitingCounter<P> {
    /// Adds up what the records of a batch say. A message whose records are not all written comes
    /// again, or waits in a fresh message: it is counted then. If the numbers cannot be written, the
    /// next batch or look writes them.
    pub(crate) async fn add_waiting(
        &self,
        changes: ChangesByMessage,
        refused: &[MessageId],
        deadline: Duration,
    ) {
        let Some(waiting) = &self.waiting else {
            return;
        };
        let refused: HashSet<_> = refused.iter().map(|id| &id.0).collect();
        let deadline = deadline.min(self.clock.monotonic() + WRITE_TIME);
        let mut is_failing = false;
        for (message, changes) in changes {
            if refused.contains(&message) {
                continue;
            }
            if waiting.book.gather_changes(changes) && !is_failing {
                is_failing = !self.write_waiting(&waiting.book, deadline).await;
            }
        }
        if !is_failing {
            self.write_waiting(&waiting.book, deadline).await;
        }
    }

    /// Writes the numbers; whether that succeeded.
    async fn write_waiting(
        &self,
        book: &WaitingBook<P::Store, P::Clock>,
        deadline: Duration,
    ) -> bool {
        let write = async { Ok(book.write_gathered().await) };
        let written = Box::pin(in_time(&self.clock, deadline, write)).await;
        let is_written = matches!(written, Ok(Ok(())));
        log_waiting(written);
        is_written
    }

    /// Writes what could not be written before, looks whether everything is at rest, and sets the
    /// numbers right if it is.
    pub(crate) async fn look_at_waiting(&self, deadline: Duration) {
        let Some(waiting) = &self.waiting else {
            return;
        };
        let deadline = deadline.min(self.clock.monotonic() + LOOK_TIME);
        if !self.write_waiting(&waiting.book, deadline).await {
            return;
        }
        let Some(deliveries) = &waiting.deliveries else {
            return;
        };
        let others: Vec<_> = waiting.others.iter().chain([&*self.records]).collect();
        let look = async { Ok(waiting.book.compare_if_due(deliveries, &others).await) };
        log_waiting(Box::pin(in_time(&self.clock, deadline, look)).await);
    }
}

fn log_waiting(ended: Result<Result<(), WaitingBookError>, LogFilesError>) {
    let error: Box<dyn Error> = match ended {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.into(),
        Err(error) => error.into(),
    };
    tracing::warn!(
        error = &*error,
        "what waits not counted yet, its numbers are older"
    );
}
