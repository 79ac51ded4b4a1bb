//! Two look-ups of one name, for IPv4 and for IPv6, as one answer (RFC 8305, section 3).

use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use posthaste_ports::Clock;

use super::LookupError;

/// Time that IPv4 addresses wait for the answer about IPv6. RFC 8305 recommends 50 ms. This is
/// longer, because all addresses of a host are validated together, and no attempt waits for it
/// while a name is remembered.
const RESOLUTION_DELAY: Duration = Duration::from_millis(250);

/// Time that IPv6 addresses wait for the answer about IPv4: time for a server that is slow, and
/// little of an attempt's timeout where a server is silent about IPv4.
const IPV4_DELAY: Duration = Duration::from_secs(2);

type FamilyAnswer = Result<Vec<IpAddr>, LookupError>;

/// The addresses of both families, IPv4 first. Once the answer about IPv4 is there and of use, the
/// one about IPv6 has [`RESOLUTION_DELAY`] more. Once there are IPv6 addresses, the answer about
/// IPv4 has [`IPV4_DELAY`] more; without them it is waited for to its own end, since most hosts
/// have IPv4 addresses, and some no others.
pub(super) async fn both_families(
    v4: impl Future<Output = FamilyAnswer>,
    v6: impl Future<Output = FamilyAnswer>,
    clock: &impl Clock,
) -> FamilyAnswer {
    match select(pin!(v4), pin!(v6)).await {
        Either::Left((v4, v6)) if is_usable(&v4) => {
            join_families(v4, answer_within(v6, RESOLUTION_DELAY, clock).await)
        }
        Either::Left((v4, v6)) => join_families(v4, Some(v6.await)),
        Either::Right((v6, v4)) if has_addresses(&v6) => {
            match answer_within(v4, IPV4_DELAY, clock).await {
                Some(v4) => join_families(v4, Some(v6)),
                None => v6,
            }
        }
        Either::Right((v6, v4)) => join_families(v4.await, Some(v6)),
    }
}

fn has_addresses(answer: &FamilyAnswer) -> bool {
    answer.as_ref().is_ok_and(|addresses| !addresses.is_empty())
}

fn is_usable(answer: &FamilyAnswer) -> bool {
    match answer {
        Ok(addresses) => !addresses.is_empty(),
        Err(error) => matches!(error, LookupError::DoesNotExist),
    }
}

/// The answer, if it comes before that much time has passed.
async fn answer_within(
    answer: impl Future<Output = FamilyAnswer> + Unpin,
    length: Duration,
    clock: &impl Clock,
) -> Option<FamilyAnswer> {
    match select(answer, pin!(clock.sleep(length))).await {
        Either::Left((answer, _)) => Some(answer),
        Either::Right(_) => None,
    }
}

