#![doc = include_str!("../README.md")]

mod actions;
mod answer;
mod callbacks;
mod conditions;
mod dead_letters;
mod document;
mod extract;
mod guard;
mod handshakes;
mod health_changes;
mod keys;
mod links;
mod manage;
mod paging;
mod replays;
mod router;
mod status;
mod subscriptions;
mod temporary;
mod test_event;
#[cfg(test)]
mod tests;
mod topic_records;
mod topics;
mod webhook_keys;

pub use crate::manage::{Manage, ManageSettings};
pub use crate::router::router;
