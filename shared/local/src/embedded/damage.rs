//! Damage on the disk: a panic of the engine becomes an error, and a message whose bytes were altered is kept
//! apart.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::QueueName;

use super::failure::EngineError;
use super::queue_state::QueueState;
use super::record::number_of;

/// Stands before a damaged record where it is kept. No message begins so, so nothing takes it for one.
const NOTE: &str =
    "posthaste: this message was damaged on disk and not sent; its record follows byte for byte\n";

/// Runs what reads or writes the engine's file. In places the engine panics on a damaged page.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(EngineError::Panicked(text_of(&*panic))))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given").to_owned()
}

/// Puts a damaged message where it is kept as it is, instead of where it would be sent from.
pub(super) fn set_aside(queues: &[QueueState; 3], sequence: u64, now: Timestamp) {
    tracing::error!(sequence, "a message is damaged on disk: it is not sent but kept as a dead letter");
    let redrive = usize::from(number_of(QueueName::Redrive));
    queues[redrive].lock().insert(sequence, "", Timestamp::EPOCH, now);
    queues[redrive].changed.notify_one();
}

/// A damaged record as the body of a message that no function can mistake for one of its own.
pub(super) fn kept(record: &[u8]) -> Bytes {
    [NOTE.as_bytes(), record].concat().into()
}
