#![doc = include_str!("../README.md")]

pub mod embedded;
pub mod files;
pub mod private;
pub mod probe;

pub use embedded::{
    CheckReport, Gauges, Local, LocalOptions, LocalQueue, OpenError, StateStore, check,
};
pub use files::FileStore;
pub use probe::LocalProbe;
