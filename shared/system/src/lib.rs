#![doc = include_str!("../README.md")]

pub mod clock;
pub mod entropy;
pub mod probe;

pub use clock::SystemClock;
pub use entropy::SystemEntropy;
pub use probe::resident_bytes;