/// Addresses of either family count. Only IPv4's answer decides that a name does not exist: some
/// name servers say so of every name when they are asked for IPv6 (RFC 4074, section 4.2).
fn join_families(v4: FamilyAnswer, v6: Option<FamilyAnswer>) -> FamilyAnswer {
    match (v4, v6) {
        (Ok(mut addresses), Some(Ok(more))) => {
            addresses.extend(more);
            Ok(addresses)
        }
        (Err(_), Some(Ok(addresses))) if !addresses.is_empty() => Ok(addresses),
        (v4, _) => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    /// The answer of a look-up of one family; `None` is silence.
    type Script = Option<Result<&'static [&'static str], bool>>;

    /// A family whose look-up comes to this after so long.
    async fn family(clock: &ManualClock, after_ms: u64, script: Script) -> FamilyAnswer {
        clock.sleep(Duration::from_millis(after_ms)).await;
        match script {
            Some(Ok(addresses)) => Ok(parsed(addresses)),
            Some(Err(true)) => Err(LookupError::DoesNotExist),
            Some(Err(false)) => Err(LookupError::NoAnswer("servfail".into())),
            None => pending().await,
        }
    }

    fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
        addresses
            .iter()
            .map(|address| address.parse().unwrap())
            .collect()
    }

    /// Looks both up, each family with its delay in milliseconds, and returns how long it took.
    async fn looked_up(v4: (u64, Script), v6: (u64, Script)) -> (FamilyAnswer, u64) {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let both = both_families(
            family(&clock, v4.0, v4.1),
            family(&clock, v6.0, v6.1),
            &clock,
        );
        let time = async {
            loop {
                // Tasks that are awake run first; then time passes up to the next one's wake-up.
                tokio::task::yield_now().await;
                clock.advance_to_next();
            }
        };
        let answer = tokio::select! {
            biased;
            answer = both => answer,
            () = time => unreachable!("it never ends"),
        };
        (answer, clock.now().as_millis())
    }

    /// Addresses, or whether the name does not exist.
    async fn check(v4: Script, v6: Script, expected: Result<&[&str], bool>) {
        for (v4_ms, v6_ms) in [(1, 2), (2, 1)] {
            let (answer, _) = looked_up((v4_ms, v4), (v6_ms, v6)).await;
            let answer = answer.map_err(|error| matches!(error, LookupError::DoesNotExist));
            assert_eq!(answer, expected.map(parsed), "{v4:?} {v6:?}");
        }
    }

    const V4: Script = Some(Ok(&["192.0.2.1"]));
    const V6: Script = Some(Ok(&["2001:db8::1"]));
    const NONE: Script = Some(Ok(&[]));
    const UNKNOWN: Script = Some(Err(true));
    const FAILED: Script = Some(Err(false));

    #[tokio::test]
    async fn silence_about_ipv6_is_not_waited_for() {
        check(V4, None, Ok(&["192.0.2.1"])).await;
        check(UNKNOWN, None, Err(true)).await;
    }

    #[tokio::test]
    async fn the_addresses_of_both_families_are_taken_together() {
        check(V4, V6, Ok(&["192.0.2.1", "2001:db8::1"])).await;
        check(V4, NONE, Ok(&["192.0.2.1"])).await;
        check(V4, FAILED, Ok(&["192.0.2.1"])).await;
        check(V4, UNKNOWN, Ok(&["192.0.2.1"])).await;
        check(FAILED, V6, Ok(&["2001:db8::1"])).await;
        check(NONE, V6, Ok(&["2001:db8::1"])).await;
        check(UNKNOWN, V6, Ok(&["2001:db8::1"])).await;
    }

    #[tokio::test]
    async fn only_the_answer_about_ipv4_says_that_a_name_does_not_exist() {
        check(NONE, NONE, Ok(&[])).await;
        check(FAILED, NONE, Err(false)).await;
        check(FAILED, FAILED, Err(false)).await;
        check(FAILED, UNKNOWN, Err(false)).await;
        check(NONE, UNKNOWN, Ok(&[])).await;
        check(UNKNOWN, NONE, Err(true)).await;
        check(UNKNOWN, FAILED, Err(true)).await;
        check(UNKNOWN, UNKNOWN, Err(true)).await;
    }

    /// The addresses, and the milliseconds after which they are known.
    async fn check_time(v4_ms: u64, v6: (u64, Script), expected: (&[&str], u64)) {
        let (answer, ms) = looked_up((v4_ms, V4), v6).await;
        assert_eq!(
            (answer.unwrap(), ms),
            (parsed(expected.0), expected.1),
            "{v4_ms} {v6:?}"
        );
    }

    /// Waiting for IPv6 begins with the answer about IPv4, however slow the server is.
    #[tokio::test]
    async fn ipv6_wait_begins_with_the_ipv4_answer() {
        let both: &[&str] = &["192.0.2.1", "2001:db8::1"];
        check_time(301, (300, V6), (both, 301)).await;
        check_time(300, (300, V6), (both, 300)).await;
        check_time(300, (549, V6), (both, 549)).await;
        check_time(300, (551, V6), (&["192.0.2.1"], 550)).await;
        check_time(300, (0, None), (&["192.0.2.1"], 550)).await;
    }

    /// The look-up of IPv4 is awaited to its own end if no IPv6 addresses are known.
    #[tokio::test]
    async fn ipv4_answer_is_awaited_to_its_end_without_ipv6() {
        for v6 in [NONE, UNKNOWN, FAILED] {
            check_time(5_000, (1, v6), (&["192.0.2.1"], 5_000)).await;
        }
    }

    #[tokio::test]
    async fn ipv6_addresses_wait_two_seconds_for_the_answer_about_ipv4() {
        let (v6, both): (&[&str], &[&str]) = (&["2001:db8::1"], &["192.0.2.1", "2001:db8::1"]);
        check_time(2_009, (10, V6), (both, 2_009)).await;
        check_time(2_011, (10, V6), (v6, 2_010)).await;
        let (silent, ms) = looked_up((0, None), (10, V6)).await;
        assert_eq!((silent.unwrap(), ms), (parsed(v6), 2_010));
    }
}
