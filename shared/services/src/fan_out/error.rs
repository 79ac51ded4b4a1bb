//! Why a fan-out failed.

use posthaste_ports::PortError;

/// Why not all of a fan-out was written. What was written is delivered; doing it again may duplicate that.
#[derive(Debug, thiserror::Error)]
pub enum FanOutError {
    /// An event that cannot be sent in a subscription's schema.
    #[error("failed to convert an event")]
    Conversion(#[source] PortError),
    /// A payload that several messages were to share.
    #[error("failed to store a payload")]
    Payload(#[source] PortError),
    /// A message.
    #[error("failed to queue a delivery")]
    Message(#[source] PortError),
}

impl FanOutError {
    /// What failed.
    pub fn port_error(&self) -> &PortError {
        let (Self::Conversion(error) | Self::Payload(error) | Self::Message(error)) = self;
        error
    }
}
