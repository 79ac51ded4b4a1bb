#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

pub mod adversary;
pub mod clock;
pub mod conformance;
pub mod documents;
pub mod endpoint;
pub mod entropy;
pub mod faulty;
pub mod memory;
mod memory_store;
pub mod recorded;
pub mod records;

use posthaste_ports::PortBundle;

use memory_store::MemoryStore;

pub use adversary::{Adversary, Mood, Trick};
pub use clock::ManualClock;
pub use endpoint::MemoryEndpoint;
pub use entropy::{SeededEntropy, seed_of_run};
pub use faulty::{CallFault, FaultPlan, Faulty};
pub use recorded::{PortOperation, Recorded, RecordedCalls};

/// The ports of a test: over this queue, state bucket, dead-letter bucket, way to endpoints and
/// bucket of the delivery log, with a clock that is moved by hand and chance that repeats itself.
pub type TestPorts<Q, S, D = S, W = MemoryEndpoint, L = MemoryStore> =
    PortBundle<Q, S, D, L, W, ManualClock, SeededEntropy>;
