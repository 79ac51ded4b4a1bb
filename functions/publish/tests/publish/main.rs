//! The publish function as its producers see it: requests go through its router, and what they
//! leave behind in the queue and the store is looked at.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

mod acceptance;
mod accepted;
mod broken_pressure;
mod fan_out;
mod faults;
mod keys;
mod lanes;
mod metrics;
mod once;
mod pressure;
mod refused;
mod schemas;
mod waits;
mod world;
