//! Attempts to deliver: the request, the outcome, and the decision about the delivery after it.

pub mod basis;
pub mod batch;
pub mod decide;
pub mod echo;
pub mod partial;
mod rate;
pub mod readable;
pub mod redelivery_backoff;
pub mod request;
pub mod retry;
pub mod settle;
mod slots;
pub mod verdict;

pub use batch::{BatchAnswer, EventSize, PackingLimits, SplitDecision, SplitProgress};
pub use decide::AttemptState;
pub use partial::{AnswerBody, BatchAcknowledgement, BatchEvent};
pub use rate::{LinePlace, RateGrant, RateLease, RateState, RateToken};
pub use readable::{readable_text, redirect_location};
pub use request::{AttemptContext, OutgoingEvent};
pub use retry::{DrawnJitter, JITTER_MAX, RetryJitter};
pub use settle::{EntryVerdict, Settlement, WaitPlace};
pub use slots::{SlotClaim, SlotGrant, SlotLease, SlotState};
