//! Two look-ups of one name, for IPv4 and for IPv6, as one answer (RFC 8305, section 3).

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;

use futures_util::future::{Either, select};

use super::LookupError;

type Answer = Result<Vec<IpAddr>, LookupError>;

/// The addresses of both families, IPv4 first. Once one family has given addresses, or has said that the name does not
/// exist, the other one has as long as `delay` takes. A family without an answer of use leaves it to the other.
pub(super) async fn both_families(
    v4: impl Future<Output = Answer>,
    v6: impl Future<Output = Answer>,
    delay: impl Future<Output = ()>,
) -> Answer {
    let (v4, v6, delay) = (pin!(v4), pin!(v6), pin!(delay));
    let (first, second) = match select(v4, v6).await {
        Either::Left((v4, v6)) if is_usable(&v4) => (Some(v4), in_time(v6, delay).await),
        Either::Right((v6, v4)) if is_usable(&v6) => (in_time(v4, delay).await, Some(v6)),
        Either::Left((v4, v6)) => (Some(v4), Some(v6.await)),
        Either::Right((v6, v4)) => (Some(v4.await), Some(v6)),
    };
    joined(first, second)
}

fn is_usable(answer: &Answer) -> bool {
    match answer {
        Ok(addresses) => !addresses.is_empty(),
        Err(error) => matches!(error, LookupError::DoesNotExist),
    }
}

async fn in_time(
    answer: impl Future<Output = Answer> + Unpin,
    delay: impl Future<Output = ()> + Unpin,
) -> Option<Answer> {
    match select(answer, delay).await {
        Either::Left((answer, _)) => Some(answer),
        Either::Right(_) => None,
    }
}

/// Addresses of either family count, then the word that the name does not exist, then any failure.
fn joined(v4: Option<Answer>, v6: Option<Answer>) -> Answer {
    let (mut addresses, mut failure) = (Vec::new(), None);
    for answer in [v4, v6].into_iter().flatten() {
        match answer {
            Ok(found) => addresses.extend(found),
            Err(LookupError::DoesNotExist) => failure = Some(LookupError::DoesNotExist),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(failure) if addresses.is_empty() => Err(failure),
        _ => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    /// What a look-up of one family comes to; `None` is silence.
    type Script = Option<Result<&'static [&'static str], bool>>;

    async fn family(script: Script) -> Answer {
        match script {
            Some(Ok(addresses)) => Ok(parsed(addresses)),
            Some(Err(true)) => Err(LookupError::DoesNotExist),
            Some(Err(false)) => Err(LookupError::NoAnswer("servfail".into())),
            None => pending().await,
        }
    }

    fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    /// Addresses, or whether the name does not exist.
    async fn check(v4: Script, v6: Script, expected: Result<&[&str], bool>) {
        let answer = both_families(family(v4), family(v6), ready(())).await;
        let answer = answer.map_err(|error| matches!(error, LookupError::DoesNotExist));
        assert_eq!(answer, expected.map(parsed), "{v4:?} {v6:?}");
    }

    const V4: Script = Some(Ok(&["192.0.2.1"]));
    const V6: Script = Some(Ok(&["2001:db8::1"]));
    const NONE: Script = Some(Ok(&[]));
    const UNKNOWN: Script = Some(Err(true));
    const FAILED: Script = Some(Err(false));

    #[tokio::test]
    async fn a_silent_family_is_not_waited_for() {
        check(V4, None, Ok(&["192.0.2.1"])).await;
        check(None, V6, Ok(&["2001:db8::1"])).await;
        check(UNKNOWN, None, Err(true)).await;
        check(None, UNKNOWN, Err(true)).await;
    }

    #[tokio::test]
    async fn the_addresses_of_both_families_are_taken_together() {
        check(V4, V6, Ok(&["192.0.2.1", "2001:db8::1"])).await;
        check(V4, NONE, Ok(&["192.0.2.1"])).await;
        check(V4, FAILED, Ok(&["192.0.2.1"])).await;
        check(V4, UNKNOWN, Ok(&["192.0.2.1"])).await;
        check(FAILED, V6, Ok(&["2001:db8::1"])).await;
        check(NONE, V6, Ok(&["2001:db8::1"])).await;
    }

    #[tokio::test]
    async fn without_addresses_the_surest_reason_counts() {
        check(NONE, NONE, Ok(&[])).await;
        check(FAILED, NONE, Err(false)).await;
        check(FAILED, UNKNOWN, Err(true)).await;
        check(UNKNOWN, FAILED, Err(true)).await;
    }
}
