//! Why the engine could not do something or a data folder could not be opened, and what an operator
//! can do about it.

use std::io;
use std::path::{Path, PathBuf};

use posthaste_ports::ErrorKind;

use super::disk::ENGINE_FILE;
use super::tables::FORMAT_VERSION;

/// Why the engine could not do something.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    #[error("the engine failed")]
    Redb(#[source] Box<redb::Error>),
    #[error("the disk cannot be opened")]
    Disk(#[source] io::Error),
    #[error("the commit thread cannot be started")]
    Thread(#[source] io::Error),
    #[error("the store is closed")]
    Closed,
    #[error("a damaged page made the engine stop: {0}")]
    Panicked(String),
    #[error("of the {expected} rows of \"{table}\", {found} can be found")]
    Lost {
        table: &'static str,
        expected: u64,
        found: u64,
    },
    #[error("the row {row} of \"{table}\" is not where it should be")]
    Misplaced { table: &'static str, row: String },
    #[error("it is no store of posthaste: it has no \"{0}\"")]
    Foreign(&'static str),
    #[error("the object {0} is damaged on disk: its bytes are not those that were written")]
    Object(String),
    #[error(
        "the folder was written by a newer version (format {0}, this one knows {FORMAT_VERSION})"
    )]
    NewerFormat(u64),
}

impl EngineError {
    /// True if the file is damaged, as far as can be told. New messages have the largest numbers of
    /// all, so a key that is out of order is damage too.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Redb(error) => matches!(
                &**error,
                redb::Error::Corrupted(_)
                    | redb::Error::LockPoisoned(_)
                    | redb::Error::UnorderedKey
            ),
            Self::Panicked(_) | Self::Lost { .. } | Self::Misplaced { .. } => true,
            _ => false,
        }
    }

    /// Advice for an operator whose folder cannot be opened. Only if the file's own bytes are wrong
    /// does it say how to continue without them: an operator who follows it gives up what they
    /// held.
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::NewerFormat(_) => START_NEWER,
            Self::Thread(_) => {
                "raise the limit of processes and threads (ulimit -u, TasksMax of systemd, the container's \
                 limit of PIDs), then start again"
            }
            Self::Disk(io) => advice_on_io(io),
            Self::Redb(error) => match &**error {
                redb::Error::Io(io) => advice_on_io(io),
                redb::Error::DatabaseAlreadyOpen => {
                    "end the process that has it open, then start again"
                }
                // A file whose tables are not ours.
                redb::Error::TableTypeMismatch { .. }
                | redb::Error::TableIsMultimap(_)
                | redb::Error::TableDoesNotExist(_)
                | redb::Error::UpgradeRequired(_)
                | redb::Error::TypeDefinitionChanged { .. } => BEGIN_EMPTY,
                _ if self.is_damage() => BEGIN_EMPTY,
                _ => START_AGAIN,
            },
            Self::Foreign(_)
            | Self::Object(_)
            | Self::Panicked(_)
            | Self::Lost { .. }
            | Self::Misplaced { .. } => BEGIN_EMPTY,
            Self::Closed => START_AGAIN,
        }
    }

    pub(super) fn kind(&self) -> ErrorKind {
        let io = match self {
            Self::Redb(error) => match &**error {
                redb::Error::Io(io) => io.kind(),
                _ => return ErrorKind::Other,
            },
            Self::Disk(io) => io.kind(),
            Self::Object(_) => return ErrorKind::Damaged,
            _ => return ErrorKind::Other,
        };
        let is_full = matches!(
            io,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        );
        if is_full {
            ErrorKind::Full
        } else {
            ErrorKind::Other
        }
    }
}

const START_NEWER: &str = "start the version of posthaste that wrote it, or a newer one";

const START_AGAIN: &str = "see to the cause, then start again";

const BEGIN_EMPTY: &str = "it is damaged or was not written by posthaste; restore the data folder from a \
     backup, or move the file away to begin with an empty store (`posthaste check` says what can still be \
     read)";

/// Advice on an error of the system. Of some the file's own bytes are the cause.
fn advice_on_io(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => BEGIN_EMPTY,
        _ => "see to the disk, its permissions and the limits of the process, then start again",
    }
}

/// All error types of redb, one per operation, become one.
impl<E: Into<redb::Error>> From<E> for EngineError {
    fn from(error: E) -> Self {
        Self::Redb(Box::new(error.into()))
    }
}

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or its lock file cannot be made or opened.
    #[error("the data folder {path} cannot be used")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("the data folder {path} is open in another posthaste{}", in_process(*pid))]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The other process, where it could be read from the lock file.
        pid: Option<u32>,
    },
    /// The engine's file cannot be opened or read.
    #[error("the store {} cannot be opened and is left where it is: {advice}", file.display())]
    Engine {
        file: PathBuf,
        /// Advice for the operator.
        advice: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl OpenError {
    pub(super) fn for_folder(dir: &Path, source: io::Error) -> Self {
        Self::Folder {
            path: dir.to_owned(),
            source,
        }
    }

    pub(super) fn for_engine(dir: &Path, source: EngineError) -> Self {
        Self::Engine {
            file: dir.join(ENGINE_FILE),
            advice: source.advice(),
            source: Box::new(source),
        }
    }
}

fn in_process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redb(error: redb::Error) -> EngineError {
        EngineError::Redb(Box::new(error))
    }

    fn io(kind: io::ErrorKind) -> io::Error {
        kind.into()
    }

    /// An operator who follows the advice for a damaged file gives up its content.
    #[test]
    fn advice_gives_data_up_for_damage_alone() {
        let whole = [
            EngineError::Thread(io(io::ErrorKind::WouldBlock)),
            EngineError::Closed,
            EngineError::NewerFormat(99),
            EngineError::Disk(io(io::ErrorKind::PermissionDenied)),
            EngineError::Disk(io(io::ErrorKind::OutOfMemory)),
            EngineError::Disk(io(io::ErrorKind::StorageFull)),
            EngineError::Disk(io::Error::from_raw_os_error(24)),
            redb(redb::Error::Io(io(io::ErrorKind::ReadOnlyFilesystem))),
            redb(redb::Error::Io(io(io::ErrorKind::NotFound))),
            redb(redb::Error::DatabaseAlreadyOpen),
            redb(redb::Error::DatabaseClosed),
            redb(redb::Error::PreviousIo),
            redb(redb::Error::RepairAborted),
            redb(redb::Error::TransactionPoisoned),
            redb(redb::Error::Unsupported),
        ];
        for error in whole {
            assert!(!error.advice().contains("move the file"), "{error:?}");
            assert!(error.advice().contains("start"), "{error:?}");
        }
        let damaged = [
            EngineError::Panicked("an index".to_owned()),
            EngineError::Lost {
                table: "messages",
                expected: 2,
                found: 1,
            },
            EngineError::Misplaced {
                table: "messages",
                row: "1".to_owned(),
            },
            EngineError::Foreign("folder"),
            EngineError::Disk(io(io::ErrorKind::UnexpectedEof)),
            redb(redb::Error::Io(io(io::ErrorKind::InvalidData))),
            redb(redb::Error::Corrupted("a page".to_owned())),
            redb(redb::Error::UnorderedKey),
            redb(redb::Error::UpgradeRequired(1)),
            redb(redb::Error::TableDoesNotExist("messages".to_owned())),
        ];
        for error in damaged {
            assert!(error.advice().contains("move the file"), "{error:?}");
        }
    }
}
