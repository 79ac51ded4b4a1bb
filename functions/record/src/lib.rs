#![doc = include_str!("../README.md")]

mod end;
mod error;
mod handle;
mod merge;
mod receive;
mod record;
#[cfg(test)]
mod tests;
mod work;
mod write;

pub use crate::end::Ended;
pub use crate::error::RecordError;
pub use crate::merge::MergeReport;
pub use crate::record::{Record, RecordPorts, RecordSettings};
