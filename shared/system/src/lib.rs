//! The machine that a process runs on: its clock, its randomness, its disks and its memory.

pub mod clock;
pub mod entropy;
pub mod probe;

pub use clock::SystemClock;
pub use entropy::SystemEntropy;
pub use probe::resident_bytes;
