//! The SQS and S3 adapters keep the promises of their ports: over HTTP, on the strict double of
//! this crate and on three emulators of other makers. Faults of AWS are tested on the double,
//! because only it fails on request.

#![expect(clippy::unwrap_used, reason = "a harness that fails panics")]

mod clients;
mod doubled;
mod emulated;
mod faults;
mod strict;
mod watched;
