//! The figures: what is counted, and per what.

use crate::case::Case;

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Calls that ask the allocator for memory: for new memory, and for memory that grows or
    /// shrinks.
    Allocations,
    /// Bytes that these calls ask for. Of memory that grows, only the growth.
    AllocatedBytes,
    /// System calls that read from a socket.
    Receives,
    /// System calls that write to a socket, or to the program's log.
    Sends,
    /// System calls by which a thread wakes one that waits for sockets.
    Wakes,
    /// System calls that wait for sockets and timers.
    Polls,
    /// System calls by which threads wait for each other, and wake each other.
    Locks,
    /// All other system calls, except those that get memory from the system: they depend on the
    /// machine.
    OtherCalls,
    /// System calls that write to files.
    FileWrites,
    /// System calls that wait for the disk.
    Syncs,
    /// Bytes that are written to files.
    FileBytes,
}

/// The unit of which a figure is the average.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Delivery,
    Event,
    /// A publish request.
    Request,
}

impl Figure {
    fn unit(self) -> Unit {
        match self {
            Self::FileWrites | Self::Syncs => Unit::Request,
            Self::FileBytes => Unit::Event,
            _ => Unit::Delivery,
        }
    }

    /// Whether it depends on which thread does what, so that it varies much.
    pub(crate) fn depends_on_threads(self) -> bool {
        matches!(self, Self::Wakes | Self::Polls | Self::Locks)
    }

    /// The name of its unit.
    pub(crate) fn per(self) -> &'static str {
        match self.unit() {
            Unit::Delivery => "delivery",
            Unit::Event => "event",
            Unit::Request => "request",
        }
    }

    /// The average, of its count in one window.
    pub(crate) fn average(self, count: f64, case: Case) -> f64 {
        let units = match self.unit() {
            Unit::Delivery => case.deliveries(),
            Unit::Event => case.events(),
            Unit::Request => 1,
        };
        count / f64::from(units * case.window_requests())
    }
}
