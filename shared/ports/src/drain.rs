//! The speed at which deliveries leave the queue, as the monitor asks for it.

use std::future::Future;
use std::time::Duration;

use posthaste_core::pressure::DrainLook;

use crate::PortError;

/// The time of a look at the drain.
#[derive(Debug, Clone, Copy)]
pub struct LookTime {
    /// The time now, by the clock's `monotonic`.
    pub now: Duration,
    /// The time since the look before; zero at the first.
    pub elapsed: Duration,
}

/// Knows how fast the delivery queue drains.
pub trait DrainSource: Send + Sync {
    /// Reports how fast the queue drained lately. `visible` messages wait now.
    ///
    /// `None` if no process reports. Then no message had waited long enough to be worth a report,
    /// or none was received at all.
    fn measure_drain(
        &self,
        visible: u64,
        time: LookTime,
    ) -> impl Future<Output = Result<Option<DrainLook>, PortError>> + Send;
}
