#![doc = include_str!("../README.md")]

pub mod both_queues;
pub mod environment;
mod launch;
pub mod log_files;
pub mod redelivery_backoff;
pub mod sampling;
mod unwinding;
pub mod webhooks;
pub mod wiring;

pub use launch::launch;
