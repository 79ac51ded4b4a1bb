//! How fast deliveries leave the queue, measured by deliver itself and read by the monitor.
//!
//! Embedded both run in one process and share a [`DrainMeter`]. On AWS every process of deliver has a meter
//! of its own and tells of it through the state bucket ([`DrainPost`]), where the monitor reads what all of
//! them told ([`DrainReports`]); while nothing waits, nobody writes and nobody reads.

mod meter;
mod post;
mod reports;

pub use meter::DrainMeter;
pub use post::{DRAIN_POST_TIMEOUT, DrainPost};
pub use reports::DrainReports;
