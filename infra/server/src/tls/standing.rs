//! A certificate beside the clock.

use posthaste_core::api::doctor::CertificateTimes;
use posthaste_core::model::Timestamp;

/// Whether a certificate is valid at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CertificateStanding {
    Valid,
    Expired,
    NotYet,
}

impl CertificateStanding {
    /// The standing of a certificate with this validity. Both ends are part of it, in whole
    /// seconds.
    pub(super) fn at_time(now: Timestamp, validity: &CertificateTimes) -> Self {
        if now < validity.from {
            Self::NotYet
        } else if now.as_secs() > validity.until.as_secs() {
            Self::Expired
        } else {
            Self::Valid
        }
    }
}

/// The end of a validity for the log, if it is known.
pub(super) fn format_end(validity: Option<CertificateTimes>) -> Option<String> {
    validity.map(|validity| validity.until.to_event_grid())
}
