//! The transport's many errors as the few that a dead letter tells apart.

use std::error::Error;
use std::io;

use posthaste_core::attempt::{CertificateFault, SendFailure};
use rustix::io::Errno;
use rustls::{CertificateError, InvalidMessage};

/// Most sources of an error that are looked at. Errors nest a few deep.
const SOURCES_MAX: usize = 16;

/// The fault of TLS where a certificate or the handshake is at fault, and `Socket` for everything
/// else that ends a connection: reset, closed, and answers that are not HTTP.
pub(crate) fn failure_of(error: &(dyn Error + 'static)) -> SendFailure {
    let mut causes =
        std::iter::successors(Some(error), |error| source_of(*error)).take(SOURCES_MAX);
    match causes.find_map(|cause| cause.downcast_ref()) {
        Some(error) => tls_failure(error),
        None => SendFailure::Socket,
    }
}

fn tls_failure(error: &rustls::Error) -> SendFailure {
    match error {
        rustls::Error::InvalidCertificate(fault) => {
            SendFailure::Certificate(certificate_fault(fault))
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => SendFailure::NotTls,
        _ => SendFailure::Tls,
    }
}

fn certificate_fault(error: &CertificateError) -> CertificateFault {
    match error {
        // A bad signature is that of an issuer with the same name and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            CertificateFault::UnknownIssuer
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            CertificateFault::Expired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateFault::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::OtherName
        }
        _ => CertificateFault::Invalid,
    }
}

/// True if this machine had no descriptor or buffer left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let ours = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|errno| ours.contains(&errno))
}

/// The error below this one. `io::Error::source` skips the wrapped error and shows the source of
/// that.
fn source_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_error_is_found_inside_others() {
        let check = |error: io::Error, expected| assert_eq!(failure_of(&error), expected);
        check(io::ErrorKind::ConnectionReset.into(), SendFailure::Socket);
        check(io::Error::other("not HTTP"), SendFailure::Socket);
        check(
            io::Error::other(rustls::Error::DecryptError),
            SendFailure::Tls,
        );
        check(
            io::Error::other(io::Error::other(rustls::Error::DecryptError)),
            SendFailure::Tls,
        );
    }
}
