//! The certificate of the sink, which signs itself: the program trusts it because its option names
//! it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// Makes one for 127.0.0.1, and writes it into a file.
pub(super) fn acceptor(file: &Path) -> TlsAcceptor {
    let made =
        rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("an address is a name");
    fs::write(file, made.cert.pem()).expect("there is room for a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has the usual versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key is the certificate's");
    TlsAcceptor::from(Arc::new(config))
}
