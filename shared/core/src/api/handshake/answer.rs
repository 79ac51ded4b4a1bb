//! The meaning of an endpoint's answer to a handshake. A status alone is never consent.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use crate::api::{EndpointValidation, SecretText};
use crate::model::Secret;

const ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
const ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

/// The sign for every origin, and for a rate without a bound.
const ANY: &str = "*";

/// The member of Event Grid's answer that gives the code back. Receivers in .NET write it in either
/// case.
const VALIDATION_RESPONSE: &str = "validationResponse";

/// Most characters of an endpoint's words that are kept.
const SHOWN_CHARS_MAX: usize = 200;

/// The result of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeResult {
    /// The endpoint wants the events.
    Consented {
        /// The most requests a minute that it allows.
        rate: AllowedRate,
    },
    /// The endpoint has not consented yet. It may still do so by calling back.
    Awaited {
        /// The endpoint's words instead.
        said: String,
    },
    /// The endpoint does not want the events.
    Refused {
        /// Why.
        reason: String,
    },
    /// The endpoint gave no answer, through its own fault, the network's or ours.
    Unasked {
        /// Why.
        reason: String,
    },
}

/// The most requests a minute that an endpoint allows; `None` is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllowedRate(pub Option<u32>);

/// Why a text is not an allowed rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number of requests a minute, 1 or more, or *")]
pub struct AllowedRateError;

impl AllowedRate {
    /// Reads `*` or a positive whole number. One that is too large to be counted is no bound.
    pub fn parse(text: &str) -> Result<Self, AllowedRateError> {
        let text = text.trim();
        if text == ANY {
            return Ok(Self(None));
        }
        let digits = text.trim_start_matches('0');
        if digits.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(AllowedRateError);
        }
        Ok(Self(digits.parse().ok()))
    }

    /// Reads the header of an answer or of a callback. Left out, there is no bound.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, AllowedRateError> {
        let Some(value) = headers.get(ALLOWED_RATE) else {
            return Ok(Self(None));
        };
        value
            .to_str()
            .map_err(|_| AllowedRateError)
            .and_then(Self::parse)
    }
}

/// Judges an answer. `can_call_back` says whether the question named a callback address.
pub fn judge_response(
    asked: (EndpointValidation, &HeaderValue, &SecretText),
    can_call_back: bool,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> HandshakeResult {
    let (validation, origin, code) = asked;
    match validation {
        EndpointValidation::CloudEvents => {
            judge_cloud_events(origin, can_call_back, status, headers)
        }
        EndpointValidation::EventGrid => judge_event_grid(code, can_call_back, status, body),
        // An endpoint that is not asked gives no answer.
        EndpointValidation::None => HandshakeResult::Consented {
            rate: AllowedRate(None),
        },
    }
}

/// Judges a request that got no answer, by the words for its failure.
pub fn judge_failure(failure: &str) -> HandshakeResult {
    HandshakeResult::Unasked {
        reason: format!("the endpoint could not be asked: {failure}"),
    }
}

fn judge_cloud_events(
    origin: &HeaderValue,
    can_call_back: bool,
    status: StatusCode,
    headers: &HeaderMap,
) -> HandshakeResult {
    let Some(allowed) = headers.get(ALLOWED_ORIGIN) else {
        let said = format!(
            "it answered {} without WebHook-Allowed-Origin",
            status.as_u16()
        );
        return awaited_or_refused(can_call_back, said);
    };
    if allowed != origin && allowed != ANY {
        // What the endpoint wrote goes into the topic's record.
        let shown: String = format!("{allowed:?}")
            .chars()
            .take(SHOWN_CHARS_MAX)
            .collect();
        let reason = format!("the endpoint allows the origin {shown}, and this one is {origin:?}");
        return HandshakeResult::Refused { reason };
    }
    match AllowedRate::from_headers(headers) {
        Ok(rate) => HandshakeResult::Consented { rate },
        Err(error) => HandshakeResult::Refused {
            reason: format!("the endpoint's WebHook-Allowed-Rate: {error}"),
        },
    }
}

fn judge_event_grid(
    code: &SecretText,
    can_call_back: bool,
    status: StatusCode,
    body: &[u8],
) -> HandshakeResult {
    if status != StatusCode::OK {
        let reason = format!(
            "the endpoint answered {} to the validation event",
            status.as_u16()
        );
        return HandshakeResult::Refused { reason };
    }
    if gives_back(code, body) {
        return HandshakeResult::Consented {
            rate: AllowedRate(None),
        };
    }
    awaited_or_refused(
        can_call_back,
        "it answered 200 without the validation code".to_owned(),
    )
}

fn gives_back(code: &SecretText, body: &[u8]) -> bool {
    let Ok(Value::Object(members)) = serde_json::from_slice(body) else {
        return false;
    };
    let given = members
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(VALIDATION_RESPONSE));
    given
        .and_then(|(_, value)| value.as_str())
        .is_some_and(|given| Secret::new(code.expose()).matches(given))
}

