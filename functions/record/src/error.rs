//! Errors of record.

use std::io;

use posthaste_delivery_log::LogError;
use posthaste_ports::PortError;
use posthaste_services::catch_panic::CaughtPanic;

/// Why files of the log were not written, merged or deleted.
#[derive(Debug, thiserror::Error)]
pub enum LogFilesError {
    /// The lease could not be read or written.
    #[error("failed to take the lease")]
    Lease(#[source] PortError),
    /// The store of the log failed.
    #[error("failed to read or change the delivery log")]
    Store(#[source] PortError),
    /// A file could not be made or understood.
    #[error("failed to make or understand a file")]
    Log(#[source] LogError),
    /// A file in progress could not be written or read.
    #[error("failed to use the work folder")]
    WorkFolder(#[source] io::Error),
    /// A file was deleted in the meantime.
    #[error("failed to find {0}")]
    Gone(String),
    /// The work panicked.
    #[error("failed in the middle")]
    Panicked(#[source] CaughtPanic),
    /// There was no time left.
    #[error("failed to end in time")]
    OutOfTime,
}
