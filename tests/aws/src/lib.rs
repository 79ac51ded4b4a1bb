//! Tests of the AWS side: a strict double of SQS and S3, and emulators that are started for a test and stop with it.

pub mod double;
pub mod emulator;
