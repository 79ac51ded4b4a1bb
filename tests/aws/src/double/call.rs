//! A request, read: which service it is for and what it asks.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;

use super::answer::Answer;
use super::journal::{Action, Seen};
use super::script::{EntryFault, Refusal};
use super::shared::Shared;
use super::{s3, sqs};

/// A request to either service.
#[derive(Debug)]
pub(super) enum Call {
    Sqs(sqs::Call),
    S3(s3::Call),
}

impl Call {
    /// Reads a request; the error is the answer to one that cannot be read.
    pub(super) fn parse(parts: &Parts, body: Bytes) -> Result<Self, Answer> {
        if parts.headers.contains_key(sqs::TARGET) {
            check_signature(parts, "sqs").map_err(|Unsigned| sqs::Error::unsigned().answer())?;
            sqs::Call::parse(parts, &body)
                .map(Self::Sqs)
                .map_err(|error| error.answer())
        } else {
            check_signature(parts, "s3").map_err(|Unsigned| s3::Error::denied().answer())?;
            s3::Call::parse(parts, body)
                .map(Self::S3)
                .map_err(|error| error.answer())
        }
    }

    pub(super) fn action(&self) -> Action {
        match self {
            Self::Sqs(call) => call.action,
            Self::S3(call) => call.action(),
        }
    }

    /// Performs the request, except for entries that the script makes fail.
    pub(super) async fn perform(&self, faults: &[EntryFault], shared: &Shared) -> Answer {
        match self {
            Self::Sqs(call) => sqs::perform(call, faults, shared).await,
            Self::S3(call) => s3::perform(call, shared),
        }
    }

    /// The error in the service's own form.
    pub(super) fn refuse(&self, refusal: Refusal) -> Answer {
        match self {
            Self::Sqs(_) => sqs::Error::scripted(refusal).answer(),
            Self::S3(_) => s3::Error::scripted(refusal).answer(),
        }
    }

    /// The entry of the journal for a request without an effect. A status of 0 is no answer.
    pub(super) fn seen(&self, status: u16) -> Seen {
        match self {
            Self::Sqs(call) => call.seen(status),
            Self::S3(call) => call.seen(status),
        }
    }
}

/// The request bears no signature for its service.
struct Unsigned;

/// Looks for a signature for the service. The signer and the signature itself are not checked.
fn check_signature(parts: &Parts, service: &str) -> Result<(), Unsigned> {
    let header = parts
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_signed = header.starts_with("AWS4-HMAC-SHA256 Credential=")
        && header.contains(&format!("/{service}/aws4_request"));
    if is_signed { Ok(()) } else { Err(Unsigned) }
}
