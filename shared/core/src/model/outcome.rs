//! The outcome of an attempt, and the closed list of names that a dead letter gives it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::word::display_the_word;

/// The outcome of one attempt, as far as the decision needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The endpoint answered.
    Answered {
        /// The status.
        status: u16,
        /// The wait that `Retry-After` asked for, if it was there and readable.
        retry_after: Option<Duration>,
    },
    /// The endpoint answered with success to a batch, but said that this event failed
    /// ([`crate::attempt::partial`]).
    Unacknowledged {
        /// The status.
        status: u16,
    },
    /// The endpoint gave no answer.
    Failed(SendFailure),
}

/// Why a request brought no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// No response head within the timeout, though the request was, or could have been, sent.
    #[error("timed out without an answer")]
    TimedOut,
    /// No byte of a response within the timeout on a connection that was kept after an earlier one.
    /// A balancer or a NAT may have forgotten it, so that it says nothing about the endpoint.
    #[error("timed out without an answer on a connection that was kept")]
    KeptTimedOut,
    /// No connection within the timeout: the resolver, the connect or the TLS handshake was silent,
    /// and nothing of the request was sent.
    #[error("timed out without a connection")]
    ConnectTimedOut,
    /// Connection that the host refused: nothing listens on the port.
    #[error("connection refused")]
    Refused,
    /// Unreachable host, or a connection that failed before the request was sent.
    #[error("the connection failed")]
    Socket,
    /// Connection that ended after the request was sent: closed or reset without an answer, or an
    /// answer that is not HTTP.
    #[error("the connection was closed without an answer")]
    Closed,
    /// The host's name was not resolved.
    #[error("the host name {}", if *.does_not_exist { "does not exist" } else { "was not resolved" })]
    Resolution {
        /// Whether an authority said that the name does not exist.
        does_not_exist: bool,
    },
    /// Certificate that is not trusted.
    #[error("TLS certificate not trusted: {0}")]
    Certificate(CertificateFault),
    /// Answer to the TLS handshake that is not TLS.
    #[error("the endpoint does not speak TLS")]
    NotTls,
    /// Handshake that failed for another reason.
    #[error("the TLS handshake failed")]
    Tls,
    /// No socket or file is left on this machine. The fault is ours, and it does not count as an
    /// attempt.
    #[error("no resources left to connect")]
    Exhausted,
    /// Request that was not to begin any more when it had its connection. Nothing was sent, and it
    /// does not count as an attempt.
    #[error("withdrawn before it began")]
    Withdrawn,
    /// The scheme, port or an address of the host is not allowed.
    #[error("the endpoint's address is not allowed")]
    AddressRefused,
}

/// Reason why a certificate is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// Authority that is not among the trusted ones, or the endpoint itself.
    #[error("its issuer is unknown")]
    UnknownIssuer,
    /// End of its validity in the past.
    #[error("it has expired")]
    Expired,
    /// Begin of its validity in the future.
    #[error("it is not valid yet")]
    NotYetValid,
    /// Names in it that are not the host's.
    #[error("it is for another name")]
    OtherName,
    /// Certificate of an authority, which no server may show as its own.
    #[error("it is an authority's, not a server's")]
    Authority,
    /// Purpose other than a server's.
    #[error("it is for another purpose")]
    OtherPurpose,
    /// Algorithm or size of key that the library lacks.
    #[error("it needs an algorithm that posthaste lacks")]
    Algorithm,
    /// Any other fault.
    #[error("it is not valid")]
    Invalid,
}

impl AttemptOutcome {
    /// Whether this is one of the five statuses that mean success: 200, 201, 202, 203, 204.
    pub fn is_success(self) -> bool {
        matches!(
            self,
            Self::Answered {
                status: 200..=204,
                ..
            }
        )
    }

    /// The name a dead letter gives it. A success has none.
    pub fn name(self) -> Option<OutcomeName> {
        match self {
            Self::Answered { status, .. } => status_name(status),
            // The list of names is closed, and the status beside it tells the rest.
            Self::Unacknowledged { .. } => Some(OutcomeName::GenericError),
            Self::Failed(failure) => Some(failure_name(failure)),
        }
    }

    /// The status, if there was one.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Answered { status, .. } | Self::Unacknowledged { status } => Some(status),
            Self::Failed(_) => None,
        }
    }

    /// Why there was no answer; `None` if there was one.
    pub fn send_failure(self) -> Option<SendFailure> {
        match self {
            Self::Answered { .. } | Self::Unacknowledged { .. } => None,
            Self::Failed(failure) => Some(failure),
        }
    }

    /// Whether an authority said that the host name does not exist.
    pub fn is_unknown_name(self) -> bool {
        matches!(
            self,
            Self::Failed(SendFailure::Resolution {
                does_not_exist: true
            })
        )
    }
}

impl SendFailure {
    /// Whether TLS is at fault: the certificate or the handshake.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Certificate(_) | Self::NotTls | Self::Tls)
    }
}

/// `lastDeliveryOutcome`: a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OutcomeName {
    /// 400.
    BadRequest,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 408, or no answer in time.
    TimedOut,
    /// 410.
    Gone,
    /// 413.
    PayloadTooLarge,
    /// 429 and 503.
    Busy,
    /// 3xx.
    Redirected,
    /// Every other status.
    GenericError,
    /// Refused, reset or closed connection.
    SocketError,
    /// Name not resolved.
    ResolutionError,
    /// Certificate or handshake.
    TlsError,
    /// An address that is not allowed.
    AddressRefused,
    /// Cut short by a crash or a deadline.
    Aborted,
    /// Never tried, because it was held.
    Probation,
}

display_the_word!(OutcomeName);

