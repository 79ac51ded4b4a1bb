//! The agent below the client: no redirects, no proxy, and for https the certificates that it is to
//! trust.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use url::Url;

/// Longest time until a connection is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most connections that are kept for later: as many as `publish --rate` has requests at once.
const IDLE_CONNECTIONS_MAX: usize = 16;

/// The parties that a client trusts behind https.
#[derive(Debug, Clone)]
pub enum ServerTrust {
    /// The authorities of this machine.
    Machine,
    /// The same, and these.
    MachineAnd(Arc<[CertificateDer<'static>]>),
    /// Whoever answers. Only where this process itself is the server.
    Anyone,
}

/// An agent for a server at this address.
pub fn http_agent(base: &Url, trust: &ServerTrust) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .user_agent(concat!("posthaste/", env!("CARGO_PKG_VERSION")));
    let config = if base.scheme() == "https" {
        config.tls_config(tls_config(trust))
    } else {
        config
    };
    config.build().into()
}

/// TLS towards a server behind https, by ring. A machine without certificates gets an empty list, so
/// that every handshake fails with its reason.
fn tls_config(trust: &ServerTrust) -> TlsConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let more: &[_] = match trust {
        ServerTrust::Anyone => return config.disable_verification(true).build(),
        ServerTrust::Machine => &[],
        ServerTrust::MachineAnd(authorities) => authorities,
    };
    let found = rustls_native_certs::load_native_certs();
    let certificates: Vec<_> = found
        .certs
        .iter()
        .chain(more)
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    config
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build()
}
