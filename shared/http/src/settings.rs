//! Settings of the client, and its fixed limits.

use std::net::{AddrParseError, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use posthaste_core::model::AddressPolicy;

/// Idle connections kept per link: as many as `deliver` opens to one link by default would find one
/// each.
pub const IDLE_PER_LINK_MAX_DEFAULT: usize = 64;

/// Idle connections kept in all. Each is one file descriptor and, with TLS, some 40 KiB.
pub const IDLE_MAX_DEFAULT: usize = 1024;

/// Time that an idle connection is kept. Load balancers commonly close their side after 60 s. We
/// close first, so that a request seldom meets a connection that is just being closed.
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/application/edit-load-balancer-attributes.html>
pub const IDLE_KEPT_DEFAULT: Duration = Duration::from_secs(50);

/// Time that a resolved name is used. It is short, because an address is validated when it is
/// resolved. The records' own time to live is ignored: an attacker's zero would make every request
/// ask a name server.
pub const NAMES_KEPT_DEFAULT: Duration = Duration::from_secs(30);

/// Largest response head, in bytes. Also the largest piece in which a body is read.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most headers in a response whose connection is kept: hyper's own default. It is not set
/// explicitly, because a set limit makes hyper allocate its table of headers for each response.
pub const RESPONSE_HEADERS_MAX: usize = 100;

/// Most headers of an odd response that are read. The others do not matter: of a response's
/// headers, posthaste uses five.
pub(crate) const ODD_HEADERS_MAX: usize = 1000;

/// Longest time that is spent on the rest of a response whose status is there and decides, as long
/// as the body itself is not asked for. A body that comes with its head is there at once, and one
/// that does not end in this time holds up other requests for nothing.
pub const ANSWER_REST_WAIT: Duration = Duration::from_secs(2);

/// Most interim responses (`1xx`) to one request. An endpoint that says `102` every 20 s (RFC 2518,
/// section 10.1) sends twelve until a late answer is given up, and one hint is enough for most.
pub const INTERIM_ANSWERS_MAX: usize = 100;

/// Most bytes of the interim responses to one request: as many as a head may have. Go's client
/// counts them to the head in the same way.
pub const INTERIM_BYTES_MAX: usize = RESPONSE_HEAD_BYTES_MAX;

/// Most bytes that are read from the network for one request, TLS included, from its beginning to
/// the end of its late answer. The longest response that is read whole has some 2 MiB: 64 KiB of
/// body in chunks and TLS records of a byte each.
pub const ANSWER_WIRE_BYTES_MAX: u64 = 4 << 20;

/// Why a text is not the address of a name server.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DnsServerError {
    /// The text is no address with a port.
    #[error("expected an address and port such as 10.0.0.2:53 or [fd00::2]:53")]
    NotAnAddress(#[source] AddrParseError),
    /// Port 0 has no listener.
    #[error("expected a port from 1 to 65535")]
    NoPort,
}

/// The address and port of a name server. A name would have to be resolved first.
pub fn parse_dns_server(text: &str) -> Result<SocketAddr, DnsServerError> {
    let server: SocketAddr = text.parse().map_err(DnsServerError::NotAnAddress)?;
    if server.port() == 0 {
        Err(DnsServerError::NoPort)
    } else {
        Ok(server)
    }
}

/// Settings of the client.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Addresses that webhooks may go to.
    pub addresses: AddressPolicy,
    /// A PEM file with root certificates that are trusted beside the platform's: a company's own
    /// authority.
    pub extra_root_file: Option<PathBuf>,
    /// Connections in all, idle ones included. Each is one file descriptor.
    pub connections_max: usize,
    /// Idle connections kept per link.
    pub idle_per_link_max: usize,
    /// Idle connections kept in all.
    pub idle_max: usize,
    /// Time that an idle connection is kept.
    pub idle_kept: Duration,
    /// Time that a resolved name is used.
    pub names_kept: Duration,
    /// The only name server to ask, over UDP and TCP and without the hosts file; `None` for the
    /// system's.
    pub dns_server: Option<SocketAddr>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            addresses: AddressPolicy::default(),
            extra_root_file: None,
            connections_max: usize::MAX,
            idle_per_link_max: IDLE_PER_LINK_MAX_DEFAULT,
            idle_max: IDLE_MAX_DEFAULT,
            idle_kept: IDLE_KEPT_DEFAULT,
            names_kept: NAMES_KEPT_DEFAULT,
            dns_server: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_server_is_an_address_with_a_port() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let parsed = parse_dns_server(text);
            let said = parsed
                .as_ref()
                .map(ToString::to_string)
                .map_err(ToString::to_string);
            assert_eq!(
                said,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        };
        check("10.0.0.2:53", Ok("10.0.0.2:53"));
        check("[fd00::2]:5353", Ok("[fd00::2]:5353"));
        let shape = "expected an address and port such as 10.0.0.2:53 or [fd00::2]:53";
        for text in [
            "",
            "10.0.0.2",
            "ns.example.com:53",
            "10.0.0.2:65536",
            " 10.0.0.2:53",
            "fd00::2:53",
        ] {
            check(text, Err(shape));
        }
        check("10.0.0.2:0", Err("expected a port from 1 to 65535"));
    }
}
