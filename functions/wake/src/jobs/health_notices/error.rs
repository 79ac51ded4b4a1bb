//! Why health is left to the next run.

use posthaste_ports::PortError;
use posthaste_services::{HealthError, LinksError, RegistryError};

#[derive(Debug, thiserror::Error)]
pub(super) enum HealthJobError {
    #[error("failed to read or write what is known of failing subscriptions")]
    Book(#[from] HealthError),
    #[error("failed to read what is known of links")]
    Links(#[from] LinksError),
    #[error("failed to read a topic")]
    Topic(#[from] RegistryError),
    #[error("failed to list the topics")]
    Topics(#[from] PortError),
}
