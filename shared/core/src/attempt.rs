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

pub use batch::{BatchAnswer, Batching, EventSize, Follow, Pack, Splitting};
pub use decide::{AttemptState, DeadLetterReason, Outcome};
pub use delivery_header::{DeliveryHeader, DeliveryHeaderError};
pub use handshake::{Action, AllowedRate, AllowedRateError, Answer, Ask, Begin, Question};
pub use outcome::{CertificateFault, OutcomeName, SendFailure};
pub use partial::{Acknowledged, AnswerBody, BatchEvent};
pub use rate::{Grant, Lease, Place, Rate, RateState, Token};
pub use readable::{readable, redirect_location};
pub(crate) use request::WEBHOOK_ID_PREFIX;
pub use request::{AttemptContext, Outgoing, webhook_id_of};
pub use retry::{JITTER_MAX, Jitter, RetryJitter, RetryPolicy, SCHEDULE_DEFAULT, WaitFloors};
pub use settle::{EntryVerdict, Settlement, Wait};
pub use signature::{
    MADE_SECRET_BYTES, PublicKey, SignatureKind, SigningSecret, SigningSecretError,
};
pub use slots::{Concurrency, SlotClaim, SlotGrant, SlotLease, SlotState};
