//! Damage on the disk: a panic of the engine becomes an error, and a message whose bytes were
//! altered is kept apart.

use std::any::Any;

use bytes::Bytes;
use posthaste_core::model::{CarriedEvents, Timestamp};
use posthaste_ports::QueueName;
use posthaste_ports::caught::catch_expected_panic;

use super::failure::EngineError;
use super::index::ArrivingMessage;
use super::queue_state::QueueState;
use super::record::number_of;

/// The text in front of a damaged record that is kept. No message begins with it, so no function
/// takes the record for a message.
const NOTE: &str =
    "posthaste: this message was damaged on disk and not sent; its record follows byte for byte\n";

/// Runs work on the engine's file, and turns a panic into an error: in places the engine panics on
/// a damaged page.
pub(super) fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    catch_expected_panic(work).unwrap_or_else(|panic| Err(EngineError::Panicked(text_of(&*panic))))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given")
        .to_owned()
}

/// Moves a damaged message to the redrive queue: it is kept as it is instead of being sent.
pub(super) fn set_aside(queues: &[QueueState], sequence: u64, now: Timestamp) {
    tracing::error!(
        sequence,
        "a message is damaged on disk: it is not sent but kept as a dead letter"
    );
    let redrive = usize::from(number_of(QueueName::Redrive));
    let arrived = ArrivingMessage {
        sequence,
        group: "",
        due: Timestamp::EPOCH,
        bytes: 0,
        carried: CarriedEvents::default(),
    };
    queues[redrive].index.lock().insert(arrived, now);
    queues[redrive].changed.notify_one();
}

/// A damaged record as the body of a message that no function can mistake for one of its own.
pub(super) fn body_with_note(record: &[u8]) -> Bytes {
    [NOTE.as_bytes(), record].concat().into()
}
