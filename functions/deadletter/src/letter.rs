//! Letters: messages that were understood.

use bytes::Bytes;
use posthaste_core::model::DeadLetter;
use posthaste_ports::ReceivedMessage;

/// A message that was understood.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) message: ReceivedMessage,
    pub(crate) dead: DeadLetter,
}

/// A letter with its events' payloads.
#[derive(Debug)]
pub(crate) struct LoadedLetter {
    pub(crate) letter: Letter,
    pub(crate) payloads: Vec<Bytes>,
}
