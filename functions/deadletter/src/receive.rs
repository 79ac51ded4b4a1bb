//! From messages to work, before anything is loaded or written for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::delivery_log::parse_records;
use posthaste_core::model::{DeadLetter, DeadLetterReason, FormatError};
use posthaste_core::stored::dead_letter_message::parse_dead_letter;
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::layout;
use posthaste_core::stored::resolved_message::{ResolvedLetter, parse_resolved};
use posthaste_ports::{MessageId, QueueName, ReceivedMessage};
use posthaste_services::catch_panic::{CaughtPanic, catch_panic_now};

use crate::gather::group_by_object;
use crate::letter::ReceivedLetter;

/// A part of a batch that is handled by itself.
#[derive(Debug)]
pub(crate) enum BatchWork {
    /// Letters of one subscription that lie in one object.
    Object(Vec<ReceivedLetter>),
    /// A message that cannot be read, kept byte for byte.
    Raw(ReceivedMessage),
    /// A message of the delivery log's records that could not be written.
    Records(LostRecords),
    /// Messages that say which letters need nothing more.
    Resolved(Vec<ResolvedMessage>),
    /// A message of a newer version of the program.
    Newer(ReceivedMessage, u32),
}

/// Records of the delivery log that record failed to write, too often.
#[derive(Debug)]
pub(crate) struct LostRecords {
    pub(crate) message: ReceivedMessage,
    /// The number of records of each topic.
    pub(crate) topics: BTreeMap<String, usize>,
}

/// A message that says which letters were delivered again, or failed again.
#[derive(Debug)]
pub(crate) struct ResolvedMessage {
    pub(crate) message: ReceivedMessage,
    pub(crate) letters: Vec<ResolvedLetter>,
}

/// A batch, sorted into work.
#[derive(Debug, Default)]
pub(crate) struct SortedBatch {
    /// The work received most often is first, so that work for which an earlier invocation had no
    /// time is not skipped again.
    pub(crate) work: Vec<BatchWork>,
    /// Messages that come again.
    pub(crate) failures: Vec<MessageId>,
}

impl BatchWork {
    /// The messages of the work.
    pub(crate) fn message_ids(&self) -> Vec<MessageId> {
        match self {
            Self::Object(letters) => letters
                .iter()
                .map(|letter| letter.message.id.clone())
                .collect(),
            Self::Resolved(messages) => messages.iter().map(|it| it.message.id.clone()).collect(),
            Self::Raw(message)
            | Self::Records(LostRecords { message, .. })
            | Self::Newer(message, _) => {
                vec![message.id.clone()]
            }
        }
    }

    fn receive_count(&self) -> u32 {
        match self {
            Self::Object(letters) => letters
                .first()
                .map_or(0, |letter| letter.message.receive_count),
            Self::Resolved(messages) => messages.first().map_or(0, |it| it.message.receive_count),
            Self::Raw(message)
            | Self::Records(LostRecords { message, .. })
            | Self::Newer(message, _) => message.receive_count,
        }
    }
}

/// Sorts a batch into work.
pub(crate) fn sort_batch(source: QueueName, mut batch: Vec<ReceivedMessage>) -> SortedBatch {
    batch.sort_by_key(|message| Reverse(message.receive_count));
    let mut sorted = SortedBatch::default();
    let mut letters: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut resolved = Vec::new();
    for message in batch {
        match catch_panic_now(|| parse_message(source, &message.body)) {
            Ok(Ok(ParsedMessage::Letter(dead))) => {
                let place =
                    layout::dead_letters_of(&dead.delivery.topic, &dead.delivery.subscription);
                letters
                    .entry((place, dead.object.clone(), dead.dropped))
                    .or_default()
                    .push(ReceivedLetter {
                        message,
                        dead: *dead,
                        unresolved: Vec::new(),
                    });
            }
            Ok(Ok(ParsedMessage::Records(topics))) => {
                sorted
                    .work
                    .push(BatchWork::Records(LostRecords { message, topics }));
            }
            Ok(Ok(ParsedMessage::Resolved(letters))) => {
                resolved.push(ResolvedMessage { message, letters });
            }
            Ok(Err(FormatError::Newer(version))) => {
                sorted.work.push(BatchWork::Newer(message, version));
            }
            Ok(Err(FormatError::Malformed(..))) => sorted.work.push(BatchWork::Raw(message)),
            Err(CaughtPanic) if is_kept_after_panic(source, &message) => {
                sorted.work.push(BatchWork::Raw(message));
            }
            Err(CaughtPanic) => sorted.failures.push(message.id),
        }
    }
    sorted.work.extend(
        letters
            .into_values()
            .flat_map(group_by_object)
            .map(BatchWork::Object),
    );
    if !resolved.is_empty() {
        sorted.work.push(BatchWork::Resolved(resolved));
    }
    sorted
        .work
        .sort_by_key(|work| Reverse(work.receive_count()));
    sorted
}

/// A message that could be read.
#[derive(Debug)]
enum ParsedMessage {
    Letter(Box<DeadLetter>),
    /// The number of records of each topic.
    Records(BTreeMap<String, usize>),
    Resolved(Vec<ResolvedLetter>),
}

/// Reads a message. The redrive queue has messages of all other queues: a function failed on each
/// of them.
fn parse_message(source: QueueName, body: &Bytes) -> Result<ParsedMessage, FormatError> {
    let read = parse_dead_letter(body).map(|dead| ParsedMessage::Letter(Box::new(dead)));
    // It is of a version that no letter has.
    let read = read.or_else(|error| {
        parse_resolved(body)
            .map(ParsedMessage::Resolved)
            .map_err(|_| error)
    });
    match read {
        Err(FormatError::Malformed(..)) if source == QueueName::Redrive => read_redriven(body),
        read => read,
    }
}

fn read_redriven(body: &Bytes) -> Result<ParsedMessage, FormatError> {
    let delivery = match parse_delivery(body) {
        Err(error @ FormatError::Malformed(..)) => return read_records(body).ok_or(error),
        delivery => delivery?,
    };
    let reason = DeadLetterReason::HandlerFailed;
    let dead = DeadLetter::new(reason, delivery);
    Ok(ParsedMessage::Letter(Box::new(dead)))
}

/// The topics of a message of records, each with the number of its records.
fn read_records(body: &Bytes) -> Option<ParsedMessage> {
    let mut topics = BTreeMap::new();
    for record in parse_records(body).ok()? {
        *topics.entry(record.topic).or_default() += 1;
    }
    Some(ParsedMessage::Records(topics))
}

/// Tells whether a message that makes this function panic is kept as it is: in the redrive queue,
/// after which no queue comes. Other queues hand it on to that one.
pub(crate) fn is_kept_after_panic(source: QueueName, message: &ReceivedMessage) -> bool {
    tracing::error!(message_id = %message.id.0, queue = %source, "reading a dead letter panicked");
    source == QueueName::Redrive
}
