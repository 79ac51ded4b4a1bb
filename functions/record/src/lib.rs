#![doc = include_str!("../README.md")]

mod aside;
mod busy;
mod deadlines;
mod end;
mod error;
mod handle;
mod health;
mod merge;
mod receive;
mod record;
mod refused;
mod requeue;
mod stop;
mod summarize;
mod summarized;
#[cfg(test)]
mod tests;
mod tries;
mod unwritten;
mod waiting;
mod waiting_ports;
mod work;
mod write;
mod written;

pub use crate::aside::AsideStore;
pub use crate::end::EndedFiles;
pub use crate::error::LogFilesError;
pub use crate::health::HealthPorts;
pub use crate::merge::MergeReport;
pub use crate::record::{LogRecorder, RecordPorts, RecordSettings};
pub use crate::waiting_ports::WaitingPorts;
pub use posthaste_delivery_log::SummaryStore;
