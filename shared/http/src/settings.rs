//! What can be set about the client, and the limits that cannot.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use posthaste_core::address::AddressPolicy;

/// Idle connections kept per link: as many as `deliver` opens to one link by default would find one each.
pub const IDLE_PER_LINK_MAX_DEFAULT: usize = 64;

/// Idle connections kept in all. Each is one file descriptor and, with TLS, some 40 KiB.
pub const IDLE_MAX_DEFAULT: usize = 1024;

/// How long an idle connection is kept. Below the 60 s after which load balancers commonly close their side, so that
/// we close first and a request seldom meets a connection that is just being closed.
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/application/edit-load-balancer-attributes.html>
pub const IDLE_KEPT_DEFAULT: Duration = Duration::from_secs(50);

/// How long a resolved name is used. Short, because an address is vetted when it is resolved; the records' own time
/// to live is not looked at, or an attacker's zero would make every request ask a name server.
pub const NAMES_KEPT_DEFAULT: Duration = Duration::from_secs(30);

/// Largest response head, in bytes. Also the largest piece in which a body is read.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most headers in a response: hyper's own default. It is not set, because a set limit makes hyper allocate its
/// table of headers for each response.
pub const RESPONSE_HEADERS_MAX: usize = 100;

/// Settings of the client.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Where webhooks may go.
    pub addresses: AddressPolicy,
    /// A PEM file with root certificates that are trusted beside the platform's: a company's own authority.
    pub extra_root_file: Option<PathBuf>,
    /// Idle connections kept per link.
    pub idle_per_link_max: usize,
    /// Idle connections kept in all.
    pub idle_max: usize,
    /// How long an idle connection is kept.
    pub idle_kept: Duration,
    /// How long a resolved name is used.
    pub names_kept: Duration,
    /// The only name server that is asked, over UDP and TCP, and the hosts file not at all; `None` for the system's.
    pub dns_server: Option<SocketAddr>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            addresses: AddressPolicy::default(),
            extra_root_file: None,
            idle_per_link_max: IDLE_PER_LINK_MAX_DEFAULT,
            idle_max: IDLE_MAX_DEFAULT,
            idle_kept: IDLE_KEPT_DEFAULT,
            names_kept: NAMES_KEPT_DEFAULT,
            dns_server: None,
        }
    }
}
