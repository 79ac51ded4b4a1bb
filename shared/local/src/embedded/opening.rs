//! The report of an opening: the traces that the process before left in the data folder.

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::QueueName;

use super::engine::{MessageLookup, StoreEngine};
use super::failure::EngineError;
use super::record::RecordHeader;

/// The contents of a data folder at its opening.
#[derive(Debug, Default)]
pub struct OpeningReport {
    /// The last time at which something was written that is still there. `None` for a new folder.
    pub written_until: Option<Timestamp>,
    /// The number of deliveries that were due. The deliveries that the process before worked on are
    /// among them.
    pub due_deliveries: u64,
    /// The numbers of the first of them.
    first_due: Vec<u64>,
}

impl OpeningReport {
    /// Notes a message. Of deliveries that were due by `now`, the first are known by number.
    pub(super) fn note_message(
        &mut self,
        sequence: u64,
        header: &RecordHeader<'_>,
        now: Timestamp,
        known_max: usize,
    ) {
        self.written_until = self.written_until.max(Some(header.sent_at));
        if header.queue != QueueName::Deliveries || header.due > now {
            return;
        }
        self.due_deliveries += 1;
        if self.first_due.len() < known_max {
            self.first_due.push(sequence);
        }
    }

    /// The sum of `count` over the bodies of the deliveries that are known by number. One that is
    /// damaged or gone is left out. They are read one by one: together they may take all memory.
    pub(super) fn sum_over_due(
        &self,
        engine: &StoreEngine,
        count: impl Fn(&Bytes) -> u64,
    ) -> Result<u64, EngineError> {
        let mut sum = 0_u64;
        for sequence in &self.first_due {
            for found in engine.read_contents(&[*sequence])? {
                if let MessageLookup::Whole(content) = found {
                    sum = sum.saturating_add(count(&content.body));
                }
            }
        }
        Ok(sum)
    }
}
