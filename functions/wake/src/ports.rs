//! The adapters and services that wake runs on.

use posthaste_ports::Ports;
use posthaste_services::{Activity, FanOut, LinkHealth, Notifier, PressureReader, Registry};

/// The adapters and services of one wake.
pub struct WakePorts<P: Ports> {
    /// The delivery queue.
    pub deliveries: P::Queue,
    /// The state bucket.
    pub state: P::Store,
    /// The dead-letter bucket, for replays.
    pub dead_letters: P::DeadLetters,
    /// Topics and subscriptions.
    pub registry: Registry<P::Store, P::Clock>,
    /// The pressure, as the monitor wrote it.
    pub pressure: PressureReader<P::Store, P::Clock>,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The last use of subscriptions.
    pub activity: Activity,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
}

/// The notifier on these ports.
type PortsNotifier<'a, P> =
    Notifier<'a, <P as Ports>::Queue, <P as Ports>::Store, <P as Ports>::Clock, <P as Ports>::Entropy>;

impl<P: Ports> WakePorts<P> {
    pub(crate) fn notifier(&self) -> PortsNotifier<'_, P> {
        let Self { deliveries, state: payloads, registry, clock, entropy, .. } = self;
        Notifier { registry, fan_out: FanOut { deliveries, payloads, clock, entropy } }
    }
}
