//! The circuit breaker for links and subscriptions. It decides where a request goes now, if
//! anywhere, and notes what its outcome says about its link and its subscription. The rules are in
//! `posthaste_core::circuit`, and all workers share one `LinkHealth`. The counts of one worker are
//! here.
//!
//! A request enters by its [`CircuitPass`], which it owns from its route to its outcome. The
//! breaker is asked when the request is prepared and again right before it is sent: a link may have
//! failed while the request waited for it.

mod breaker;
mod counts;
mod fresh;
mod pass;
mod pauses;
mod ramps;
mod record;
mod report;

pub(crate) use breaker::CircuitBreaker;
pub(crate) use pass::CircuitPass;
pub(crate) use record::CompletedRequest;