fn status_name(status: u16) -> Option<OutcomeName> {
    Some(match status {
        200..=204 => return None,
        300..=399 => OutcomeName::Redirected,
        400 => OutcomeName::BadRequest,
        401 => OutcomeName::Unauthorized,
        403 => OutcomeName::Forbidden,
        404 => OutcomeName::NotFound,
        408 => OutcomeName::TimedOut,
        410 => OutcomeName::Gone,
        413 => OutcomeName::PayloadTooLarge,
        429 | 503 => OutcomeName::Busy,
        _ => OutcomeName::GenericError,
    })
}

fn failure_name(failure: SendFailure) -> OutcomeName {
    match failure {
        SendFailure::TimedOut | SendFailure::KeptTimedOut | SendFailure::ConnectTimedOut => {
            OutcomeName::TimedOut
        }
        SendFailure::Refused | SendFailure::Socket | SendFailure::Closed => {
            OutcomeName::SocketError
        }
        SendFailure::Resolution { .. } => OutcomeName::ResolutionError,
        SendFailure::Certificate(_) | SendFailure::NotTls | SendFailure::Tls => {
            OutcomeName::TlsError
        }
        SendFailure::AddressRefused => OutcomeName::AddressRefused,
        SendFailure::Exhausted | SendFailure::Withdrawn => OutcomeName::Aborted,
    }
}

/// Whether a status refuses the content of a request: every client error but those that speak of
/// the endpoint.
pub fn refuses_content(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 401 | 403 | 404 | 408 | 410 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AttemptOutcome;

    #[test]
    fn every_answer_and_failure_has_its_name_of_the_closed_list() {
        let check = |outcome: AttemptOutcome, expected: Option<OutcomeName>| {
            assert_eq!(outcome.name(), expected);
        };
        let answered = |status| AttemptOutcome::Answered {
            status,
            retry_after: None,
        };
        for status in [200, 201, 202, 203, 204] {
            check(answered(status), None);
        }
        let named = [
            (OutcomeName::BadRequest, vec![400]),
            (OutcomeName::Unauthorized, vec![401]),
            (OutcomeName::Forbidden, vec![403]),
            (OutcomeName::NotFound, vec![404]),
            (OutcomeName::TimedOut, vec![408]),
            (OutcomeName::Gone, vec![410]),
            (OutcomeName::PayloadTooLarge, vec![413]),
            (OutcomeName::Busy, vec![429, 503]),
            (
                OutcomeName::Redirected,
                vec![300, 301, 302, 304, 307, 308, 399],
            ),
            (
                OutcomeName::GenericError,
                vec![
                    100, 205, 206, 299, 402, 405, 409, 418, 422, 499, 500, 502, 504, 599,
                ],
            ),
        ];
        for (name, statuses) in named {
            for status in statuses {
                check(answered(status), Some(name));
            }
        }
        let failed = |failure, name| check(AttemptOutcome::Failed(failure), Some(name));
        failed(SendFailure::TimedOut, OutcomeName::TimedOut);
        failed(SendFailure::KeptTimedOut, OutcomeName::TimedOut);
        failed(SendFailure::ConnectTimedOut, OutcomeName::TimedOut);
        failed(SendFailure::Socket, OutcomeName::SocketError);
        failed(SendFailure::Refused, OutcomeName::SocketError);
        failed(SendFailure::Closed, OutcomeName::SocketError);
        failed(
            SendFailure::Resolution {
                does_not_exist: true,
            },
            OutcomeName::ResolutionError,
        );
        failed(
            SendFailure::Resolution {
                does_not_exist: false,
            },
            OutcomeName::ResolutionError,
        );
        failed(SendFailure::Tls, OutcomeName::TlsError);
        failed(SendFailure::NotTls, OutcomeName::TlsError);
        failed(
            SendFailure::Certificate(CertificateFault::Expired),
            OutcomeName::TlsError,
        );
        failed(SendFailure::AddressRefused, OutcomeName::AddressRefused);
        failed(SendFailure::Exhausted, OutcomeName::Aborted);
        failed(SendFailure::Withdrawn, OutcomeName::Aborted);
    }

    #[test]
    fn a_failure_is_named_in_words_that_say_where_to_look() {
        let check =
            |failure: SendFailure, expected: &str| assert_eq!(failure.to_string(), expected);
        check(SendFailure::Refused, "connection refused");
        check(
            SendFailure::Closed,
            "the connection was closed without an answer",
        );
        check(SendFailure::TimedOut, "timed out without an answer");
        check(
            SendFailure::KeptTimedOut,
            "timed out without an answer on a connection that was kept",
        );
        check(
            SendFailure::ConnectTimedOut,
            "timed out without a connection",
        );
        check(
            SendFailure::Resolution {
                does_not_exist: true,
            },
            "the host name does not exist",
        );
        check(
            SendFailure::Resolution {
                does_not_exist: false,
            },
            "the host name was not resolved",
        );
        let certificate = |fault, expected: &str| {
            let expected = format!("TLS certificate not trusted: {expected}");
            check(SendFailure::Certificate(fault), &expected);
        };
        certificate(CertificateFault::UnknownIssuer, "its issuer is unknown");
        certificate(CertificateFault::Expired, "it has expired");
        certificate(CertificateFault::NotYetValid, "it is not valid yet");
        certificate(CertificateFault::OtherName, "it is for another name");
        certificate(
            CertificateFault::Authority,
            "it is an authority's, not a server's",
        );
        certificate(CertificateFault::OtherPurpose, "it is for another purpose");
        certificate(
            CertificateFault::Algorithm,
            "it needs an algorithm that posthaste lacks",
        );
        certificate(CertificateFault::Invalid, "it is not valid");
    }
}
