//! The head of a request, before any function sees it: HTTP's rules, the length of its URL, and requests of
//! operators.

use std::time::Duration;

use ::http::request::Parts;
use ::http::{HeaderMap, Version, header};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::{Secret, URL_BYTES_MAX};

/// Wait that is asked of a request that found no place.
const CROWDED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Paths that are always answered.
const OPERATORS_PATHS: [&str; 2] = ["/health", "/metrics"];

/// Problem of a head, if it has one.
pub(super) fn check(head: &Parts) -> Option<Problem> {
    let url_bytes = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if url_bytes > URL_BYTES_MAX {
        let detail = format!("the path and query have {url_bytes} bytes; expected at most {URL_BYTES_MAX}");
        return Some(Problem::new(ProblemKind::UriTooLong).detail(detail));
    }
    // RFC 9112, section 3.2. One that is empty is one.
    let hosts = head.headers.get_all(header::HOST).iter().count();
    if head.version >= Version::HTTP_11 && hosts != 1 {
        let detail = format!("expected one header Host, found {hosts}");
        return Some(Problem::new(ProblemKind::BadRequest).detail(detail).member("host"));
    }
    None
}

/// True for a request of an operator: for health or metrics, or with the admin key.
pub(super) fn is_operators(head: &Parts, admin_key: &Secret) -> bool {
    OPERATORS_PATHS.contains(&head.uri.path())
        || bearer(&head.headers).is_some_and(|offered| admin_key.matches(offered))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// The answer where every place for requests is taken.
pub(super) fn crowded() -> Problem {
    let detail = "all places for requests are taken; serve --connections-max bounds them";
    Problem::new(ProblemKind::BackPressure).detail(detail).retry_after(CROWDED_RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::Request;

    fn head(url: &str, version: Version, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(url).version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_url_has_a_limit() {
        let check = |bytes: usize, expected| {
            let url = format!("/{}", "x".repeat(bytes - 1));
            let problem = check(&head(&url, Version::HTTP_11, &[("host", "h")]));
            assert_eq!(problem.map(|problem| problem.status.as_u16()), expected, "{bytes}");
        };
        check(URL_BYTES_MAX, None);
        check(URL_BYTES_MAX + 1, Some(414));
        check(60_000, Some(414));
    }

    #[test]
    fn a_host_is_wanted_once_since_http_1_1() {
        let check = |version, hosts: &[(&str, &str)], expected| {
            let problem = check(&head("/health", version, hosts));
            assert_eq!(problem.map(|problem| problem.status.as_u16()), expected, "{version:?} {hosts:?}");
        };
        check(Version::HTTP_11, &[("host", "h")], None);
        check(Version::HTTP_11, &[("host", "")], None);
        check(Version::HTTP_11, &[], Some(400));
        check(Version::HTTP_11, &[("host", "h"), ("host", "h")], Some(400));
        check(Version::HTTP_10, &[], None);
    }

    #[test]
    fn an_operator_is_known_by_the_path_or_the_admin_key() {
        let key = Secret::new("the-admin-key");
        let check = |url: &str, authorization: &str, expected| {
            let head = head(url, Version::HTTP_11, &[("host", "h"), ("authorization", authorization)]);
            assert_eq!(is_operators(&head, &key), expected, "{url} {authorization}");
        };
        check("/health", "", true);
        check("/metrics?x", "", true);
        check("/topics", "", false);
        check("/topics", "Bearer the-admin-key", true);
        check("/topics", "bearer  the-admin-key", true);
        check("/topics", "Bearer another", false);
        check("/topics", "Basic the-admin-key", false);
        check("/healthy", "", false);
    }
}
