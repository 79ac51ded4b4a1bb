//! Endpoints and certificates, as they were seen without a request.

use std::net::IpAddr;
use std::time::Duration;

use super::check::{CheckResult, CheckView};
use crate::model::{AddressRefusal, Link, SendFailure, Timestamp};

/// The rest of a certificate's validity below which its renewal has failed: 14 days. Clients of
/// ACME renew a certificate of 90 days 30 days before its end, so that half of that time is over.
/// <https://letsencrypt.org/docs/integration-guide/#when-to-renew>
pub const CERTIFICATE_REST_MIN: Duration = Duration::from_hours(14 * 24);

/// The part of its validity that is left when a certificate of fewer than 42 days is renewed: a
/// third, as Certbot has it. One that is valid for six days is not late all its life.
const SHORT_REST_PART: u32 = 3;

/// Most addresses of a host, and most users of an endpoint, that are shown.
const SHOWN_MAX: usize = 3;

/// The validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateTimes {
    /// The begin of the validity.
    pub from: Timestamp,
    /// The end of the validity.
    pub until: Timestamp,
}

/// An endpoint that was connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectedEndpoint {
    /// All addresses of its host.
    pub addresses: Vec<IpAddr>,
    /// The address that was connected to.
    pub connected: IpAddr,
    /// The validity of its certificate. `None` without TLS, and where it cannot be read.
    pub certificate: Option<CertificateTimes>,
}

/// Why an endpoint was not connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointFault {
    /// The kind of failure.
    pub failure: SendFailure,
    /// The failure in a sentence that says more than its kind.
    pub text: Option<Box<str>>,
    /// The rule that refuses the endpoint's address.
    pub refusal: Option<AddressRefusal>,
}

impl EndpointFault {
    /// The fault of an endpoint whose address a rule refuses.
    pub fn address_refused(by: AddressRefusal) -> Self {
        Self {
            failure: SendFailure::AddressRefused,
            text: None,
            refusal: Some(by),
        }
    }
}

impl CertificateTimes {
    /// The rest of the validity at this time.
    fn time_left(self, now: Timestamp) -> Duration {
        self.until.since(now)
    }

    /// Whether it should have been renewed by now.
    fn is_late(self, now: Timestamp) -> bool {
        let third = self.until.since(self.from) / SHORT_REST_PART;
        self.time_left(now) < CERTIFICATE_REST_MIN.min(third)
    }
}

/// Whether a link can be connected to, by the rules of deliveries. `users` are the subscriptions
/// that have an endpoint on it.
pub fn endpoint_check(
    link: &Link,
    users: &[String],
    look: &Result<ConnectedEndpoint, EndpointFault>,
    now: Timestamp,
) -> CheckView {
    let whose = format!("{link} ({})", list_some(users));
    match look {
        Ok(seen) => seen_check(whose, link, seen, now),
        Err(fault) => fault_check(whose, fault),
    }
}

fn seen_check(whose: String, link: &Link, seen: &ConnectedEndpoint, now: Timestamp) -> CheckView {
    let addresses: Vec<_> = seen.addresses.iter().map(ToString::to_string).collect();
    let addresses = list_some(&addresses);
    let connected = if seen.addresses.len() == 1 {
        format!("connected to {addresses}")
    } else {
        format!("connected to {} of {addresses}", seen.connected)
    };
    match (link.is_tls, seen.certificate) {
        (false, _) => CheckView::passed("endpoint", whose, format!("{connected}, without TLS")),
        (true, Some(times)) => {
            let found = format!("{connected}, {}", certificate_text(times, now));
            let check = CheckView::passed("endpoint", whose, found);
            if times.is_late(now) {
                let advice = "whoever runs the endpoint must renew its certificate: after its end \
                              no delivery succeeds";
                check.with_result(CheckResult::Warning, advice)
            } else {
                check
            }
        }
        (true, None) => {
            let found = format!("{connected}, TLS verified, the certificate's end cannot be read");
            CheckView::passed("endpoint", whose, found)
        }
    }
}

