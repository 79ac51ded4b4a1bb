//! Persistent formats: messages in the queues, and objects in the state bucket and the dead-letter bucket.
//! Each file names its key, its versions, writers, readers, lifetime and fixtures.

pub mod activity;
pub mod dead_letter;
pub mod dead_letter_message;
pub mod delivery;
pub mod disabled;
pub mod drain_report;
pub mod force_request;
pub mod format;
mod held;
pub mod idempotency;
mod keys;
mod late_answer;
pub mod layout;
mod links;
mod malformed;
pub mod parked;
mod payload;
pub mod pressure;
mod rate;
pub mod replay;
mod temporary;
pub mod topic;
pub mod wake_lease;
