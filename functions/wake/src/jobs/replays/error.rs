//! Why a replay does not get on.

use posthaste_core::release::ReplayRequestError;
use posthaste_core::stored::FormatError;
use posthaste_ports::PortError;
use posthaste_services::RegistryError;
use posthaste_services::catch_panic::Panicked;

/// Why a replay did not get on. The next run tries again.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplayError {
    #[error("failed to read or write the replay's record")]
    Store(#[source] PortError),
    #[error("failed to understand the replay's record")]
    Record(#[source] FormatError),
    #[error("failed to carry out what the replay asks for")]
    Request(#[source] ReplayRequestError),
    #[error("failed to look the subscription up")]
    Registry(#[source] RegistryError),
    #[error("failed to list the dead letters")]
    List(#[source] PortError),
    #[error("failed to read a dead-letter object")]
    Read(#[source] PortError),
    #[error("failed to queue some of the events")]
    Send(#[source] PortError),
    #[error("failed in the middle")]
    Panicked(#[source] Panicked),
}
