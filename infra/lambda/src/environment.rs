//! The environment of each function: one type per function, read once, when the process starts.
//!
//! An empty variable counts as not set, an unknown value is refused, and all problems are reported
//! at once. Names, forms, bounds and defaults of the variables are in the table of
//! `posthaste_settings`.

mod functions;
mod read;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use functions::LOG_DELAY;
pub use functions::{
    DeadLetterEnvironment, DeliverEnvironment, ManageEnvironment, MonitorEnvironment,
    PublishEnvironment, RecordEnvironment, WakeEnvironment,
};
pub use read::{CommonEnvironment, FunctionEnvironment};
pub use variables::{EnvironmentError, EnvironmentReader, VariableError};
