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

use posthaste_ports::Ports;
use posthaste_services::{LinkHealth, WakeSignaller};

use counts::WorkerCounts;

/// The circuit breaker of one worker.
pub(crate) struct Circuit<P: Ports> {
    pub(crate) links: LinkHealth<P::Store, P::Clock>,
    pub(crate) wake: Arc<WakeSignaller<P::Store, P::Clock>>,
    pub(crate) webhook: Arc<P::Webhook>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) counts: WorkerCounts,
}

impl<P: Ports> Circuit<P> {
    /// Whether nothing is known that would keep any request from being sent, as it is nearly
    /// always.
    fn is_all_well(&self) -> bool {
        !self.links.is_any_failing() && self.counts.pauses.is_empty()
    }
}
