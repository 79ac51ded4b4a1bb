//! The shapes of load that are counted.

/// A shape of load. Its number is its column in the table of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Requests of one event to one subscription, with the program's defaults.
    One,
    /// Requests of 100 events to one subscription.
    Hundred,
    /// Requests of one event to ten subscriptions.
    FanOut,
    /// [`Case::One`] without the delivery log.
    OneUnlogged,
    /// [`Case::Hundred`] without the delivery log.
    HundredUnlogged,
    /// [`Case::FanOut`] without the delivery log.
    FanOutUnlogged,
}

impl Case {
    /// The number of cases.
    pub(crate) const COUNT: usize = 6;

    /// Options of `serve`.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::One | Self::Hundred | Self::FanOut => &[],
            Self::OneUnlogged | Self::HundredUnlogged | Self::FanOutUnlogged => {
                &["--delivery-log", "off"]
            }
        }
    }

    /// Events in a publish request.
    pub(crate) fn events(self) -> u32 {
        match self {
            Self::Hundred | Self::HundredUnlogged => 100,
            Self::One | Self::FanOut | Self::OneUnlogged | Self::FanOutUnlogged => 1,
        }
    }

    /// Subscriptions that get every event.
    pub(crate) fn subscriptions(self) -> u32 {
        match self {
            Self::FanOut | Self::FanOutUnlogged => 10,
            Self::One | Self::Hundred | Self::OneUnlogged | Self::HundredUnlogged => 1,
        }
    }

    /// Deliveries of one request.
    pub(crate) fn deliveries(self) -> u32 {
        self.events() * self.subscriptions()
    }

    /// Requests of one window. A window is so short that some are free of what the server does once
    /// a second, and so long that the work on its last request, of which a part falls into the
    /// next one, hardly counts.
    pub(crate) fn window_requests(self) -> u32 {
        match self {
            Self::One | Self::OneUnlogged => 50,
            Self::Hundred | Self::HundredUnlogged => 2,
            Self::FanOut | Self::FanOutUnlogged => 10,
        }
    }

    /// Requests before the first window. Afterwards, connections are open, caches are full and
    /// buffers have grown.
    pub(crate) fn warm_up_requests(self) -> u32 {
        6 * self.window_requests()
    }
}
