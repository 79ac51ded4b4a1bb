//! Publishing a request at most once: a producer that names its request may repeat it without
//! publishing it again.
//!
//! The name is claimed before anything is written, by one conditional put, and marked as published
//! after everything is durable. A claim whose holder died lapses, and the request is then published
//! again: it may duplicate, never lose.

use std::error::Error;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use posthaste_core::model::{IDEMPOTENCY_CLAIM_LENGTH, MatchCounts};
use posthaste_core::stored::{
    IdempotencyDecision, IdempotencyKey, IdempotencyKeyError, IdempotencyRecord, RequestDigest,
};
use posthaste_ports::{Clock, ETag, Entropy, ObjectStore, Ports, PutCondition};
use posthaste_services::update::{ObjectEdit, UpdateError, create_or_update};

use crate::error::PublishError;
use crate::headers::{IDEMPOTENCY_KEY_HEADER, NOT_BEFORE_HEADER, TIME_TO_LIVE_HEADER};

/// The prefix of headers that carry a CloudEvent's attributes.
const ATTRIBUTE_PREFIX: &str = "ce-";

/// The name that a producer gave its request, and the request's content.
#[derive(Debug)]
pub(crate) struct RequestName {
    object: String,
    digest: RequestDigest,
}

/// A request's claim to be published.
#[derive(Debug)]
pub(crate) enum RequestClaim {
    /// The request has no name.
    Unnamed,
    /// The request was published before.
    Published {
        /// The matches at that time, if they are known.
        matched: Option<MatchCounts>,
    },
    /// The name is claimed, in this version of this object.
    Claimed {
        /// The key of the object.
        object: String,
        /// The content of the object.
        record: IdempotencyRecord,
        /// The version of the object.
        etag: ETag,
    },
}

impl RequestClaim {
    /// The id from which the request's events have theirs. A request that failed in its middle and
    /// is repeated has the same one again, so that its copies have the same `webhook-id`. `None` for
    /// a request without a name.
    pub(crate) fn request_id(&self) -> Option<String> {
        match self {
            Self::Claimed { record, .. } => Some(record.request_id()),
            Self::Unnamed | Self::Published { .. } => None,
        }
    }
}

/// Claims of names in the state bucket.
pub(crate) struct IdempotencyClaims<'a, P: Ports> {
    /// The state bucket.
    pub(crate) store: &'a P::Store,
    /// Time.
    pub(crate) clock: &'a P::Clock,
    /// Chance, for the ids of claims.
    pub(crate) entropy: &'a P::Entropy,
}

impl RequestName {
    /// The name under which a request's claim is kept in `object`.
    pub(crate) fn new(object: String, headers: &HeaderMap, body: &[u8]) -> Self {
        Self {
            object,
            digest: request_digest(headers, body),
        }
    }
}

/// The name in the headers, if there is one.
pub(crate) fn key_from_headers(
    headers: &HeaderMap,
) -> Result<Option<IdempotencyKey>, IdempotencyKeyError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY_HEADER).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => IdempotencyKey::parse(value.as_bytes()).map(Some),
        (Some(_), Some(_)) => Err(IdempotencyKeyError),
    }
}

/// The digest of all that distinguishes a request from others: its body, the content type, the time
/// to live, the time before which it is not sent, and in binary mode the attributes.
fn request_digest(headers: &HeaderMap, body: &[u8]) -> RequestDigest {
    let says = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    RequestDigest::from_request(says.filter(|(name, _)| is_digested(name)), body)
}

/// Whether a header of this name says something of the request's events.
fn is_digested(name: &str) -> bool {
    let is_setting = [TIME_TO_LIVE_HEADER, NOT_BEFORE_HEADER].contains(&name);
    name == CONTENT_TYPE || is_setting || name.starts_with(ATTRIBUTE_PREFIX)
}

impl<P: Ports> IdempotencyClaims<'_, P> {
    /// Claims the name, unless its request was published or is being so.
    pub(crate) async fn claim_name(
        &self,
        name: Option<&RequestName>,
    ) -> Result<RequestClaim, PublishError> {
        let Some(RequestName { object, digest }) = name else {
            return Ok(RequestClaim::Unnamed);
        };
        let mut matched_before = None;
        let claimed = create_or_update(self.store, object, |found| {
            let now = self.clock.now();
            let known = found.and_then(|found| IdempotencyRecord::parse(&found.bytes));
            let decided = known.as_ref().map_or(IdempotencyDecision::Free, |known| {
                known.decide_request(digest, now)
            });
            match decided {
                IdempotencyDecision::Free => {
                    let id = self.entropy.uuid_at(now).to_string();
                    let record = IdempotencyRecord::new_claim(digest.clone(), id, now)
                        .replacing(known.as_ref());
                    Ok(ObjectEdit::Write(record.render(), Some(record)))
                }
                IdempotencyDecision::Repeated { matched } => {
                    matched_before = matched;
                    Ok(ObjectEdit::Keep(None))
                }
                IdempotencyDecision::Reused => Err(PublishError::Reused),
                IdempotencyDecision::InProgress { retry_after } => {
                    Err(PublishError::InProgress { retry_after })
                }
            }
        });
        let updated = claimed.await.map_err(not_claimed)?;
        Ok(match updated.answer.zip(updated.etag) {
            Some((record, etag)) => RequestClaim::Claimed {
                object: object.clone(),
                record,
                etag,
            },
            None => RequestClaim::Published {
                matched: matched_before,
            },
        })
    }

    /// Marks the name as published with these matches, or gives it back without them. If that fails
    /// the claim lapses by itself; the events are durable all the same, and the answer says so.
    pub(crate) async fn settle_claim(&self, claim: RequestClaim, published: Option<MatchCounts>) {
        let RequestClaim::Claimed {
            object,
            record,
            etag,
        } = claim
        else {
            return;
        };
        let record = match published {
            Some(matched) => record.into_published(matched, self.clock.now()),
            None => record.into_given_back(),
        };
        if let Err(error) = self
            .store
            .put(&object, record.render(), PutCondition::IfMatch(etag))
            .await
        {
            tracing::warn!(
                error = &error as &dyn Error,
                is_published = published.is_some(),
                "idempotency key not settled, its claim lapses"
            );
        }
    }
}

fn not_claimed(error: UpdateError<PublishError>) -> PublishError {
    match error {
        UpdateError::Read(error) | UpdateError::Write(error) => PublishError::Claim(error),
        UpdateError::Edit(error) => error,
        UpdateError::Contended => PublishError::InProgress {
            retry_after: IDEMPOTENCY_CLAIM_LENGTH,
        },
    }
}
