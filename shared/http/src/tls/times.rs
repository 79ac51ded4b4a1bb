//! The time for which a certificate is valid.

use std::time::Duration;

use posthaste_core::api::doctor::CertificateTimes;
use posthaste_core::model::Timestamp;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// The latest time that an error can name, in seconds since 1970: the end of the year 9999, the
/// last that a certificate can name (RFC 5280, section 4.1.2.5).
const LAST_SECOND: u64 = 253_402_300_799;

/// The validity of a certificate, whoever issued it. `None` if it cannot be read.
///
/// The library does not show the validity. The errors of a check at a time before it and at one
/// after it contain it, because it is checked first.
pub fn certificate_times(certificate: &CertificateDer<'_>) -> Option<CertificateTimes> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let from = match error_at(&parsed, 0) {
        Some(Error::CertNotValidYet { not_before, .. }) => to_timestamp(not_before),
        _ => Timestamp::EPOCH,
    };
    match error_at(&parsed, u64::MAX) {
        Some(Error::CertExpired { not_after, .. }) => Some(CertificateTimes {
            from,
            until: to_timestamp(not_after),
        }),
        _ => None,
    }
}

fn error_at(certificate: &EndEntityCert<'_>, seconds: u64) -> Option<Error> {
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    certificate
        .verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None)
        .err()
}

fn to_timestamp(time: UnixTime) -> Timestamp {
    Timestamp::from_millis(time.as_secs().min(LAST_SECOND) * 1000)
}
