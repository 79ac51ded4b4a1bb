//! Circuit breaker for links and subscriptions: where a request goes now, if anywhere, and what its outcome
//! says about its link and its subscription. The rules are `posthaste_core::circuit`'s, and all workers share
//! one `LinkHealth`; what one worker counts for itself is here.
//!
//! A request is looked at when it is prepared and again right before it is sent: requests that wait for a
//! link that has just failed are not sent to it.

pub(crate) mod counts;
mod pauses;
mod ramps;
pub(crate) mod record;
pub(crate) mod route;

use std::sync::Arc;

use posthaste_ports::Ports;
use posthaste_services::LinkHealth;

use counts::WorkerCounts;

/// The circuit breaker of one worker.
pub(crate) struct Circuit<P: Ports> {
    pub(crate) links: LinkHealth<P::Store, P::Clock>,
    pub(crate) webhook: Arc<P::Webhook>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) counts: WorkerCounts,
}
