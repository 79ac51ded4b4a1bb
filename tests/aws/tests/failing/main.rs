//! Failing endpoints on the SQS and S3 adapters, over an emulator and in real time, with holds of a
//! second: the shared view of links in several workers, and an outage from the first failure until
//! everything is delivered.

#![expect(clippy::unwrap_used, reason = "a harness that fails panics")]

#[path = "../conformance/clients.rs"]
mod clients;
mod outage;
mod race;
mod world;
