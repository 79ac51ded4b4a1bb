//! Publishing a request at most once: a producer that names its request may send it again without publishing it again.
//!
//! The name is claimed before anything is written, by one conditional put, and marked as published after everything is
//! durable. A claim whose holder died lapses, and the request is then published again: it may duplicate, never lose.

use std::error::Error;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use posthaste_core::model::limits::IDEMPOTENCY_CLAIM_LENGTH;
use posthaste_core::stored::idempotency::{
    Claim, IdempotencyKey, IdempotencyKeyError, IdempotencyRecord, RequestDigest,
};
use posthaste_ports::{Clock, ETag, Entropy, Object, ObjectStore, PutCondition, QueueSender};
use posthaste_services::{Edit, UpdateError, Updated, update};

use crate::time_to_live::TIME_TO_LIVE_HEADER;
use crate::{Publish, PublishError};

/// The header in which a producer names its request.
/// <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>
pub const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";

/// What the headers that carry a CloudEvent's attributes begin with.
const ATTRIBUTE_PREFIX: &str = "ce-";

/// What a producer named its request, and what is in it.
#[derive(Debug)]
pub(crate) struct Name {
    /// Where what is known of the name is kept.
    pub(crate) object: String,
    /// The request.
    pub(crate) digest: RequestDigest,
}

/// A request's turn to be published.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// It has no name.
    Unnamed,
    /// It was published before.
    Over,
    /// Its name is claimed.
    Claimed {
        /// Where.
        object: &'a str,
        /// What was written there.
        record: IdempotencyRecord,
        /// As what.
        etag: ETag,
    },
}

impl Turn<'_> {
    /// Whether there is nothing left to do.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }
}

/// The name in the headers, if there is one.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, IdempotencyKeyError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY_HEADER).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => IdempotencyKey::parse(value.as_bytes()).map(Some),
        (Some(_), Some(_)) => Err(IdempotencyKeyError),
    }
}

/// What makes a request another one: its body, what that is said to be, how long its events live, and in binary mode
/// the attributes.
pub(crate) fn digest(headers: &HeaderMap, body: &[u8]) -> RequestDigest {
    let says = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let counts = |name: &str| {
        name == CONTENT_TYPE || name == TIME_TO_LIVE_HEADER || name.starts_with(ATTRIBUTE_PREFIX)
    };
    RequestDigest::of(says.filter(|(name, _)| counts(name)), body)
}

impl<Q, S, C, E> Publish<Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Claims the name, unless its request was published or is being so.
    pub(crate) async fn take_turn<'a>(&self, name: Option<&'a Name>) -> Result<Turn<'a>, PublishError> {
        let Some(Name { object, digest }) = name else { return Ok(Turn::Unnamed) };
        let claimed = update(&self.payloads, object, |found| self.claim(digest, found.as_ref()));
        match claimed.await {
            Ok(Updated { answer: Some(record), etag: Some(etag) }) => {
                Ok(Turn::Claimed { object, record, etag })
            }
            Ok(_) => Ok(Turn::Over),
            Err(UpdateError::Edit(error)) => Err(error),
            Err(UpdateError::Read(error) | UpdateError::Write(error)) => Err(PublishError::Claim(error)),
            Err(UpdateError::Contended) => {
                Err(PublishError::InProgress { retry_after: IDEMPOTENCY_CLAIM_LENGTH })
            }
        }
    }

    /// The claim to write over what is found; none where the request was published.
    fn claim(
        &self,
        digest: &RequestDigest,
        found: Option<&Object>,
    ) -> Result<Edit<Option<IdempotencyRecord>>, PublishError> {
        let now = self.clock.now();
        let known = found.and_then(|found| IdempotencyRecord::parse(&found.bytes));
        match known.map_or(Claim::Free, |known| known.decide(digest, now)) {
            Claim::Free => {
                let record = IdempotencyRecord::claimed(digest.clone(), self.entropy.uuid().to_string(), now);
                Ok(Edit::Write(record.render(), Some(record)))
            }
            Claim::Repeated => Ok(Edit::Keep(None)),
            Claim::Reused => Err(PublishError::Reused),
            Claim::InProgress { retry_after } => Err(PublishError::InProgress { retry_after }),
        }
    }

    /// Marks the name as published, or gives it back. If that fails the claim lapses by itself; what was published is
    /// durable all the same, and that is what the producer is told.
    pub(crate) async fn end_turn(&self, turn: Turn<'_>, is_published: bool) {
        let Turn::Claimed { object, record, etag } = turn else { return };
        let record = if is_published { record.published(self.clock.now()) } else { record.given_back() };
        if let Err(error) = self.payloads.put(object, record.render(), PutCondition::IfMatch(etag)).await {
            tracing::warn!(
                error = &error as &dyn Error,
                is_published,
                "idempotency key not settled, its claim lapses"
            );
        }
    }
}
