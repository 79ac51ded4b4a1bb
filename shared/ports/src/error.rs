//! Errors of ports, told apart by what a caller can do about them.

use std::error::Error;
use std::time::Duration;

/// The kind of failure that a port met, by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The thing that was named is not there: a queue, a bucket, a stale receipt handle.
    NotFound,
    /// A conditional put lost: another writer was first.
    PreconditionFailed,
    /// The other side asks for less; try again, not before `retry_after` if it said so.
    Throttled {
        /// The wait that the other side asked for, if it did.
        retry_after: Option<Duration>,
    },
    /// No answer in time: the operation may or may not have happened.
    TimedOut,
    /// Not allowed.
    Denied,
    /// The request breaks a limit of the port and was refused whole; trying again cannot help.
    Invalid,
    /// No room left on the device; nothing was written.
    Full,
    /// The stored bytes are not those that were written. A retry does not help; deleting or
    /// restoring does.
    Damaged,
    /// Everything else; a retry may help.
    Other,
}

/// A port's failure: what was being done, its kind, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("failed to {doing}: {kind:?}")]
pub struct PortError {
    /// The operation, as it fits "failed to …".
    pub doing: &'static str,
    /// The kind of failure.
    pub kind: ErrorKind,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PortError {
    /// A failure without a deeper cause.
    pub fn new(doing: &'static str, kind: ErrorKind) -> Self {
        Self {
            doing,
            kind,
            source: None,
        }
    }

    /// A failure with its cause.
    pub fn with_cause(
        doing: &'static str,
        kind: ErrorKind,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            doing,
            kind,
            source: Some(source.into()),
        }
    }
}
