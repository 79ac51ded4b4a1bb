//! TLS: trusted roots and protocol.
//!
//! The client trusts the roots of the platform's own store (`SSL_CERT_FILE` and `SSL_CERT_DIR`
//! included) and those of a file that the operator names. A compiled-in list is not used: the
//! operator already keeps the platform's store up to date and adds a company's authority to it, and
//! a withdrawn root disappears without a new build of this program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Sessions kept for resumption, over all servers: a full handshake costs some 400 µs of CPU, a
/// resumed one a fraction.
const SESSIONS_MAX: usize = 1024;

/// The only protocol offered.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The file of extra roots is not readable, or not PEM.
    #[error("failed to read root certificates from {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        #[source]
        source: pem::Error,
    },
    /// The file of extra roots holds no certificate.
    #[error("no certificate in {path}")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A certificate of the file cannot be a root, or the cryptography lacks a protocol version.
    #[error("failed to set up TLS")]
    Refused(#[from] rustls::Error),
}

/// The connector for all links.
pub(crate) fn connector(extra_root_file: Option<&Path>) -> Result<TlsConnector, TlsSetupError> {
    let mut roots = platform_roots();
    if let Some(path) = extra_root_file {
        for root in read_roots(path)? {
            roots.add(root)?;
        }
    }
    if roots.is_empty() {
        tracing::warn!(
            "no root certificates on this machine: every https endpoint will fail with TlsError"
        );
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN_HTTP_1_1.to_vec()];
    config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
    Ok(TlsConnector::from(Arc::new(config)))
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

fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSetupError> {
    let read = |source| TlsSetupError::Read {
        path: path.to_owned(),
        source,
    };
    let roots: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(read)?
        .collect::<Result<_, _>>()
        .map_err(read)?;
    if roots.is_empty() {
        Err(TlsSetupError::Empty {
            path: path.to_owned(),
        })
    } else {
        Ok(roots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_file_of_roots_is_named() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let check = |file: &str, expected: &str| {
            let Err(error) = connector(Some(&here.join(file))) else {
                panic!("{file} was accepted")
            };
            assert_eq!(
                error.to_string().replace(here.to_str().unwrap(), ""),
                expected
            );
        };
        check(
            "no-such.pem",
            "failed to read root certificates from /no-such.pem",
        );
        check("Cargo.toml", "no certificate in /Cargo.toml");
    }
}
