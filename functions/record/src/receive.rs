//! From messages to records, before anything is written.

use std::collections::BTreeMap;
use std::mem::take;

use posthaste_core::delivery_log::{
    LogHour, LogRecord, count_records, parse_records, without_duplicates,
};
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_ports::{MessageId, ReceivedMessage};
use posthaste_services::catch_panic::{CaughtPanic, catch_panic_now};

use crate::waiting::{ChangesByMessage, wait_changes};

/// A batch, sorted.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRecords {
    /// Records, by the hour of their own time.
    pub(crate) hours: BTreeMap<LogHour, HourRecords>,
    /// The changes that the records of each message make to the numbers of what waits.
    pub(crate) waits: ChangesByMessage,
    /// Messages of a newer version of the program, and that version.
    pub(crate) newer: Vec<(ReceivedMessage, u32)>,
    /// Messages that cannot be read.
    pub(crate) malformed: Vec<MalformedMessage>,
}

/// Records of one hour, each once, and the messages that they came in.
#[derive(Debug, Default)]
pub(crate) struct HourRecords {
    pub(crate) records: Vec<LogRecord>,
    pub(crate) messages: Vec<MessageId>,
}

/// A message that cannot be read.
#[derive(Debug)]
pub(crate) struct MalformedMessage {
    pub(crate) id: MessageId,
    /// The number of its records, as far as can be seen: at least one.
    pub(crate) records: usize,
    pub(crate) error: UnreadableReason,
}

/// Why a message cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnreadableReason {
    #[error("failed to understand it")]
    Format(#[source] FormatError),
    #[error("failed in the middle of it")]
    Panicked(#[source] CaughtPanic),
}

/// Reads a batch. Each message is read by itself.
pub(crate) fn receive_batch(batch: Vec<ReceivedMessage>) -> ReceivedRecords {
    let mut received = ReceivedRecords::default();
    let mut read = Vec::with_capacity(batch.len());
    for message in batch {
        match catch_panic_now(|| parse_records(&message.body)) {
            Ok(Ok(records)) => {
                let waits = wait_changes(&message.body, &records);
                received
                    .waits
                    .extend(waits.map(|waits| (message.id.0.clone(), waits)));
                read.push((message.id, records));
            }
            Ok(Err(FormatError::Newer(version))) => received.newer.push((message, version)),
            Ok(Err(error)) => received.add_malformed(message, UnreadableReason::Format(error)),
            Err(panicked) => received.add_malformed(message, UnreadableReason::Panicked(panicked)),
        }
    }
    let hours = read
        .iter()
        .flat_map(|(_, records)| records)
        .map(|record| LogHour::containing(record.time));
    let counts = hours.fold(BTreeMap::new(), |mut counts, hour| {
        *counts.entry(hour).or_default() += 1;
        counts
    });
    for (hour, count) in counts {
        let gathered = HourRecords {
            records: Vec::with_capacity(count),
            messages: Vec::new(),
        };
        received.hours.insert(hour, gathered);
    }
    for (message, records) in read {
        received.add_records(&message, records);
    }
    for gathered in received.hours.values_mut() {
        gathered.records = without_duplicates(take(&mut gathered.records));
    }
    received
}

impl HourRecords {
    /// The time of the oldest record.
    pub(crate) fn oldest_time(&self) -> Option<Timestamp> {
        self.records.iter().map(|record| record.time).min()
    }
}

impl ReceivedRecords {
    fn add_records(&mut self, message: &MessageId, records: Vec<LogRecord>) {
        for record in records {
            let gathered = self
                .hours
                .entry(LogHour::containing(record.time))
                .or_default();
            gathered.records.push(record);
            if gathered.messages.last() != Some(message) {
                gathered.messages.push(message.clone());
            }
        }
    }

    fn add_malformed(&mut self, message: ReceivedMessage, error: UnreadableReason) {
        let records = count_records(&message.body).max(1);
        self.malformed.push(MalformedMessage {
            id: message.id,
            records,
            error,
        });
    }
}
