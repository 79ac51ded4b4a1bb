//! S3: whole objects under path-style URLs, conditional puts, and listings in pages.

pub(super) mod bucket;
mod error;
mod list;
mod object;
mod request;
mod xml;

use http::StatusCode;
use posthaste_ports::Clock;

use super::answer::Answer;
use super::journal::Seen;
use super::shared::Shared;

pub use bucket::Access;
use bucket::Buckets;
pub(super) use error::Error;
pub(super) use request::Call;

use request::Request;

/// Performs a request and writes it into the journal, under one lock.
pub(super) fn perform(call: &Call, shared: &Shared) -> Answer {
    let mut state = shared.lock();
    let result = effect(call, &mut state.buckets, shared);
    let answer = result.unwrap_or_else(|error| error.answer());
    state.journal.push(call.seen(answer.status.as_u16()));
    answer
}

fn effect(call: &Call, buckets: &mut Buckets, shared: &Shared) -> Result<Answer, Error> {
    let bucket = buckets.named(&call.bucket)?;
    match &call.request {
        Request::Get {
            key,
            if_none_match,
            range,
        } => bucket.get(key, if_none_match.as_deref(), range.as_ref()),
        Request::Put {
            key,
            bytes,
            condition,
        } => bucket.put(key, bytes, condition.as_ref(), shared.clock.now()),
        Request::Delete { key } => {
            bucket.delete(key);
            Ok(Answer::new(StatusCode::NO_CONTENT))
        }
        Request::List(page) => bucket.list(&call.bucket, page),
    }
}

impl Call {
    /// The entry of the journal, for any outcome.
    pub(super) fn seen(&self, status: u16) -> Seen {
        let (subject, payload_bytes) = match &self.request {
            Request::Get { key, .. } | Request::Delete { key } => (key, 0),
            Request::Put { key, bytes, .. } => (key, bytes.len()),
            Request::List(page) => (&page.prefix, 0),
        };
        let action = self.action();
        let target = self.bucket.clone();
        Seen {
            action,
            target,
            subjects: vec![subject.clone()],
            payload_bytes,
            status,
        }
    }
}
