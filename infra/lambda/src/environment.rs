//! What each function is told: one type per function, read from the environment once, when the process starts.
//!
//! An empty variable counts as not set, an unknown value is refused, and all that is wrong is told at once.

mod common;
mod deadletter;
mod deliver;
mod kinds;
mod manage;
mod monitor;
mod publish;
#[cfg(test)]
mod tests;
mod variables;
mod wake;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;

pub use common::CommonEnvironment;
pub use deadletter::DeadLetterEnvironment;
pub use deliver::DeliverEnvironment;
pub use manage::ManageEnvironment;
pub use monitor::MonitorEnvironment;
pub use publish::PublishEnvironment;
pub use variables::{EnvironmentError, VariableError};
pub use wake::WakeEnvironment;

pub(crate) use variables::Variables;

pub(crate) const STATE_BUCKET: &str = "STATE_BUCKET";
pub(crate) const DEAD_LETTER_BUCKET: &str = "DEAD_LETTER_BUCKET";
pub(crate) const DELIVERIES_QUEUE_URL: &str = "DELIVERIES_QUEUE_URL";
pub(crate) const DEADLETTERS_QUEUE_URL: &str = "DEADLETTERS_QUEUE_URL";
pub(crate) const REDRIVE_QUEUE_URL: &str = "REDRIVE_QUEUE_URL";
pub(crate) const REGISTRY_MAX_AGE_SECONDS: &str = "REGISTRY_MAX_AGE_SECONDS";
pub(crate) const TARPIT: &str = "TARPIT";
pub(crate) const REQUESTS_MAX: &str = "REQUESTS_MAX";
pub(crate) const REQUESTS_PER_LINK_START: &str = "REQUESTS_PER_LINK_START";
pub(crate) const WAITING_PER_CONNECTION: &str = "WAITING_PER_CONNECTION";
pub(crate) const REQUESTS_PER_LINK_MAX: &str = "REQUESTS_PER_LINK_MAX";
pub(crate) const WEBHOOK_ORIGIN: &str = "WEBHOOK_ORIGIN";
pub(crate) const ALLOW_ENDPOINTS: &str = "ALLOW_ENDPOINTS";
pub(crate) const DNS_SERVER: &str = "DNS_SERVER";
pub(crate) const PRESSURE_PROFILE: &str = "PRESSURE_PROFILE";
pub(crate) const PRESSURE_SETTINGS: &str = "PRESSURE_SETTINGS";
pub(crate) const PRESSURE_INTERVAL_SECONDS: &str = "PRESSURE_INTERVAL_SECONDS";
pub(crate) const LINK_SETTINGS: &str = "LINK_SETTINGS";
pub(crate) const NOTICES_TOPIC: &str = "NOTICES_TOPIC";
pub(crate) const ADMIN_KEY_SHA256: &str = "ADMIN_KEY_SHA256";
pub(crate) const MANAGE_URL: &str = "MANAGE_URL";
pub(crate) const PUBLISH_URL: &str = "PUBLISH_URL";
pub(crate) const LOG_LEVEL: &str = "LOG_LEVEL";
pub(crate) const METRICS_NAMESPACE: &str = "METRICS_NAMESPACE";
pub(crate) const METRICS_BY: &str = "METRICS_BY";

/// A function's environment.
pub trait Environment: Sized {
    /// Reads it through `read`, which answers the value of a variable. Every variable that the function knows is
    /// asked for, whatever the others hold.
    fn read(read: &impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError>;

    /// What every function is told.
    fn common(&self) -> &CommonEnvironment;

    /// Reads the environment of this process.
    fn from_env() -> Result<Self, EnvironmentError> {
        // What is no UTF-8 is read with replacement characters, so that it is refused by its name and not overlooked.
        Self::read(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// The names of all variables it reads, for holding a template against it.
    fn variables() -> BTreeSet<String> {
        let asked = RefCell::new(BTreeSet::new());
        // What is read from an empty environment is of no interest here, only what was asked for.
        let _ = Self::read(&|name| {
            asked.borrow_mut().insert(name.to_owned());
            None
        });
        asked.into_inner()
    }
}
