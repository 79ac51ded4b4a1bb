//! The SQS and S3 adapters keep the promises of their ports: over HTTP, on the strict double of this crate
//! and on three emulators that others have made. And what they do when AWS goes wrong, which only the double
//! does when asked to.

#![expect(clippy::unwrap_used, reason = "a harness that fails panics")]

mod clients;
mod doubled;
mod emulated;
mod faults;
mod strict;
mod watched;
