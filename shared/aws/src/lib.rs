//! SQS and S3 as posthaste's queue and object store, and what every Lambda program shares. No rule is decided here.

pub mod lambda;
pub mod telemetry;
