//! The environment of each function: one type per function, read once, when the process starts.
//!
//! An empty variable counts as not set, an unknown value is refused, and all problems are reported at once.
//! Names, forms, bounds and defaults of the variables are in the table of `posthaste_settings`.

mod common;
mod deadletter;
mod deliver;
mod manage;
mod monitor;
mod publish;
mod read;
#[cfg(test)]
mod tests;
mod variables;
mod wake;

pub use common::CommonEnvironment;
pub use deadletter::DeadLetterEnvironment;
pub use deliver::DeliverEnvironment;
pub use manage::ManageEnvironment;
pub use monitor::MonitorEnvironment;
pub use publish::PublishEnvironment;
pub use read::Environment;
pub use variables::{EnvironmentError, VariableError};
pub use wake::WakeEnvironment;
