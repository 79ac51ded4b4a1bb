//! Commands that wait: the time between two requests, and requests that are repeated while they
//! fail.

use std::time::Duration;

pub(super) use crate::client::sleep_for;
use crate::client::{ClientError, ServerRefusal};

/// The time between two requests.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The longest time between two requests that fail. Each waits twice as long as the one before.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Statuses from 400 to 499 that another try may change: the request came too slowly, too early or
/// too often.
const PASSING: [u16; 3] = [408, 425, 429];

/// Asks until there is an answer, or a failure that another try cannot change. Before each further
/// try, `rest` gets the failure and the time to wait.
pub(super) fn until_answered<T>(
    mut ask: impl FnMut() -> Result<T, ClientError>,
    mut rest: impl FnMut(&ClientError, Duration),
) -> Result<T, ClientError> {
    let mut wait = LOOK_EVERY;
    loop {
        match ask() {
            Err(error) if may_heal(&error) => rest(&error, wait),
            answer => return answer,
        }
        wait = (wait * 2).min(WAIT_MAX);
    }
}

fn may_heal(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refusal) => may_pass(refusal),
        ClientError::Unreachable { .. } | ClientError::Answer { .. } => true,
        ClientError::Address { .. }
        | ClientError::Authorities { .. }
        | ClientError::OtherScheme { .. }
        | ClientError::Endless { .. } => false,
    }
}

fn may_pass(refusal: &ServerRefusal) -> bool {
    refusal.status >= 500 || PASSING.contains(&refusal.status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderMap;

    fn refused(status: u16) -> ClientError {
        ClientError::Refused(Box::new(ServerRefusal::from_response(
            status,
            &HeaderMap::new(),
            b"",
        )))
    }

    /// Asks a server that fails in these ways, and then answers. The seconds of the waits, and the
    /// status of the failure that ended it.
    fn check(failures: &[u16], waits: &[u64], ended: Option<u16>) {
        let mut failures = failures.iter().copied();
        let mut waited = Vec::new();
        let ask = || {
            failures
                .next()
                .map_or(Ok(()), |status| Err(refused(status)))
        };
        let answer = until_answered(ask, |_, wait| waited.push(wait.as_secs()));
        let status = answer.err().map(|error| match error {
            ClientError::Refused(refusal) => refusal.status,
            other => panic!("{other}"),
        });
        assert_eq!((waited.as_slice(), status), (waits, ended));
    }

    #[test]
    fn a_failure_that_may_pass_is_waited_for_ever_longer() {
        check(&[], &[], None);
        check(&[503, 429, 408], &[2, 4, 8], None);
        check(&[500; 7], &[2, 4, 8, 16, 32, 60, 60], None);
    }

    #[test]
    fn a_refusal_that_stays_is_the_end() {
        check(&[404], &[], Some(404));
        check(&[502, 401], &[2], Some(401));
        check(&[400], &[], Some(400));
    }

    #[test]
    fn unreachable_server_may_heal_and_wrong_scheme_may_not() {
        let url = || "http://127.0.0.1:1".parse().unwrap();
        let away = ureq::Error::ConnectionFailed;
        assert!(may_heal(&ClientError::Unreachable {
            url: url(),
            source: Box::new(away)
        }));
        assert!(!may_heal(&ClientError::OtherScheme { url: url() }));
    }
}
