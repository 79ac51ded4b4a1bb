#![doc = include_str!("../README.md")]

pub mod embedded;
pub mod files;
mod identity;
pub mod private;
pub mod probe;

pub use embedded::{
    CheckReport, CopyCounts, ENGINE_FILE, EmbeddedStore, LocalOptions, LocalQueue, OpenError,
    OpenStoreFiles, OpeningReport, PlacedFile, RebuildError, SHARING_DELAY, Snapshot,
    SnapshotError, StateStore, WaitingCalls, check_folder, make_folder, rebuild_database,
};
pub use files::{FileStore, HeldFiles};
pub use identity::DisplacedPath;
pub use probe::LocalProbe;
