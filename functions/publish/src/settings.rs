//! The settings of the function.

use std::time::Duration;

use posthaste_core::model::DeliveryLogMode;

/// The effect of the tarpit on a producer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TarpitMode {
    /// The producer's acknowledgement waits.
    #[default]
    Delay,
    /// The producer is asked to come back after the wait (429), and nothing of its request is
    /// accepted; but one request of each topic goes on in that time. Used where a held
    /// acknowledgement costs money and concurrency, as in Lambda.
    Advise,
}

/// The treatment of producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishSettings {
    /// Longest time for a request's body to arrive.
    pub body_timeout: Duration,
    /// The effect of the tarpit.
    pub tarpit: TarpitMode,
    /// The mode of the delivery log for topics that do not set one.
    pub delivery_log: DeliveryLogMode,
    /// Whether events are stored for the delivery log that it only refers to. They stay for
    /// [`PAYLOAD_KEPT`](posthaste_core::model::PAYLOAD_KEPT), so this is for stores that grow
    /// without end.
    pub stores_for_log: bool,
}

impl Default for PublishSettings {
    /// A body has a minute, as long as the slowest acknowledgement.
    fn default() -> Self {
        Self {
            body_timeout: Duration::from_mins(1),
            tarpit: TarpitMode::default(),
            delivery_log: DeliveryLogMode::default(),
            stores_for_log: false,
        }
    }
}
