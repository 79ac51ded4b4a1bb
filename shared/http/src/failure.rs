//! The transport's many errors as the few that a dead letter tells apart.

use std::error::Error;
use std::io;

use posthaste_core::api::doctor::EndpointFault;
use posthaste_core::model::SendFailure;
use rustix::io::Errno;
use rustls::InvalidMessage;

use crate::tls::certificate_faults;
use crate::tls::reason::handshake_reason;

/// Most sources of an error that are looked at. Errors nest a few deep.
const SOURCES_MAX: usize = 16;

/// Most bytes of the words for a failure. They are stored with each attempt, and an endpoint
/// chooses the names of its certificate.
const TEXT_BYTES_MAX: usize = 1000;

/// A failure, and what is known of it beyond its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendFault {
    pub(crate) failure: SendFailure,
    /// The failure in a sentence that says more than its kind.
    pub(crate) text: Option<Box<str>>,
}

impl SendFault {
    fn new(failure: SendFailure, mut text: String) -> Self {
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
            text.push('…');
        }
        let text = Some(text.into());
        Self { failure, text }
    }
}

impl From<SendFailure> for SendFault {
    fn from(failure: SendFailure) -> Self {
        let text = None;
        Self { failure, text }
    }
}

impl From<SendFault> for EndpointFault {
    fn from(fault: SendFault) -> Self {
        Self {
            failure: fault.failure,
            text: fault.text,
            refusal: None,
        }
    }
}

/// The fault of TLS where a certificate or the handshake is at fault, and `Socket` for everything
/// else that ends a connection: reset, closed, and responses that are not HTTP.
pub(crate) fn fault_from_error(error: &(dyn Error + 'static)) -> SendFault {
    let mut causes =
        std::iter::successors(Some(error), |error| error_source(*error)).take(SOURCES_MAX);
    match causes.find_map(|cause| cause.downcast_ref()) {
        Some(error) => tls_failure(error),
        None => SendFailure::Socket.into(),
    }
}

fn tls_failure(error: &rustls::Error) -> SendFault {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            let faults = certificate_faults(error);
            SendFault::new(
                SendFailure::Certificate(faults.first_kind()),
                format!("TLS certificate not trusted: {faults}"),
            )
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            SendFailure::NotTls.into()
        }
        error => SendFault::new(
            SendFailure::Tls,
            format!("the TLS handshake failed: {}", handshake_reason(error)),
        ),
    }
}

/// True if this machine had no descriptor or buffer left.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let ours = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS];
    Errno::from_io_error(error).is_some_and(|errno| ours.contains(&errno))
}

/// The error below this one. `io::Error::source` skips the wrapped error and shows the source of
/// that.
fn error_source<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
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
        let check =
            |error: io::Error, expected| assert_eq!(fault_from_error(&error).failure, expected);
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