/// The end of a certificate that is trusted.
fn certificate_text(times: CertificateTimes, now: Timestamp) -> String {
    let days = times.time_left(now).as_secs() / (24 * 60 * 60);
    let date = times.until.strftime("%Y-%m-%d");
    format!("TLS verified, the certificate ends in {days} days ({date})")
}

/// The certificate of a server that was connected to over TLS.
pub fn certificate_check(
    of: &str,
    look: &Result<ConnectedEndpoint, EndpointFault>,
    now: Timestamp,
) -> CheckView {
    match look {
        Err(fault) => fault_view("certificate", of.to_owned(), fault, |_| {
            "renew the certificate, or let this machine trust its authority (`SSL_CERT_FILE`)"
                .to_owned()
        }),
        Ok(seen) => match seen.certificate {
            Some(times) => {
                let check = CheckView::passed("certificate", of, certificate_text(times, now));
                if times.is_late(now) {
                    check.with_result(CheckResult::Warning, "renew the certificate")
                } else {
                    check
                }
            }
            None => CheckView::passed("certificate", of, "its end cannot be read")
                .with_result(CheckResult::Unknown, "look at it with `openssl s_client`"),
        },
    }
}

fn fault_check(whose: String, fault: &EndpointFault) -> CheckView {
    fault_view("endpoint", whose, fault, failure_advice)
}

fn fault_view(
    check: &str,
    whose: String,
    fault: &EndpointFault,
    advice: impl FnOnce(SendFailure) -> String,
) -> CheckView {
    let found = match (&fault.refusal, &fault.text) {
        (Some(refusal), _) => format!("refused: {refusal}"),
        (None, Some(text)) => text.to_string(),
        (None, None) => fault.failure.to_string(),
    };
    let result = match fault.failure {
        // An exhausted resource of this machine says nothing about the endpoint.
        SendFailure::Exhausted | SendFailure::Withdrawn => CheckResult::Unknown,
        _ => CheckResult::Failed,
    };
    CheckView::passed(check, whose, found).with_result(result, advice(fault.failure))
}

fn failure_advice(failure: SendFailure) -> String {
    match failure {
        SendFailure::Resolution {
            does_not_exist: true,
        } => "correct `endpoint.url`, or the name in DNS",
        SendFailure::Resolution {
            does_not_exist: false,
        } => "look at the name servers of the server's machine; `--dns-server` names another",
        SendFailure::AddressRefused => {
            "correct `endpoint.url`, or open the address if it is one of your own network"
        }
        SendFailure::Certificate(_) | SendFailure::Tls => {
            "whoever runs the endpoint must mend it; `--extra-ca` trusts an authority of your own"
        }
        SendFailure::NotTls => "correct the scheme or the port of `endpoint.url`",
        SendFailure::Exhausted | SendFailure::Withdrawn => {
            "look again later, and at the check `open-files`"
        }
        SendFailure::TimedOut
        | SendFailure::KeptTimedOut
        | SendFailure::ConnectTimedOut
        | SendFailure::Refused
        | SendFailure::Socket
        | SendFailure::Closed => {
            "start the receiver, or open the way to it: a firewall may be between"
        }
    }
    .to_owned()
}

