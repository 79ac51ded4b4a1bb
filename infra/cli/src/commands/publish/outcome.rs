//! The meaning of an answer for the events of its request. Pure.

use std::time::Duration;

use posthaste_core::api::problem::ProblemKind;
use posthaste_core::attempt::retry::parse_retry_after;
use posthaste_core::model::{IDEMPOTENCY_KEPT, Timestamp};
use posthaste_publish::{PRESSURE_HEADER, RETRY_AFTER_DEFAULT};
use posthaste_publisher::{PressureHeader, PublishOutcome, PublishReport, RetryReason};
use ureq::Timeout;

use crate::client::{ClientError, ClientResponse, ServerRefusal};

/// Longest wait that is kept: after a day no key is remembered.
const WAIT_MAX: Duration = IDEMPOTENCY_KEPT;

/// Reads an answer that came at `now`, by the wall clock: a wait may be written as a date.
pub(super) fn outcome_of(
    answer: Result<ClientResponse, ClientError>,
    now: Timestamp,
) -> PublishOutcome<ClientError> {
    let error = match answer {
        Ok(answer) => {
            let pressure = answer.headers.get(PRESSURE_HEADER);
            let pressure = pressure.and_then(|value| value.to_str().ok());
            return PublishOutcome::Acknowledged {
                pressure: pressure.map(PressureHeader::parse),
                report: PublishReport::parse(&answer.body),
            };
        }
        Err(error) => error,
    };
    let reason = match &error {
        ClientError::Refused(refusal) => retry_reason(refusal, now),
        // A server that took the request and then fell silent is there.
        ClientError::Unreachable { source, .. } => Some(match **source {
            ureq::Error::Timeout(Timeout::Global) => RetryReason::Unclear(None),
            _ => RetryReason::Unanswered,
        }),
        _ => None,
    };
    if let Some(reason) = reason {
        return PublishOutcome::Again { reason, error };
    }
    let index = match &error {
        ClientError::Refused(refusal) => refusal.index,
        _ => None,
    };
    PublishOutcome::Final { index, error }
}

/// The reason to send a refused request again; `None` if it would be refused again.
fn retry_reason(refusal: &ServerRefusal, now: Timestamp) -> Option<RetryReason> {
    let wait = requested_wait(refusal, now);
    let wait_or_default = wait.unwrap_or(RETRY_AFTER_DEFAULT);
    match refusal.status {
        _ if refusal.is_back_pressure() => Some(RetryReason::Refused {
            wait: wait_or_default,
            pressure: refusal.pressure.as_deref().map(PressureHeader::parse),
            is_delay: refusal.is_delay(),
        }),
        409 if refusal.type_uri == ProblemKind::IdempotencyKeyInUse.type_uri() => {
            Some(RetryReason::InUse(wait_or_default))
        }
        408 | 500..=599 => Some(RetryReason::Unclear(wait)),
        _ => None,
    }
}

fn requested_wait(refusal: &ServerRefusal, now: Timestamp) -> Option<Duration> {
    let wait = parse_retry_after(refusal.retry_after.as_deref()?, now)?;
    Some(wait.min(WAIT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::{HeaderMap, HeaderName, HeaderValue};
    use url::Url;

    fn shown(outcome: &PublishOutcome<ClientError>) -> String {
        match outcome {
            PublishOutcome::Acknowledged { pressure, .. } => pressure
                .as_ref()
                .map_or("acknowledged".to_owned(), |pressure| {
                    format!("acknowledged: {pressure}")
                }),
            PublishOutcome::Again { reason, .. } => match reason {
                RetryReason::Refused { wait, pressure, .. } => {
                    let pressure = pressure.as_ref().map(ToString::to_string);
                    let pressure = pressure.unwrap_or_default();
                    format!("refused {} {pressure}", wait.as_secs())
                }
                RetryReason::InUse(wait) => format!("in use {}", wait.as_secs()),
                RetryReason::Unclear(wait) => {
                    format!("unclear {:?}", wait.map(|wait| wait.as_secs()))
                }
                RetryReason::Unanswered => "unanswered".to_owned(),
            },
            PublishOutcome::Final { .. } => "final".to_owned(),
        }
    }

    fn headers(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        headers.iter().copied().map(header).collect()
    }

    fn check(status: u16, problem: &str, with: &[(&'static str, &'static str)], expected: &str) {
        let body = format!(r#"{{"type":"urn:posthaste:problem:{problem}"}}"#);
        let answer = if status == 200 {
            Ok(ClientResponse {
                status,
                headers: headers(with),
                body: Vec::new(),
            })
        } else {
            Err(ClientError::Refused(Box::new(
                ServerRefusal::from_response(status, &headers(with), body.as_bytes()),
            )))
        };
        assert_eq!(
            shown(&outcome_of(answer, Timestamp::EPOCH)),
            expected,
            "{status} {problem} {with:?}"
        );
    }

    #[test]
    fn every_answer_means_one_thing() {
        let queue = (
            "posthaste-pressure",
            "medium; resource=submission-queue; delay=15",
        );
        check(200, "", &[], "acknowledged");
        check(
            200,
            "",
            &[queue],
            "acknowledged: medium submission-queue, 15 s",
        );
        check(
            429,
            "back-pressure",
            &[("retry-after", "15"), queue],
            "refused 15 medium submission-queue, 15 s",
        );
        check(
            503,
            "back-pressure",
            &[("retry-after", "30")],
            "refused 30 ",
        );
        check(429, "", &[], "refused 5 ");
        check(
            409,
            "idempotency-key-in-use",
            &[("retry-after", "90")],
            "in use 90",
        );
        check(409, "conflict", &[("retry-after", "1")], "final");
        check(
            503,
            "unavailable",
            &[("retry-after", "5")],
            "unclear Some(5)",
        );
        check(507, "storage-full", &[], "unclear None");
        for status in [408, 500, 502, 504] {
            check(status, "", &[], "unclear None");
        }
        for status in [301, 400, 401, 403, 404, 413, 415, 422] {
            check(status, "", &[], "final");
        }
    }

    #[test]
    fn a_wait_may_be_a_date_and_has_a_bound() {
        check(
            429,
            "",
            &[("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT")],
            "refused 60 ",
        );
        check(429, "", &[("retry-after", "99999999999")], "refused 86400 ");
        check(429, "", &[("retry-after", "soon")], "refused 5 ");
    }

    #[test]
    fn missing_response_is_unclear() {
        let url = Url::parse("http://127.0.0.1:1").unwrap();
        let error = ClientError::Unreachable {
            url,
            source: Box::new(ureq::Error::ConnectionFailed),
        };
        let outcome = outcome_of(Err(error), Timestamp::EPOCH);
        assert_eq!(shown(&outcome), "unanswered");
    }
}
