//! TLS: trusted roots and protocol.
//!
//! The client trusts the roots of the platform's own store (`SSL_CERT_FILE` and `SSL_CERT_DIR`
//! included) and those of a file that the operator names. A compiled-in list is not used: the
//! operator already keeps the platform's store up to date and adds a company's authority to it, and
//! a withdrawn root disappears without a new build of this program.

mod faults;
mod object_ids;
pub(crate) mod reason;
mod roots;
mod sessions;
mod times;
mod verifier;

use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

pub(crate) use self::faults::certificate_faults;
pub use self::roots::{RootFileError, RootFileFault, read_root_file};
use self::sessions::{SESSION_HOSTS_MAX, TlsSessions};
pub use self::times::certificate_times;
use self::verifier::CertificateVerifier;

/// The only protocol offered.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The file of extra roots is refused.
    #[error(transparent)]
    Roots(#[from] RootFileError),
    /// The cryptography lacks a protocol version.
    #[error("failed to set up TLS")]
    Refused(#[from] rustls::Error),
    /// Certificates cannot be verified.
    #[error("failed to set up the verification of certificates")]
    Verifier(#[from] VerifierBuilderError),
}

/// TLS for all links.
pub(crate) struct TlsContext {
    pub(crate) connector: TlsConnector,
    sessions: Arc<TlsSessions>,
}

impl TlsContext {
    pub(crate) fn new(extra_root_file: Option<&Path>) -> Result<Self, TlsSetupError> {
        let roots = Arc::new(all_roots(extra_root_file)?);
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let mut config = if roots.is_empty() {
            // No verifier can be made without roots. This configuration refuses every certificate.
            builder.with_root_certificates(roots).with_no_client_auth()
        } else {
            let verifier =
                WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider)
                    .build()?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(CertificateVerifier::new(
                    verifier, roots,
                )))
                .with_no_client_auth()
        };
        let sessions = TlsSessions::new(SESSION_HOSTS_MAX);
        config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
        config.resumption = Resumption::store(sessions.clone());
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            sessions,
        })
    }

    /// The same TLS without sessions: a session that is resumed verifies no certificate.
    pub(crate) fn without_sessions(&self) -> TlsConnector {
        let mut config = ClientConfig::clone(self.connector.config());
        config.resumption = Resumption::disabled();
        TlsConnector::from(Arc::new(config))
    }

    /// Forgets all sessions, and returns the number of hosts that had some.
    pub(crate) fn forget_sessions(&self) -> usize {
        self.sessions.forget_all()
    }
}

/// The platform's roots and those of the operator's file.
fn all_roots(extra_root_file: Option<&Path>) -> Result<RootCertStore, TlsSetupError> {
    let mut roots = platform_roots();
    if let Some(path) = extra_root_file {
        let certificates = roots::add_file(&mut roots, path)?;
        tracing::info!(certificates, path = %path.display(), "the file of --extra-ca was read");
    }
    if roots.is_empty() {
        tracing::warn!(
            "no root certificates on this machine: every https endpoint will fail with TlsError"
        );
    }
    Ok(roots)
}

/// The platform's readable roots: one bad file in the store must not hide the others.
fn platform_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        let error = error as &dyn std::error::Error;
        tracing::warn!(
            error,
            "failed to read a part of the platform's root certificates"
        );
    }
    let (_, ignored) = roots.add_parsable_certificates(loaded.certs);
    tracing::debug!(roots = roots.len(), ignored, "platform roots loaded");
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_file_of_roots_is_named() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let check = |file: &str, expected: &str| {
            let Err(error) = TlsContext::new(Some(&here.join(file))) else {
                panic!("{file} was accepted")
            };
            let said = error.to_string().replace(here.to_str().unwrap(), "");
            assert!(said.starts_with(expected), "{said}");
        };
        check(
            "no-such.pem",
            "failed to read root certificates from /no-such.pem",
        );
        check(
            "Cargo.toml",
            "/Cargo.toml: no certificate in it; expected PEM",
        );
    }
}
