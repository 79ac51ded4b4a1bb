//! Deliveries back in the queue.

use posthaste_core::model::Delivery;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_ports::{OutgoingMessage, QueueName, Successor};

/// A delivery that is tried again after this delay.
pub(super) fn retry(delivery: &Delivery, delay_secs: u16) -> Successor {
    let message =
        OutgoingMessage { body: render_delivery(delivery), group: Some(delivery.group()), delay_secs };
    Successor { to: QueueName::Deliveries, message }
}
