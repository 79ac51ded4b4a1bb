//! The ports that the count of waiting events needs.

use posthaste_ports::Ports;
use posthaste_services::WaitingBook;

/// The ports of what waits.
#[derive(Debug)]
pub struct WaitingPorts<P: Ports> {
    /// The numbers.
    pub book: WaitingBook<P::Store, P::Clock>,
    /// The delivery queue, which is asked whether it is empty. `None` where the settings of release
    /// 0.1 do not name it.
    pub deliveries: Option<P::Queue>,
    /// The other queues that events pass, which are to be empty too: that of dead letters, and that
    /// of messages on which a function failed. Empty where the settings do not name them.
    pub others: Vec<P::Queue>,
}
