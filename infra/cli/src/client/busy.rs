//! A server that is too busy for a request: when it is sent again.

use std::thread;
use std::time::Duration;

use ureq::http::Method;

use super::problem::ServerRefusal;

/// Most times that a request is sent again.
const RETRIES_MAX: u32 = 5;

/// Longest wait before one of them, so that a command ends within minutes. Where the server asks for
/// more, its answer is the end, and says when to try again.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The first wait where the server names no time, as gateways do. Each waits twice as long as the
/// one before.
const WAIT_FIRST: Duration = Duration::from_secs(1);

/// Whether a request that was refused like this may have been carried out: the
/// server, or a gateway before it, gave it up while it went on.
pub(super) fn leaves_doubt(refusal: &ServerRefusal) -> bool {
    refusal.status == 503
}

/// The wait before a request is sent again that was refused and sent again so often; `None` where
/// this refusal is the end. With 429 nothing was done. Where it may have been, what would be done
/// twice is not sent again.
pub(super) fn retry_wait(
    refusal: &ServerRefusal,
    method: &Method,
    retries: u32,
) -> Option<Duration> {
    let is_passing = refusal.status == 429 || leaves_doubt(refusal) && method.is_idempotent();
    if !is_passing || retries >= RETRIES_MAX {
        return None;
    }
    let asked = match &refusal.retry_after {
        // A time of day is not waited for.
        Some(text) => Duration::from_secs(text.trim().parse().ok()?),
        None => WAIT_FIRST * 2_u32.pow(retries),
    };
    (asked <= WAIT_MAX).then_some(asked)
}

/// Waits.
#[expect(
    clippy::disallowed_methods,
    reason = "a person waits, and their time is real"
)]
pub(crate) fn sleep_for(length: Duration) {
    thread::sleep(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::header::RETRY_AFTER;
    use ureq::http::{HeaderMap, HeaderValue};

    fn check(
        (status, retry_after): (u16, Option<&'static str>),
        method: &Method,
        retries: u32,
        expected: Option<u64>,
    ) {
        let header = retry_after.map(|text| (RETRY_AFTER, HeaderValue::from_static(text)));
        let headers: HeaderMap = header.into_iter().collect();
        let refusal = ServerRefusal::from_response(status, &headers, b"");
        let waited = retry_wait(&refusal, method, retries);
        let expected = expected.map(Duration::from_secs);
        assert_eq!(
            waited, expected,
            "{status} {retry_after:?} {method} {retries}"
        );
    }

    #[test]
    fn time_that_the_server_asks_for_is_waited_up_to_a_bound() {
        check((503, Some("5")), &Method::GET, 0, Some(5));
        check((503, Some("0")), &Method::PUT, 4, Some(0));
        check((429, Some("30")), &Method::GET, 0, Some(30));
        check((429, Some("31")), &Method::GET, 0, None);
        let date = "Fri, 31 Dec 2027 23:59:59 GMT";
        check((429, Some(date)), &Method::GET, 0, None);
    }

    #[test]
    fn without_a_time_the_waits_grow() {
        for (retries, seconds) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16)] {
            check((503, None), &Method::DELETE, retries, Some(seconds));
        }
        check((503, None), &Method::GET, RETRIES_MAX, None);
        check((503, Some("0")), &Method::GET, RETRIES_MAX, None);
    }

    /// Request that is not idempotent is sent again after 429, but not after 503.
    #[test]
    fn post_that_may_have_been_done_is_not_repeated() {
        check((503, Some("1")), &Method::POST, 0, None);
        check((429, Some("1")), &Method::POST, 0, Some(1));
    }

    #[test]
    fn other_refusals_are_the_end() {
        for status in [400, 404, 409, 412, 500, 502, 504, 507] {
            check((status, Some("1")), &Method::GET, 0, None);
        }
    }
}
