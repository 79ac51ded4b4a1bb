//! The server's other scheme: a server that is asked with `https://` may speak plain HTTP, and the other way
//! round. One more request finds out, without a key.

use std::error::Error;
use std::io;
use std::iter;
use std::time::Duration;

use posthaste_core::api::problem::PROBLEM_CONTENT_TYPE;
use rustls::CertificateError;
use ureq::http::HeaderMap;
use ureq::http::header::CONTENT_TYPE;
use url::Url;

use super::agent::{ServerTrust, http_agent};

/// Longest time of that request.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The status with which servers of TLS answer plain HTTP, and the other way round.
const BAD_REQUEST: u16 = 400;

/// Whether the scheme may be the reason for this error: something listens there.
pub(super) fn may_be_wrong_scheme(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Timeout(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
            false
        }
        ureq::Error::Io(error) => {
            error.kind() != io::ErrorKind::ConnectionRefused && !is_untrusted_certificate(error)
        }
        error => !is_untrusted_certificate(error),
    }
}

/// Whether this may be the answer of a server of TLS to plain HTTP. posthaste answers with a
/// problem.
pub(super) fn is_tls_mismatch(status: u16, headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    status == BAD_REQUEST && !media_type.is_some_and(|it| it.starts_with(PROBLEM_CONTENT_TYPE))
}

/// The server's address with the other scheme, if it answers there.
pub(super) fn url_with_other_scheme(base: &Url, trust: &ServerTrust) -> Option<Url> {
    let url = swap_scheme(base)?;
    let health = format!("{}/health", url.as_str().trim_end_matches('/'));
    let request = http_agent(&url, trust)
        .get(health)
        .config()
        .timeout_global(Some(PROBE_TIMEOUT))
        .build();
    let answers = match request.call() {
        Ok(response) => url.scheme() == "https" || response.status() != BAD_REQUEST,
        Err(error) => is_untrusted_certificate(&error),
    };
    answers.then_some(url)
}

/// The same host and port with the other scheme.
fn swap_scheme(base: &Url) -> Option<Url> {
    let mut url = base.clone();
    let port = base.port_or_known_default();
    url.set_scheme(if base.scheme() == "https" {
        "http"
    } else {
        "https"
    })
    .ok()?;
    url.set_port(port).ok()?;
    Some(url)
}

/// Whether a certificate was not trusted: then the server speaks TLS.
fn is_untrusted_certificate(error: &(dyn Error + 'static)) -> bool {
    certificate_error(error).is_some()
}

/// Whether the authority of the server's certificate is not known.
pub(crate) fn is_of_unknown_authority(error: &ureq::Error) -> bool {
    matches!(
        certificate_error(error),
        Some(CertificateError::UnknownIssuer)
    )
}

/// Whether the server's certificate is of another name than the one that was asked for.
pub(crate) fn is_of_another_name(error: &ureq::Error) -> bool {
    use CertificateError::{NotValidForName, NotValidForNameContext};
    let distrust = certificate_error(error);
    matches!(
        distrust,
        Some(NotValidForName | NotValidForNameContext { .. })
    )
}

/// The reason why a certificate was not trusted.
fn certificate_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a CertificateError> {
    iter::successors(Some(error), |error| inner_error(*error))
        .filter_map(|error| error.downcast_ref())
        .find_map(|error| match error {
            rustls::Error::InvalidCertificate(reason) => Some(reason),
            _ => None,
        })
}

/// The error below this one. `io::Error::source` skips the wrapped error and shows the source of
/// that, and ureq's errors have no source.
fn inner_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return error.get_ref().map(|inner| inner as _);
    }
    match error.downcast_ref() {
        Some(ureq::Error::Io(error)) => Some(error),
        Some(ureq::Error::Rustls(error)) => Some(error),
        _ => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderValue;

    #[test]
    fn the_other_address_keeps_the_port() {
        let check = |base: &str, expected: &str| {
            assert_eq!(
                swap_scheme(&base.parse().unwrap()).unwrap().as_str(),
                expected,
                "{base}"
            );
        };
        check("https://127.0.0.1:8080/a", "http://127.0.0.1:8080/a");
        check("http://h:8443", "https://h:8443/");
        check("https://h/", "http://h:443/");
        check("http://h/", "https://h:80/");
    }

    /// Refused connection, unknown host and untrusted certificate say nothing about the scheme.
    #[test]
    fn scheme_is_in_doubt_only_if_the_server_listens() {
        let check = |error: io::Error, expected| {
            assert_eq!(may_be_wrong_scheme(&ureq::Error::Io(error)), expected);
        };
        check(io::ErrorKind::ConnectionRefused.into(), false);
        check(io::ErrorKind::UnexpectedEof.into(), true);
        let untrusted = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        check(io::Error::other(untrusted.clone()), false);
        assert!(!may_be_wrong_scheme(&ureq::Error::Rustls(untrusted)));
        assert!(!may_be_wrong_scheme(&ureq::Error::HostNotFound));
    }

    #[test]
    fn a_problem_is_posthaste_s_own_answer() {
        let headers = |media_type: &'static str| {
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))])
        };
        assert!(!is_tls_mismatch(400, &headers(PROBLEM_CONTENT_TYPE)));
        assert!(
            is_tls_mismatch(400, &headers("text/html")) && is_tls_mismatch(400, &HeaderMap::new())
        );
        assert!(!is_tls_mismatch(502, &headers("text/html")));
    }
}
