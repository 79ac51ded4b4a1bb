//! From messages to records, before anything is written.

use std::collections::BTreeMap;
use std::mem::take;

use posthaste_core::delivery_log::{
    LogHour, LogRecord, count_records, parse_records, without_duplicates,
};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::FormatError;
use posthaste_ports::{MessageId, ReceivedMessage};
use posthaste_services::catch_panic::{CaughtPanic, catch_panic_now};

use crate::waiting::{ChangesByMessage, changes};

/// A batch, sorted.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Records, by the hour of their own time.
    pub(crate) hours: BTreeMap<LogHour, Gathered>,
    /// What the records of each message change of the numbers of what waits.
    pub(crate) waits: ChangesByMessage,
    /// Messages of a newer version of the program, and that version.
    pub(crate) newer: Vec<(ReceivedMessage, u32)>,
    /// Messages that cannot be read.
    pub(crate) malformed: Vec<Malformed>,
}

/// Records of one hour, each once, and the messages that they came in.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) records: Vec<LogRecord>,
    pub(crate) messages: Vec<MessageId>,
}

/// A message that cannot be read.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) id: MessageId,
    /// Its records, as far as can be seen: at least one.
    pub(crate) records: usize,
    pub(crate) error: Unreadable,
}

/// Why a message cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("failed to understand it")]
    Format(#[source] FormatError),
    #[error("failed in the middle of it")]
    Panicked(#[source] CaughtPanic),
}

/// Reads a batch. Each message is read by itself.
pub(crate) fn receive(batch: Vec<ReceivedMessage>) -> Received {
    let mut received = Received::default();
    let mut read = Vec::with_capacity(batch.len());
    for message in batch {
        match catch_panic_now(|| parse_records(&message.body)) {
            Ok(Ok(records)) => {
                let waits = changes(&message.body, &records);
                received
                    .waits
                    .extend(waits.map(|waits| (message.id.0.clone(), waits)));
                read.push((message.id, records));
            }
            Ok(Err(FormatError::Newer(version))) => received.newer.push((message, version)),
            Ok(Err(error)) => received.put_aside(message, Unreadable::Format(error)),
            Err(panicked) => received.put_aside(message, Unreadable::Panicked(panicked)),
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
        let gathered = Gathered {
            records: Vec::with_capacity(count),
            messages: Vec::new(),
        };
        received.hours.insert(hour, gathered);
    }
    for (message, records) in read {
        received.gather(&message, records);
    }
    for gathered in received.hours.values_mut() {
        gathered.records = without_duplicates(take(&mut gathered.records));
    }
    received
}

impl Gathered {
    /// The time of the oldest record.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.records.iter().map(|record| record.time).min()
    }
}

impl Received {
    fn gather(&mut self, message: &MessageId, records: Vec<LogRecord>) {
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

    fn put_aside(&mut self, message: ReceivedMessage, error: Unreadable) {
        let records = count_records(&message.body).max(1);
        self.malformed.push(Malformed {
            id: message.id,
            records,
            error,
        });
    }
}
