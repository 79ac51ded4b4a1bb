//! The six functions as Lambda programs: their environment, and their wiring over SQS and S3.
//!
//! The programs are in `src/bin`, one per function and named like it. No rule is decided here.

pub mod both_queues;
pub mod environment;
mod launch;
pub mod resting;
pub mod sampling;
mod unwinding;
pub mod webhooks;
pub mod wiring;

pub use launch::launch;
