//! The log as its users see it: written records are read, found, listed and merged; damage is an
//! error.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, helpers included, an error is a failed test"
)]

mod athena;
mod damage;
mod duckdb;
mod merging;
mod questions;
mod reads;
mod round_trip;
mod summaries;
mod support;
mod versions;
