//! Persistent formats: messages and objects, with the keys of the buckets. Each has a version.

pub mod dead_letter;
pub mod force_request;
pub mod idempotency;
pub mod layout;
pub mod topic;
pub mod wake_lease;
pub mod wire;
