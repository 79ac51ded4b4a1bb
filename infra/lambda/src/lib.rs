#![doc = include_str!("../README.md")]
// The SDK's futures lie so deep in one another that the compiler's usual limit of 128 refuses this
// library.
#![recursion_limit = "256"]

mod account;
pub mod both_queues;
pub mod custom_resources;
pub mod environment;
mod export;
pub mod functions;
mod launch;
pub mod log_files;
pub mod made_queue;
pub mod ownership;
pub mod redelivery_backoff;
pub mod sampling;
mod unwinding;
pub mod webhooks;
pub mod wiring;

pub use launch::{handler_name, refuse_handler};
