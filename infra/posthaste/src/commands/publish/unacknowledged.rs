//! The batches of a run that are not acknowledged yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::batches::EventBatch;

/// Batches by the number of their first event.
#[derive(Debug, Default)]
pub(super) struct UnacknowledgedBatches(BTreeMap<u64, BatchTask>);

/// A batch, and how far it is.
#[derive(Debug)]
pub(super) struct BatchTask {
    pub(super) batch: Arc<EventBatch>,
    pub(super) attempts: u32,
    pub(super) state: BatchState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchState {
    Waiting { not_before: Duration },
    InFlight { since: Duration },
}

impl UnacknowledgedBatches {
    /// Adds a batch that may be sent at once.
    pub(super) fn add_batch(&mut self, batch: EventBatch) {
        let state = BatchState::Waiting {
            not_before: Duration::ZERO,
        };
        self.0.insert(
            batch.first,
            BatchTask {
                batch: Arc::new(batch),
                attempts: 0,
                state,
            },
        );
    }

    pub(super) fn get_mut(&mut self, first: u64) -> Option<&mut BatchTask> {
        self.0.get_mut(&first)
    }

    pub(super) fn remove(&mut self, first: u64) {
        self.0.remove(&first);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first event of all.
    pub(super) fn first_event(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }

    /// Number of requests on their way.
    pub(super) fn in_flight(&self) -> usize {
        self.0
            .values()
            .filter(|task| matches!(task.state, BatchState::InFlight { .. }))
            .count()
    }

    /// True if any batch was never sent.
    pub(super) fn has_fresh(&self) -> bool {
        self.0.values().any(|task| task.attempts == 0)
    }

    /// True if no batch was ever sent.
    pub(super) fn is_all_fresh(&self) -> bool {
        self.0.values().all(|task| task.attempts == 0)
    }

    /// Batches that are not on their way, each with its earliest time.
    pub(super) fn waiting_batches(&self) -> impl Iterator<Item = (u64, Duration)> {
        self.0.iter().filter_map(|(first, task)| match task.state {
            BatchState::Waiting { not_before } => Some((*first, not_before)),
            BatchState::InFlight { .. } => None,
        })
    }
}
