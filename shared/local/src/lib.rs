//! The embedded adapters: a durable queue and object store with the semantics and limits of SQS and S3, plain files
//! for dead letters, and the probe of the machine they run on.

pub mod embedded;
pub mod files;
pub mod private;
pub mod probe;

pub use embedded::check;
pub use embedded::{CheckReport, Gauges, Local, LocalOptions, LocalQueue, OpenError, StateStore};
pub use files::FileStore;
pub use probe::LocalProbe;
