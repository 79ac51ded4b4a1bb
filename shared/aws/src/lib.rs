#![doc = include_str!("../README.md")]

pub mod clients;
pub mod lambda;
pub mod queue;
pub mod store;
pub mod telemetry;

pub use clients::{AwsClients, AwsSettings, AwsSettingsError, CollectorClient};
pub use queue::{QueueUrls, SqsQueue};
pub use store::S3Store;
