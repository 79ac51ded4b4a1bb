//! The head of a request, before any function sees it: HTTP's rules, and the length of its URL.

use std::time::Duration;

use ::http::request::Parts;
use ::http::{Version, header};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{self, LOG_TEXT_CHARS_MAX, REQUEST_TARGET_BYTES_MAX};

/// Wait that is asked of a request that found no place.
const CROWDED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Problem of a head, if it has one.
pub(super) fn find_problem(head: &Parts) -> Option<ApiProblem> {
    let url_bytes = head
        .uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if url_bytes > REQUEST_TARGET_BYTES_MAX {
        let detail = format!(
            "the path and query have {url_bytes} bytes; expected at most {REQUEST_TARGET_BYTES_MAX}; an event is \
             found by the first {LOG_TEXT_CHARS_MAX} characters of its id, as `id` or in base64url as `id64`"
        );
        return Some(ApiProblem::new(ProblemKind::UriTooLong).detail(detail));
    }
    if has_steps(head.uri.path()) {
        let detail = "a segment of the path is a step (`.` or `..`), also as `%2e`, or behind `%2f` or \
                      `%5c`; an id with such a segment goes into the query, as `id`";
        return Some(ApiProblem::new(ProblemKind::BadRequest).detail(detail));
    }
    // RFC 9112, section 3.2. One that is empty is one.
    let hosts = head.headers.get_all(header::HOST).iter().count();
    if head.version >= Version::HTTP_11 && hosts != 1 {
        let detail = format!("expected one header Host, found {hosts}");
        return Some(
            ApiProblem::new(ProblemKind::BadRequest)
                .detail(detail)
                .member("host"),
        );
    }
    None
}

/// Whether a path leads to another one for a reader that decodes it and takes its steps, as proxies
/// do. What is a path of the public for them would be one of operators here.
fn has_steps(path: &str) -> bool {
    if !path.contains('.') && !path.contains('%') {
        return false;
    }
    model::has_steps(&decode_steps(path))
}

/// The path with its encoded dots and slashes as themselves, and the rest as it is.
fn decode_steps(path: &str) -> String {
    const ENCODED: [(&str, char); 3] = [("2e", '.'), ("2f", '/'), ("5c", '\\')];
    let mut parts = path.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let known = part.get(..2).and_then(|digits| {
            ENCODED
                .iter()
                .find(|(encoded, _)| digits.eq_ignore_ascii_case(encoded))
        });
        if let Some((_, character)) = known {
            decoded.push(*character);
            decoded.push_str(&part[2..]);
        } else {
            decoded.push('%');
            decoded.push_str(part);
        }
    }
    decoded
}

/// The answer where every place for requests is taken.
pub(super) fn crowded_problem() -> ApiProblem {
    let detail = "all places for requests are taken; serve --connections-max bounds them";
    ApiProblem::new(ProblemKind::BackPressure)
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
            let problem = find_problem(&head(&url, Version::HTTP_11, &[("host", "h")]));
            assert_eq!(
                problem.map(|problem| problem.status.as_u16()),
                expected,
                "{bytes}"
            );
        };
        check(REQUEST_TARGET_BYTES_MAX, None);
        check(REQUEST_TARGET_BYTES_MAX + 1, Some(414));
        check(60_000, Some(414));
    }

    #[test]
    fn path_with_encoded_steps_is_refused() {
        let check = |path: &str, expected| {
            let problem = find_problem(&head(path, Version::HTTP_11, &[("host", "h")]));
            let status = problem.map(|problem| problem.status.as_u16());
            assert_eq!(status, expected, "{path}");
        };
        for path in [
            "/topics/t/events/..%2f..%2f..%2ftopics",
            "/topics/t/events/%2e%2e",
            "/topics/t/events/%2E%2e/%2e%2E",
            "/topics/t/events/.%2e",
            "/topics/t/events/%2e",
            "/topics/t/events/a%2F%2e%2E%2fb",
            "/topics/t/events/a%5c..%5Cb",
            "/topics/t/events/a\\..\\b",
            "/topics/t/events/..",
            "/topics/./t",
            "/../topics",
            "/validate/a/b/..%2f..?x",
        ] {
            check(path, Some(400));
        }
        for path in [
            "/",
            "/topics/t/events/a%2Fb",
            "/topics/t/events/a..b",
            "/topics/t/events/...",
            "/topics/t/events/a.%2e",
            "/topics/t/events/%252e%252e",
            "/topics/t/events/100%",
            "/topics/t/events/%2",
            "/topics/t/events/a?id=..%2f..",
            "/.well-known/webhook-keys",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn a_host_is_wanted_once_since_http_1_1() {
        let check = |version, hosts: &[(&str, &str)], expected| {
            let problem = find_problem(&head("/health", version, hosts));
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
