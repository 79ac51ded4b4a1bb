#![doc = include_str!("../README.md")]

pub mod embedded;
pub mod files;
mod identity;
pub mod private;
pub mod probe;

pub use embedded::{
    CheckReport, Copied, ENGINE_FILE, Gauges, Local, LocalOptions, LocalQueue, OpenError, Opening,
    Place, PlacedFile, RebuildError, Snapshot, SnapshotError, StateStore, check, make_folder,
    rebuild,
};
pub use files::{FileStore, Held};
pub use identity::Displaced;
pub use probe::LocalProbe;
