#![doc = include_str!("../README.md")]

mod dead_letters;
mod delivery_log;
mod gather;
mod handle;
mod late_answers;
mod letter;
mod lost_records;
mod missed;
mod notices;
mod outage;
mod payloads;
mod receive;
mod resolved;
mod retry_wait;
mod storage_retry;
#[cfg(test)]
mod tests;
mod unreadable;
mod unwritten;
mod write;

pub use crate::dead_letters::{DeadLetterPorts, DeadLetters};
