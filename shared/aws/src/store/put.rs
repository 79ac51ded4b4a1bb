//! Conditional puts: a race is run again, and a put that was applied although its response was lost
//! is recognised.
//!
//! The SDK sends a put again when a response does not come. If the first was applied, the second
//! meets its own object and gets 412. So after a put of unknown fate, a 412 is compared with the
//! bytes that were written.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_s3::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use aws_sdk_s3::operation::RequestId;
use aws_sdk_s3::operation::put_object::PutObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_async::rt::sleep::AsyncSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use bytes::Bytes;
use posthaste_ports::{ETag, ErrorKind, PortError, PutCondition, RevalidatedObject};

use super::bucket::S3Bucket;
use crate::clients::failure::{error_kind, to_port_error};

/// The name of this operation in errors.
pub(super) const PUTTING: &str = "put an object";

/// Most puts of one call that end in a race without a winner.
pub(super) const CONFLICTS_MAX: u32 = 6;

/// The wait after the first race, before jitter takes up to half of it; it doubles.
pub(super) const CONFLICT_WAIT: Duration = Duration::from_millis(50);

/// The end of one put.
enum PutOutcome {
    Written(ETag),
    /// 409: a race without a winner; holds the hashed id of the response.
    Conflict(u64),
    /// The condition does not hold.
    Lost(PortError),
    Failed(PortError),
}

/// A put that is tried until its fate is known.
pub(super) struct ConditionalPut<'a> {
    pub(super) bucket: &'a S3Bucket,
    pub(super) key: &'a str,
    pub(super) bytes: Bytes,
    pub(super) condition: PutCondition,
}

impl ConditionalPut<'_> {
    pub(super) async fn run(self) -> Result<ETag, PortError> {
        let mut may_be_written = false;
        for conflict in 0..CONFLICTS_MAX {
            let attempts = AttemptCounter::default();
            let ended = self.put_once(&attempts).await;
            // The last attempt had a response; those before it had none.
            may_be_written |= attempts.0.load(Ordering::Relaxed) > 1;
            match ended {
                PutOutcome::Written(etag) => return Ok(etag),
                PutOutcome::Lost(error) if may_be_written => {
                    return self.own_version_or(error).await;
                }
                PutOutcome::Lost(error) | PutOutcome::Failed(error) => return Err(error),
                PutOutcome::Conflict(chance) => {
                    self.bucket
                        .sleep
                        .sleep(jittered_wait(conflict, chance))
                        .await;
                }
            }
        }
        let cause = format!("{CONFLICTS_MAX} races in a row had no winner");
        Err(PortError::with_cause(PUTTING, ErrorKind::Other, cause))
    }

    async fn put_once(&self, attempts: &AttemptCounter) -> PutOutcome {
        let S3Bucket { client, name, .. } = self.bucket;
        let request = client.put_object().bucket(name).key(self.key);
        let request = request
            .content_type(content_type(self.key))
            .body(ByteStream::from(self.bytes.clone()));
        let request = match &self.condition {
            PutCondition::Always => request,
            PutCondition::IfAbsent => request.if_none_match("*"),
            PutCondition::IfMatch(etag) => request.if_match(&etag.0),
        };
        match request
            .customize()
            .interceptor(attempts.clone())
            .send()
            .await
        {
            Ok(answer) => match answer.e_tag {
                Some(etag) => PutOutcome::Written(ETag(etag)),
                // A later put over it would need its version.
                None => PutOutcome::Failed(PortError::with_cause(
                    PUTTING,
                    ErrorKind::Other,
                    "the answer has no ETag",
                )),
            },
            Err(error) => self.classify_error(error),
        }
    }

    fn classify_error(&self, error: SdkError<PutObjectError, HttpResponse>) -> PutOutcome {
        let code = error
            .as_service_error()
            .and_then(ProvideErrorMetadata::code);
        let is_conditional = self.condition != PutCondition::Always;
        match (error_kind(&error), code) {
            (ErrorKind::PreconditionFailed, _) => PutOutcome::Lost(to_port_error(PUTTING, error)),
            // Under If-Match, an object that is gone is a condition that does not hold.
            (ErrorKind::NotFound, Some("NoSuchKey")) => PutOutcome::Lost(PortError::with_cause(
                PUTTING,
                ErrorKind::PreconditionFailed,
                error,
            )),
            (_, Some("ConditionalRequestConflict" | "OperationAborted")) if is_conditional => {
                PutOutcome::Conflict(chance_in(error.request_id()))
            }
            _ => PutOutcome::Failed(to_port_error(PUTTING, error)),
        }
    }

    /// The version of the object if it holds our bytes; else the put is lost.
    async fn own_version_or(&self, lost: PortError) -> Result<ETag, PortError> {
        match self.bucket.read_object(PUTTING, self.key, None).await? {
            RevalidatedObject::Changed(object) if object.bytes == self.bytes => Ok(object.etag),
            _ => Err(lost),
        }
    }
}

/// Counts the attempts that the SDK makes for one operation.
#[derive(Debug, Clone, Default)]
struct AttemptCounter(Arc<AtomicUsize>);

impl Intercept for AttemptCounter {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_before_attempt(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The content type, so that a browser or the console shows a dead letter as JSON.
fn content_type(key: &str) -> &'static str {
    match key.rsplit_once('.') {
        Some((_, "json")) => "application/json",
        _ => "application/octet-stream",
    }
}

/// Jitter of a racer's wait. The ids of responses differ, so they serve as the source of chance,
/// and no port is needed.
fn chance_in(request_id: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    request_id.hash(&mut hasher);
    hasher.finish()
}

/// A wait between half of the doubled one and all of it.
fn jittered_wait(conflict: u32, chance: u64) -> Duration {
    let whole = CONFLICT_WAIT * 2_u32.saturating_pow(conflict);
    let part = u32::try_from(chance % 1024).unwrap_or_default();
    whole / 2 + whole / 2 * part / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_their_jitter_takes_at_most_half() {
        let check = |conflict, chance, expected_us| {
            assert_eq!(
                jittered_wait(conflict, chance),
                Duration::from_micros(expected_us),
                "{conflict} {chance}"
            );
        };
        check(0, 0, 25_000);
        check(0, 512, 37_500);
        check(0, 1024, 25_000);
        check(1, 0, 50_000);
        check(5, 512, 1_200_000);
        assert!(jittered_wait(0, 1023) < CONFLICT_WAIT);
    }

    #[test]
    fn answers_with_different_ids_lead_to_different_waits() {
        let waits: std::collections::BTreeSet<_> = (0..32)
            .map(|racer| jittered_wait(0, chance_in(Some(&format!("request {racer}")))))
            .collect();
        assert!(waits.len() > 24, "{waits:?}");
    }

    #[test]
    fn json_is_called_json() {
        let check = |key, expected| assert_eq!(content_type(key), expected, "{key}");
        check("ORDERS/BILLING/2026/1/2/3/x.json", "application/json");
        check("MALFORMED/x", "application/octet-stream");
        check("payloads/json", "application/octet-stream");
    }
}
