#![doc = include_str!("../README.md")]

mod actions;
mod callbacks;
mod conditions;
mod dead_letters;
mod document;
mod error;
mod extract;
mod follow_up;
mod force;
mod guard;
mod handshakes;
mod health_changes;
mod keys;
mod links;
mod manage;
mod paging;
mod paths;
mod public_url;
mod replays;
mod response;
mod rotation;
mod router;
mod status;
mod subscriptions;
mod temporary;
mod test_event;
#[cfg(test)]
mod tests;
mod time_limit;
mod topic_records;
mod topics;
mod webhook_keys;

pub use crate::manage::{Manage, ManageSettings};
pub use crate::router::router;
