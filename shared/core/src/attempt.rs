//! Attempts to deliver: the request, the outcome, and the decision about the delivery after it.

pub mod batch;
pub mod decide;
pub mod delivery_header;
pub mod handshake;
pub mod outcome;
pub mod partial;
pub mod rate;
pub mod redelivery_backoff;
pub mod request;
pub mod retry;
pub mod settle;
pub mod signature;
