//! Letters: messages that were understood.

use bytes::Bytes;
use posthaste_core::model::DeadLetter;
use posthaste_core::stored::resolved_message::ResolvedLetter;
use posthaste_ports::ReceivedMessage;

/// A message that was understood.
#[derive(Debug)]
pub(crate) struct ReceivedLetter {
    pub(crate) message: ReceivedMessage,
    pub(crate) dead: DeadLetter,
    /// Letters that its events were made of and that need nothing more, but could not be resolved
    /// yet: the message is replaced by one that names them.
    pub(crate) unresolved: Vec<ResolvedLetter>,
}

/// A letter with its events' payloads.
#[derive(Debug)]
pub(crate) struct LoadedLetter {
    pub(crate) letter: ReceivedLetter,
    pub(crate) payloads: Vec<Bytes>,
}
