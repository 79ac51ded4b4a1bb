//! Backups: a data folder as it was at one moment, sent as a stream, kept in a folder, and put
//! back.

mod error;
mod fresh;
mod manifest;
pub mod parts;
mod receive;
mod restore;
mod restored;
mod send;
mod sums;
mod wire;

pub use error::{BackupError, FolderError};
pub use fresh::check_empty;
pub use manifest::{BackupManifest, BackupPart};
pub use receive::receive_backup;
pub use restore::restore_backup;
pub use restored::RestoreNote;
pub use send::{BackupSource, SendError, send_backup};
pub use wire::report_failure;
