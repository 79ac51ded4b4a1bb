//! SQS and S3 as posthaste's queue and object store, and what every Lambda program shares. No rule is decided here.

pub mod clients;
pub mod lambda;
pub mod queue;
pub mod store;
pub mod telemetry;

pub use clients::{AwsSettings, AwsSettingsError, Clients, QueueUrls};
pub use queue::SqsQueue;
pub use store::S3Store;
