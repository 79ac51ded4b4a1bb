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
pub use manifest::{Manifest, Part};
pub use receive::receive;
pub use restore::restore;
pub use restored::Restored;
pub use send::{SendError, Source, send};
pub use wire::report_failure;
