//! What came of an attempt, and the closed list of names a dead letter gives it.

use serde::{Deserialize, Serialize};

/// Why a request brought no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// No response head within the timeout.
    #[error("no answer in time")]
    TimedOut,
    /// Refused, reset or closed connection, or an answer that is not HTTP.
    #[error("the connection failed")]
    Socket,
    /// The host's name was not resolved.
    #[error("the host name was not resolved")]
    Resolution {
        /// Whether an authority said that the name does not exist.
        does_not_exist: bool,
    },
    /// Certificate or handshake.
    #[error("the TLS handshake failed")]
    Tls,
    /// This machine has no socket or file left: our fault, and no attempt.
    #[error("no resources left to connect")]
    Exhausted,
    /// The scheme, port or an address of the host is not allowed.
    #[error("the endpoint's address is not allowed")]
    AddressRefused,
}

/// `lastDeliveryOutcome`: a closed list (SPEC §4).
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
