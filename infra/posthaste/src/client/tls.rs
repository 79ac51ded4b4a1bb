//! TLS towards a server behind https: the machine's own certificates, and ring.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The settings. A machine without certificates gets an empty list, so that every handshake fails with its
/// reason.
pub(super) fn config() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs();
    let certificates: Vec<_> = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
