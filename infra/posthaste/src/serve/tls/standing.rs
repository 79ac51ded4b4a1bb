//! The time for which a certificate is valid.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// The latest time that an error can name, in seconds since 1970: the end of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// The time for which a certificate is valid, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) begin: Timestamp,
    pub(super) end: Timestamp,
}

/// A certificate beside the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Valid,
    Expired,
    NotYet,
}

impl Validity {
    /// The validity of a certificate. `None` if it cannot be read.
    ///
    /// The library does not show it. It is in the errors of a check at a time before and at one
    /// after, and it is checked before anything else is.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = EndEntityCert::try_from(certificate).ok()?;
        let checked_at = |seconds| {
            let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            parsed
                .verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None)
                .err()
        };
        let begin = match checked_at(0) {
            Some(Error::CertNotValidYet { not_before, .. }) => timestamp(not_before),
            _ => Timestamp::EPOCH,
        };
        let end = match checked_at(u64::MAX) {
            Some(Error::CertExpired { not_after, .. }) => timestamp(not_after),
            _ => return None,
        };
        Some(Self { begin, end })
    }

    /// The standing of the certificate at a time.
    pub(super) fn standing(&self, now: Timestamp) -> Standing {
        if now < self.begin {
            Standing::NotYet
        } else if now.as_secs() > self.end.as_secs() {
            Standing::Expired
        } else {
            Standing::Valid
        }
    }

    /// The end for the log, if it is known.
    pub(super) fn shown_end(validity: Option<&Self>) -> Option<String> {
        validity.map(|validity| validity.end.to_event_grid())
    }
}

fn timestamp(time: UnixTime) -> Timestamp {
    Timestamp::from_millis(time.as_secs().min(LAST_SECOND) * 1000)
}
