//! What tests run on: the suite that every adapter passes, decorators that record calls or make them fail, the ports in
//! memory, a clock that is moved by hand and chance that repeats itself. No program depends on this crate.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

pub mod clock;
pub mod conformance;
pub mod entropy;
pub mod faulty;
pub mod memory;
pub mod recorded;

pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use faulty::{Fault, Faulty, Plan};
pub use recorded::{Calls, Operation, Recorded};
