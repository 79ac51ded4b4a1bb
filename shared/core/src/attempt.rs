//! Attempts to deliver: the request, the outcome, and the decision about the delivery after it.

pub mod basis;
pub mod batch;
pub mod decide;
mod delivery_header;
pub mod echo;
pub mod handshake;
mod outcome;
pub mod partial;
mod rate;
pub mod readable;
pub mod redelivery_backoff;
pub mod request;
pub mod retry;
pub mod settle;
pub mod signature;
mod slots;
pub mod verdict;

pub use batch::{BatchAnswer, BatchPolicy, EventSize, PackingLimits, SplitDecision, SplitProgress};
pub use decide::{AttemptOutcome, AttemptState, DeadLetterReason};
pub use delivery_header::{DeliveryHeader, DeliveryHeaderError};
pub use handshake::{
    AllowedRate, AllowedRateError, HandshakeContext, HandshakeRequest, HandshakeResult,
    NewHandshake, SubscriptionAction,
};
pub use outcome::{CertificateFault, OutcomeName, SendFailure};
pub use partial::{AnswerBody, BatchAcknowledgement, BatchEvent};
pub use rate::{LinePlace, RateGrant, RateLease, RateState, RateToken, RequestRate};
pub use readable::{readable_text, redirect_location};
pub(crate) use request::WEBHOOK_ID_PREFIX;
pub use request::{AttemptContext, OutgoingEvent, webhook_id_of};
pub use retry::{DrawnJitter, JITTER_MAX, RetryJitter, RetryPolicy, SCHEDULE_DEFAULT, WaitFloors};
pub use settle::{EntryVerdict, Settlement, WaitPlace};
pub use signature::{
    MADE_SECRET_BYTES, PublicKey, SignatureKind, SigningSecret, SigningSecretError,
};
pub use slots::{SlotClaim, SlotGrant, SlotLease, SlotLimit, SlotState};
