//! An authority of our own, whose servers the programs trust because their file of roots names it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;

/// The roots of this machine. They are in the programs' file too, because reading some 150 of them
/// is part of a first request in Lambda as well.
const PLATFORM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Makes an authority and answers a server's configuration, and the file that makes programs trust
/// it.
pub(crate) fn authority(folder: &Path) -> (Arc<ServerConfig>, PathBuf) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a root");
    let mut roots = fs::read_to_string(PLATFORM_ROOTS).expect("the roots of this machine");
    roots.push_str(&authority.pem());
    let file = folder.join("roots.pem");
    fs::write(&file, roots).expect("a temporary file");
    (Arc::new(server(&authority)), file)
}

fn server(authority: &CertifiedIssuer<'_, KeyPair>) -> ServerConfig {
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .expect("a key that fits")
}
