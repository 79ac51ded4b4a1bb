//! Verification of a request's signature, as a receiver does it.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use posthaste_core::model::{SigningSecret, Timestamp, signature};

/// The largest difference between a request's time and the receiver's clock (Standard Webhooks'
/// libraries).
const TOLERANCE: Duration = Duration::from_mins(5);

/// A signature is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A header is missing, or is not what it must be.
    #[error("the header {0} is missing or malformed")]
    Header(&'static str),
    /// An old request, sent again by somebody, or a clock that is wrong.
    #[error("webhook-timestamp is more than 5 minutes from the clock of this machine")]
    Time,
    /// Another secret, or a body that was altered.
    #[error("no signature fits the secret and the body")]
    Wrong,
}

/// Verifies a request with the secrets that may have signed it.
pub(crate) fn verify_signature(
    secrets: &[SigningSecret],
    headers: &HeaderMap,
    body: &Bytes,
    now: Timestamp,
) -> Result<(), SignatureError> {
    let id = required_header(headers, "webhook-id")?;
    let signatures = required_header(headers, "webhook-signature")?;
    let secs: u64 = required_header(headers, "webhook-timestamp")?
        .parse()
        .map_err(|_| SignatureError::Header("webhook-timestamp"))?;
    let at = Timestamp::from_millis(secs.saturating_mul(1000));
    if now.since(at).max(at.since(now)) > TOLERANCE {
        return Err(SignatureError::Time);
    }
    let is_signed = secrets.iter().any(|secret| {
        let secret = std::slice::from_ref(secret);
        let expected = signature::header_value(secret, id, at, std::slice::from_ref(body));
        signatures.split(' ').any(|it| it == expected)
    });
    if is_signed {
        Ok(())
    } else {
        Err(SignatureError::Wrong)
    }
}

fn required_header<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<&'a str, SignatureError> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.ok_or(SignatureError::Header(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_614_265_330_000);

    fn secret(byte: u8) -> SigningSecret {
        let made = posthaste_core::model::SignatureKind::V1.make_secret(&[byte; 32]);
        SigningSecret::parse(made.expose()).unwrap()
    }

    fn signed(secrets: &[SigningSecret], body: &Bytes) -> HeaderMap {
        let signatures = signature::header_value(secrets, "msg_1", NOW, std::slice::from_ref(body));
        let headers = [
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", &signatures),
        ];
        headers
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn any_secret_that_fits_any_signature_is_enough() {
        let body = Bytes::from_static(b"{}");
        let headers = signed(&[secret(1), secret(2)], &body);
        assert_eq!(
            verify_signature(&[secret(3), secret(2)], &headers, &body, NOW),
            Ok(())
        );
        assert_eq!(
            verify_signature(&[secret(3)], &headers, &body, NOW),
            Err(SignatureError::Wrong)
        );
        assert_eq!(
            verify_signature(&[secret(2)], &headers, &Bytes::from_static(b"[]"), NOW),
            Err(SignatureError::Wrong)
        );
    }

    #[test]
    fn an_old_request_and_one_without_its_headers_are_refused() {
        let body = Bytes::from_static(b"{}");
        let mut headers = signed(&[secret(1)], &body);
        let later = |minutes: u64| Timestamp::from_millis(NOW.as_millis() + minutes * 60_000);
        assert_eq!(
            verify_signature(&[secret(1)], &headers, &body, later(5)),
            Ok(())
        );
        assert_eq!(
            verify_signature(&[secret(1)], &headers, &body, later(6)),
            Err(SignatureError::Time)
        );
        headers.remove("webhook-id");
        assert_eq!(
            verify_signature(&[secret(1)], &headers, &body, NOW),
            Err(SignatureError::Header("webhook-id"))
        );
    }
}