/// The first of these, and the number of the others.
fn list_some(all: &[String]) -> String {
    let shown = all[..all.len().min(SHOWN_MAX)].join(", ");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CertificateFault;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn link(is_tls: bool) -> Link {
        Link {
            is_tls,
            host: "a.example".into(),
            port: 443,
        }
    }

    fn seen(from: &str, until: &str) -> ConnectedEndpoint {
        ConnectedEndpoint {
            addresses: vec!["192.0.2.1".parse().unwrap()],
            connected: "192.0.2.1".parse().unwrap(),
            certificate: Some(CertificateTimes {
                from: time(from),
                until: time(until),
            }),
        }
    }

    fn fault(failure: SendFailure, text: Option<&str>) -> EndpointFault {
        EndpointFault {
            failure,
            text: text.map(Into::into),
            refusal: None,
        }
    }

    fn checked(look: &Result<ConnectedEndpoint, EndpointFault>) -> (CheckResult, String) {
        let users = ["orders/billing".to_owned()];
        let check = endpoint_check(&link(true), &users, look, time(NOW));
        assert_eq!(check.of, "https://a.example:443 (orders/billing)");
        assert_eq!(check.advice.is_some(), check.result != CheckResult::Ok);
        (check.result, check.found)
    }

    #[test]
    fn certificate_is_late_two_weeks_before_its_end() {
        let found = |days: u32, date: &str| {
            format!(
                "connected to 192.0.2.1, TLS verified, the certificate ends in {days} days ({date})"
            )
        };
        let check = |until: &str, result, expected| {
            let look = Ok(seen("2026-09-01T00:00:00Z", until));
            assert_eq!(checked(&look), (result, expected), "{until}");
        };
        let ok = CheckResult::Ok;
        let warning = CheckResult::Warning;
        check("2026-12-05T10:00:00Z", ok, found(14, "2026-12-05"));
        check("2026-12-05T09:59:59Z", warning, found(13, "2026-12-05"));
        check("2026-11-21T10:00:01Z", warning, found(0, "2026-11-21"));
    }

    #[test]
    fn short_certificate_is_late_in_its_last_third() {
        let check = |from: &str, until: &str, expected| {
            let (result, _) = checked(&Ok(seen(from, until)));
            assert_eq!(result, expected, "{from} {until}");
        };
        check(
            "2026-11-19T10:00:00Z",
            "2026-11-25T10:00:00Z",
            CheckResult::Ok,
        );
        check(
            "2026-11-16T10:00:00Z",
            "2026-11-22T10:00:00Z",
            CheckResult::Warning,
        );
    }

    #[test]
    fn failure_is_said_in_its_own_words_with_what_to_do() {
        let expired = SendFailure::Certificate(CertificateFault::Expired);
        let text = "TLS certificate not trusted: it has expired";
        let expected = (CheckResult::Failed, text.to_owned());
        assert_eq!(checked(&Err(fault(expired, Some(text)))), expected);
        let unresolved = SendFailure::Resolution {
            does_not_exist: true,
        };
        let expected = "the host name does not exist".to_owned();
        assert_eq!(
            checked(&Err(fault(unresolved, None))),
            (CheckResult::Failed, expected)
        );
        let refused = EndpointFault::address_refused(AddressRefusal::Port(9000));
        let (result, found) = checked(&Err(refused));
        assert!(
            found.starts_with("refused: port 9000 is allowed only"),
            "{found}"
        );
        assert_eq!(result, CheckResult::Failed);
    }

    #[test]
    fn failure_of_this_machine_is_unknown() {
        let expected = "no resources left to connect".to_owned();
        let look = Err(fault(SendFailure::Exhausted, None));
        assert_eq!(checked(&look), (CheckResult::Unknown, expected));
    }

    #[test]
    fn few_of_many_users_and_addresses_are_named() {
        let users: Vec<_> = (1..=5).map(|n| format!("orders/s{n}")).collect();
        let mut seen = seen(NOW, "2027-11-21T10:00:00Z");
        seen.addresses = (1..=4).map(|n| IpAddr::from([192, 0, 2, n])).collect();
        seen.connected = seen.addresses[3];
        let check = endpoint_check(&link(false), &users, &Ok(seen), time(NOW));
        assert_eq!(
            check.of,
            "http://a.example:443 (orders/s1, orders/s2, orders/s3 and 2 more)"
        );
        assert_eq!(
            check.found,
            "connected to 192.0.2.4 of 192.0.2.1, 192.0.2.2, 192.0.2.3 and 1 more, without TLS"
        );
    }

    #[test]
    fn certificate_of_a_server_has_a_check_of_its_own() {
        let check = |look, result, found: &str| {
            let check = certificate_check("https://h", &look, time(NOW));
            assert_eq!((check.result, &*check.found), (result, found));
        };
        let times = Ok(seen("2026-09-01T00:00:00Z", "2026-12-01T10:00:00Z"));
        let expected = "TLS verified, the certificate ends in 10 days (2026-12-01)";
        check(times, CheckResult::Warning, expected);
        let expired = SendFailure::Certificate(CertificateFault::Expired);
        let text = "TLS certificate not trusted: it has expired";
        check(Err(fault(expired, Some(text))), CheckResult::Failed, text);
    }
}
