//! The circuit breaker for links and subscriptions. It decides where a request goes now, if
//! anywhere, and notes what its outcome says about its link and its subscription. The rules are in
//! `posthaste_core::circuit`, and all workers share one `LinkHealth`. The counts of one worker are
//! here.
//!
//! The breaker is asked when a request is prepared and again right before the request is sent: a
//! link may have failed while the request waited for it.

pub(crate) mod counts;
mod fresh;
mod pauses;
mod ramps;
pub(crate) mod record;
pub(crate) mod route;

use std::sync::Arc;
use std::time::Duration;

use posthaste_ports::{Clock, Ports};
use posthaste_services::{LinkHealth, WakeSignaller, stop_at};

use counts::WorkerCounts;

/// The circuit breaker of one worker.
pub(crate) struct CircuitBreaker<P: Ports> {
    pub(crate) links: LinkHealth<P::Store, P::Clock>,
    pub(crate) wake: Arc<WakeSignaller<P::Store, P::Clock>>,
    pub(crate) webhook: Arc<P::Webhook>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) counts: WorkerCounts,
}

/// The longest wait for what was stored before this process began.
const START_TIME: Duration = Duration::from_secs(5);

impl<P: Ports> CircuitBreaker<P> {
    /// Reads what is stored of links, once, before the first request. If it cannot be read in time,
    /// requests go out, as they do wherever the state of a link cannot be read.
    pub(crate) async fn know_start(&self) {
        if self.links.is_start_known() {
            return;
        }
        let end = self.clock.monotonic() + START_TIME;
        if stop_at(&self.clock, end, self.links.read_start_once())
            .await
            .is_none()
        {
            tracing::warn!("states of links not read in time at the start, they count as healthy");
        }
    }

    /// Whether nothing is known that would keep any request from being sent, as it is nearly
    /// always.
    fn is_all_well(&self) -> bool {
        !self.links.is_any_failing() && self.counts.pauses.is_empty()
    }
}
