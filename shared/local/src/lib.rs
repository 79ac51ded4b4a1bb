#![doc = include_str!("../README.md")]

pub mod embedded;
pub mod files;
mod identity;
pub mod private;
pub mod probe;

pub use embedded::{
    CheckReport, Gauges, Local, LocalOptions, LocalQueue, OpenError, Opening, Place, PlacedFile,
    StateStore, check,
};
pub use files::FileStore;
pub use identity::Displaced;
pub use probe::LocalProbe;