fn awaited_or_refused(can_call_back: bool, said: String) -> HandshakeResult {
    if can_call_back {
        HandshakeResult::Awaited { said }
    } else {
        HandshakeResult::Refused {
            reason: format!("the endpoint did not consent: {said}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        validation: EndpointValidation,
        can_call_back: bool,
        (status, headers, body): (u16, &[(&'static str, &str)], &str),
        expected: &HandshakeResult,
    ) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let origin = HeaderValue::from_static("posthaste.example");
        let code = SecretText::new("the-code");
        let status = StatusCode::from_u16(status).unwrap();
        let asked = (validation, &origin, &code);
        let answer = judge_response(
            asked,
            can_call_back,
            status,
            &headers.collect(),
            body.as_bytes(),
        );
        assert_eq!(answer, *expected, "{body}");
    }

    fn consented(per_minute: Option<u32>) -> HandshakeResult {
        HandshakeResult::Consented {
            rate: AllowedRate(per_minute),
        }
    }

    fn refused(reason: &str) -> HandshakeResult {
        HandshakeResult::Refused {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn the_header_is_the_consent_and_not_the_status() {
        let check = |status, headers: &[_], expected| {
            check(
                EndpointValidation::CloudEvents,
                false,
                (status, headers, ""),
                &expected,
            );
        };
        let origin = "webhook-allowed-origin";
        let rate = "webhook-allowed-rate";
        check(
            200,
            &[(origin, "posthaste.example"), (rate, "120")],
            consented(Some(120)),
        );
        check(405, &[(origin, "*"), (rate, "*")], consented(None));
        check(500, &[(origin, "*")], consented(None));
        let silent = "the endpoint did not consent: it answered 200 without WebHook-Allowed-Origin";
        check(200, &[("allow", "POST")], refused(silent));
        for other in [
            "Posthaste.example",
            "posthaste.example:443",
            "*.example",
            "",
        ] {
            let reason = format!(
                r#"the endpoint allows the origin "{other}", and this one is "posthaste.example""#
            );
            check(200, &[(origin, other)], refused(&reason));
        }
        let rated = "the endpoint's WebHook-Allowed-Rate: expected a whole number of requests a minute, 1 or \
            more, or *";
        check(200, &[(origin, "*"), (rate, "0")], refused(rated));
    }

    /// An endpoint without the header may still call back; one that names another origin may not.
    #[test]
    fn missing_origin_header_allows_a_callback_and_another_does_not() {
        let said = HandshakeResult::Awaited {
            said: "it answered 405 without WebHook-Allowed-Origin".to_owned(),
        };
        check(EndpointValidation::CloudEvents, true, (405, &[], ""), &said);
        let reason =
            r#"the endpoint allows the origin "other", and this one is "posthaste.example""#;
        check(
            EndpointValidation::CloudEvents,
            true,
            (200, &[("webhook-allowed-origin", "other")], ""),
            &refused(reason),
        );
    }

    /// Only the beginning of a long origin is kept.
    #[test]
    fn long_origin_is_cut_in_the_reason() {
        let kept = "a".repeat(199);
        let reason = format!(
            r#"the endpoint allows the origin "{kept}, and this one is "posthaste.example""#
        );
        let headers = [("webhook-allowed-origin", "a".repeat(5_000))];
        let headers = headers
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        check(
            EndpointValidation::CloudEvents,
            false,
            (200, &headers, ""),
            &refused(&reason),
        );
    }

    #[test]
    fn event_grid_s_code_must_come_back_with_200() {
        let check = |can_call_back, status, body: &str, expected| {
            check(
                EndpointValidation::EventGrid,
                can_call_back,
                (status, &[], body),
                &expected,
            );
        };
        check(
            false,
            200,
            r#"{"validationResponse":"the-code"}"#,
            consented(None),
        );
        check(
            false,
            200,
            r#"{"ValidationResponse":"the-code","more":1}"#,
            consented(None),
        );
        let refusal = "the endpoint answered 202 to the validation event";
        check(
            true,
            202,
            r#"{"validationResponse":"the-code"}"#,
            refused(refusal),
        );
        let silent = "it answered 200 without the validation code";
        for body in [
            "",
            "[]",
            "{}",
            r#"{"validationResponse":"the-Code"}"#,
            r#"{"validationResponse":1}"#,
        ] {
            check(
                false,
                200,
                body,
                refused(&format!("the endpoint did not consent: {silent}")),
            );
            check(
                true,
                200,
                body,
                HandshakeResult::Awaited {
                    said: silent.to_owned(),
                },
            );
        }
    }

    #[test]
    fn an_allowed_rate_is_a_positive_whole_number_or_a_star() {
        let check = |text: &str, expected: Result<Option<u32>, AllowedRateError>| {
            assert_eq!(
                AllowedRate::parse(text).map(|rate| rate.0),
                expected,
                "{text}"
            );
        };
        check("100", Ok(Some(100)));
        check(" 007 ", Ok(Some(7)));
        check("*", Ok(None));
        check("99999999999999999999999", Ok(None));
        for bad in ["", "0", "000", "-1", "1.5", "+1", "1e3", "many", "**"] {
            check(bad, Err(AllowedRateError));
        }
    }
}
