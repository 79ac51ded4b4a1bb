//! The head of a request, before any function sees it: HTTP's rules, and the length of its URL.

use std::time::Duration;

use ::http::request::Parts;
use ::http::{Version, header};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::URL_BYTES_MAX;

/// Wait that is asked of a request that found no place.
const CROWDED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Problem of a head, if it has one.
pub(super) fn check(head: &Parts) -> Option<Problem> {
    let url_bytes = head
        .uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if url_bytes > URL_BYTES_MAX {
        let detail =
            format!("the path and query have {url_bytes} bytes; expected at most {URL_BYTES_MAX}");
        return Some(Problem::new(ProblemKind::UriTooLong).detail(detail));
    }
    // RFC 9112, section 3.2. One that is empty is one.
    let hosts = head.headers.get_all(header::HOST).iter().count();
    if head.version >= Version::HTTP_11 && hosts != 1 {
        let detail = format!("expected one header Host, found {hosts}");
        return Some(
            Problem::new(ProblemKind::BadRequest)
                .detail(detail)
                .member("host"),
        );
    }
    None
}

/// The answer where every place for requests is taken.
pub(super) fn crowded() -> Problem {
    let detail = "all places for requests are taken; serve --connections-max bounds them";
    Problem::new(ProblemKind::BackPressure)
        .detail(detail)
        .retry_after(CROWDED_RETRY_AFTER)
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
            assert_eq!(
                problem.map(|problem| problem.status.as_u16()),
                expected,
                "{bytes}"
            );
        };
        check(URL_BYTES_MAX, None);
        check(URL_BYTES_MAX + 1, Some(414));
        check(60_000, Some(414));
    }

    #[test]
    fn a_host_is_wanted_once_since_http_1_1() {
        let check = |version, hosts: &[(&str, &str)], expected| {
            let problem = check(&head("/health", version, hosts));
            assert_eq!(
                problem.map(|problem| problem.status.as_u16()),
                expected,
                "{version:?} {hosts:?}"
            );
        };
        check(Version::HTTP_11, &[("host", "h")], None);
        check(Version::HTTP_11, &[("host", "")], None);
        check(Version::HTTP_11, &[], Some(400));
        check(Version::HTTP_11, &[("host", "h"), ("host", "h")], Some(400));
        check(Version::HTTP_10, &[], None);
    }
}
