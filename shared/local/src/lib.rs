//! The embedded adapters: a durable queue and object store with the semantics and limits of SQS and S3, plain files
//! for dead letters, and the real clock and randomness beside ones that tests drive.

pub mod clock;
pub mod embedded;
pub mod entropy;
pub mod files;
pub mod private;
pub mod probe;

pub use clock::{ManualClock, SystemClock};
pub use embedded::check;
pub use embedded::{CheckReport, Gauges, Local, LocalOptions, LocalQueue, OpenError, StateStore};
pub use entropy::{SeededEntropy, SystemEntropy};
pub use files::FileStore;
pub use probe::{LocalProbe, resident_bytes};
