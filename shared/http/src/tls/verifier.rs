//! Verification of certificates: rustls' own, and where it fails every fault, each looked for
//! apart. So a person who mends one fault does not meet the next a day later.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::faults::{CertificateDefect, CertificateFaults, is_self_signed, name_fault};

/// Most times that a certificate is verified to find its faults: as it is, at the ends of its
/// validity, and once more.
const LOOKS_MAX: usize = 4;

/// Bytes of the modulus of an RSA key of 2048 bits. ring takes no smaller one.
const RSA_2048_KEY_BYTES: usize = 256;

/// The object identifier of RSA keys in DER.
const RSA_KEY: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

/// Verifies as rustls does.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    inner: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

impl CertificateVerifier {
    pub(super) fn new(inner: Arc<WebPkiServerVerifier>, roots: Arc<RootCertStore>) -> Self {
        Self { inner, roots }
    }

    /// All faults of a certificate that was refused for one.
    fn find_faults(
        &self,
        first: &CertificateError,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
    ) -> Vec<CertificateDefect> {
        let mut faults: Vec<CertificateDefect> = Vec::new();
        let mut next = Some(CertificateDefect::from_error(first));
        for _ in 0..LOOKS_MAX {
            let Some(fault) = next.take() else {
                break;
            };
            // The next fault shows when this one is out of the way.
            let at = match &fault {
                CertificateDefect::Expired(until) => Some(*until),
                CertificateDefect::NotYetValid(from) => Some(*from),
                _ => None,
            };
            if faults.contains(&fault) {
                break;
            }
            faults.push(fault);
            let Some(at) = at else {
                break;
            };
            let verified = self
                .inner
                .verify_server_cert(certificate, intermediates, name, &[], at);
            if let Err(Error::InvalidCertificate(error)) = verified {
                next = Some(CertificateDefect::from_error(&error));
            }
        }
        let has_known_issuer = self.has_known_issuer(certificate, intermediates);
        let is_self_signed = is_self_signed(certificate);
        for fault in &mut faults {
            if *fault
                == (CertificateDefect::UnknownIssuer {
                    is_self_signed: false,
                })
            {
                *fault = CertificateDefect::UnknownIssuer { is_self_signed };
            }
        }
        let is_issuer_said = faults.iter().any(|fault| {
            matches!(
                fault,
                CertificateDefect::UnknownIssuer { .. } | CertificateDefect::BadSignature
            )
        });
        if !has_known_issuer && !is_issuer_said {
            faults.push(CertificateDefect::UnknownIssuer { is_self_signed });
        }
        if let Some(fault) = name_fault(certificate, name)
            && !faults.contains(&fault)
        {
            faults.push(fault);
        }
        faults
    }

    /// Whether a chain of issuers leads to a known authority, by their names. The signatures of the
    /// chain are not verified.
    fn has_known_issuer(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> bool {
        let mut certificate = certificate;
        for _ in 0..=intermediates.len() {
            let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
                return false;
            };
            let issuer = parsed.issuer();
            let mut roots = self.roots.roots.iter();
            if roots.any(|root| root.subject.as_ref() == issuer) {
                return true;
            }
            let next = intermediates.iter().find(|it| {
                webpki::EndEntityCert::try_from(*it).is_ok_and(|it| it.subject() == issuer)
            });
            let Some(next) = next else {
                return false;
            };
            certificate = next;
        }
        false
    }
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        verified.map_err(|error| match error {
            Error::InvalidCertificate(error) => {
                let faults = self.find_faults(&error, end_entity, intermediates, server_name);
                // One that rustls knows keeps its own alert, which tells the endpoint's people.
                match &*faults {
                    [fault] if *fault == CertificateDefect::from_error(&error) => error.into(),
                    _ => faults_error(faults),
                }
            }
            error => error,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self.inner.verify_tls12_signature(message, cert, dss);
        verified.map_err(|error| signature_error(error, cert))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self.inner.verify_tls13_signature(message, cert, dss);
        verified.map_err(|error| signature_error(error, cert))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

fn faults_error(faults: Vec<CertificateDefect>) -> Error {
    CertificateError::Other(OtherError(Arc::new(CertificateFaults(faults)))).into()
}

/// The error of a signature that the endpoint made in the handshake: of a small key the library
/// says that the signature is wrong.
fn signature_error(error: Error, certificate: &CertificateDer<'_>) -> Error {
    let is_bad = error == Error::InvalidCertificate(CertificateError::BadSignature);
    if is_bad && has_small_rsa_key(certificate) {
        let small = CertificateDefect::Algorithm("an RSA key of fewer than 2048 bits".to_owned());
        faults_error(vec![small])
    } else {
        error
    }
}

fn has_small_rsa_key(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate).is_ok_and(|certificate| {
        let key = certificate.subject_public_key_info();
        let is_rsa = key.windows(RSA_KEY.len()).any(|part| part == RSA_KEY);
        is_rsa && key.len() < RSA_2048_KEY_BYTES
    })
}
