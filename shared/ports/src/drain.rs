//! The speed at which deliveries leave the queue, as the monitor asks for it.

use std::future::Future;
use std::time::Duration;

use posthaste_core::pressure::DrainLook;

use crate::PortError;

/// Knows how fast the delivery queue drains.
pub trait DrainSource: Send + Sync {
    /// Reports how fast the queue drained lately. `visible` messages wait now; `elapsed` is the
    /// time since the last call, zero on the first.
    ///
    /// `None` if no process reports. Then no message had waited long enough to be worth a report,
    /// or none was received at all.
    fn drained(
        &self,
        visible: u64,
        elapsed: Duration,
    ) -> impl Future<Output = Result<Option<DrainLook>, PortError>> + Send;
}
