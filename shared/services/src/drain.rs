//! The drain rate: how fast deliveries leave the queue, measured by deliver and read by the
//! monitor.
//!
//! Embedded, both run in one process and share a [`DrainMeter`]. On AWS each process of deliver has
//! a meter of its own and reports it through the state bucket ([`DrainPost`]), where the monitor
//! reads all reports ([`DrainReports`]). While nothing waits, nothing is written and nothing is
//! read.

mod meter;
mod post;
mod reports;

pub use meter::{DrainMeter, PlaceWait};
pub use post::{DRAIN_POST_TIMEOUT, DrainPost};
pub use reports::DrainReports;
