//! wake over a store that answers as S3 may: where its lists begin, short pages, who holds the
//! lease, and the deadline.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cursor;
mod deadline;
mod expire;
mod forced;
mod held;
mod idempotency;
mod lease;
mod pages;
mod pressure;
mod rest;
mod set_back;
mod temporary;
#[path = "../../src/testing/wiring.rs"]
mod wiring;
mod world;

use posthaste_wake::WakePorts;
