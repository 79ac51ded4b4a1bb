//! The faults of a certificate, all of them, as sentences.

use std::fmt;

use posthaste_core::model::{CertificateFault, Timestamp};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ExtendedKeyPurpose};

use super::object_ids::shown_algorithms;

/// Most names of a certificate that are shown. Some certificates have hundreds.
const NAMES_SHOWN_MAX: usize = 10;

/// Most characters of a name that are shown: a host name has no more.
const NAME_CHARS_MAX: usize = 253;

/// A fault of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CertificateDefect {
    /// An authority's certificate where a server's belongs.
    Authority,
    /// Valid until then.
    Expired(UnixTime),
    /// Valid from then on.
    NotYetValid(UnixTime),
    /// The end of its validity is before the begin.
    NeverValid,
    /// The host is not among the names.
    OtherName {
        /// The host that was asked for.
        wanted: String,
        /// The names of the certificate.
        names: Vec<String>,
    },
    /// No known authority issued it.
    UnknownIssuer {
        /// Whether the certificate names itself as the issuer.
        is_self_signed: bool,
    },
    /// A signature of it, or made by its key, is wrong.
    BadSignature,
    /// A purpose other than a server's.
    OtherPurpose(Vec<ExtendedKeyPurpose>),
    /// Algorithms, or a size of key, that the library lacks.
    Algorithm(String),
    /// Another fault, in the library's word.
    Other(String),
}

/// All faults of a certificate that were found, at least one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) struct CertificateFaults(pub(crate) Vec<CertificateDefect>);

impl CertificateFaults {
    /// The fault by which the failure is counted: the first.
    pub(crate) fn first_kind(&self) -> CertificateFault {
        self.0
            .first()
            .map_or(CertificateFault::Invalid, CertificateDefect::kind)
    }
}

/// The faults that an error of rustls names.
pub(crate) fn certificate_faults(error: &CertificateError) -> CertificateFaults {
    let found = match error {
        CertificateError::Other(other) => other.0.downcast_ref::<CertificateFaults>(),
        _ => None,
    };
    match found {
        Some(faults) => faults.clone(),
        None => CertificateFaults(vec![CertificateDefect::from_error(error)]),
    }
}

impl CertificateDefect {
    /// The fault that an error names.
    pub(super) fn from_error(error: &CertificateError) -> Self {
        match error {
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired(*not_after),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid(*not_before)
            }
            CertificateError::Expired => Self::NeverValid,
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => Self::OtherName {
                wanted: expected.to_str().into_owned(),
                names: presented.iter().map(|name| shown_name(name)).collect(),
            },
            CertificateError::UnknownIssuer => Self::UnknownIssuer {
                is_self_signed: false,
            },
            CertificateError::BadSignature => Self::BadSignature,
            CertificateError::InvalidPurposeContext { presented, .. } => {
                Self::OtherPurpose(presented.clone())
            }
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id,
                ..
            } => Self::Algorithm(shown_algorithms(signature_algorithm_id)),
            CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                public_key_algorithm_id,
                ..
            } => Self::Algorithm(shown_algorithms(public_key_algorithm_id)),
            CertificateError::Other(other) => match other.0.downcast_ref() {
                Some(webpki::Error::CaUsedAsEndEntity) => Self::Authority,
                Some(webpki::Error::UnsupportedCertVersion) => {
                    Self::Other("it is not of version 3, and so names no host".to_owned())
                }
                Some(error) => Self::Other(format!("it breaks a rule: {error}")),
                None => Self::Other(format!("it breaks a rule: {other}")),
            },
            CertificateError::BadEncoding => Self::Other("it cannot be read".to_owned()),
            error => Self::Other(format!("it breaks a rule: {error}")),
        }
    }

    fn kind(&self) -> CertificateFault {
        match self {
            Self::Authority => CertificateFault::Authority,
            Self::Expired(_) => CertificateFault::Expired,
            Self::NotYetValid(_) => CertificateFault::NotYetValid,
            Self::OtherName { .. } => CertificateFault::OtherName,
            // A bad signature is that of an issuer with the same name and another key.
            Self::UnknownIssuer { .. } | Self::BadSignature => CertificateFault::UnknownIssuer,
            Self::OtherPurpose(_) => CertificateFault::OtherPurpose,
            Self::Algorithm(_) => CertificateFault::Algorithm,
            Self::NeverValid | Self::Other(_) => CertificateFault::Invalid,
        }
    }
}

impl fmt::Display for CertificateFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CertificateDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authority => f.write_str(
                "it is a certificate of an authority (CA:TRUE), as `openssl req -x509` makes them, \
                    and not one of a server (`-addext basicConstraints=critical,CA:FALSE`)",
            ),
            Self::Expired(at) => write!(f, "it expired on {}", shown_time(*at)),
            Self::NotYetValid(at) => write!(f, "it is not valid before {}", shown_time(*at)),
            Self::NeverValid => f.write_str("its validity ends before it begins"),
            Self::OtherName { wanted, names } if names.is_empty() => write!(
                f,
                "it is for no host (it has no subjectAltName), and not for {wanted}"
            ),
            Self::OtherName { wanted, names } => {
                let shown = names.len().min(NAMES_SHOWN_MAX);
                write!(f, "it is for {}", names[..shown].join(", "))?;
                if shown < names.len() {
                    write!(f, " and {} more", names.len() - shown)?;
                }
                write!(f, ", and not for {wanted}")
            }
            Self::UnknownIssuer { is_self_signed } => {
                f.write_str("its issuer is unknown")?;
                if *is_self_signed {
                    f.write_str(" (it is signed by itself)")?;
                }
                Ok(())
            }
            Self::BadSignature => f.write_str(
                "a signature of it is wrong (its issuer has the name of a known one, and another key)",
            ),
            Self::OtherPurpose(purposes) => {
                let purposes: Vec<_> = purposes.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "it is for another purpose than a server's ({})",
                    purposes.join("; ")
                )
            }
            Self::Algorithm(algorithms) => {
                write!(f, "it needs an algorithm that posthaste lacks ({algorithms})")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// The name in `DnsName("hooks.example")`, without what a terminal or a log would stumble over.
fn shown_name(presented: &str) -> String {
    let inner = presented
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or(presented);
    let name = inner.trim_matches('"');
    name.chars()
        .take(NAME_CHARS_MAX)
        .map(|char| if char.is_ascii_graphic() { char } else { '?' })
        .collect()
}

/// To the second, as a certificate has it.
fn shown_time(time: UnixTime) -> String {
    let at = Timestamp::from_millis(time.as_secs().saturating_mul(1000)).to_string();
    at.replacen(".000Z", "Z", 1)
}

/// Whether a certificate names itself as its issuer.
pub(super) fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate)
        .is_ok_and(|certificate| certificate.issuer() == certificate.subject())
}

/// The fault of the names of a certificate, if it has one.
pub(super) fn name_fault(
    certificate: &CertificateDer<'_>,
    wanted: &ServerName<'_>,
) -> Option<CertificateDefect> {
    let parsed = rustls::server::ParsedCertificate::try_from(certificate).ok()?;
    match rustls::client::verify_server_name(&parsed, wanted) {
        Err(rustls::Error::InvalidCertificate(error)) => {
            Some(CertificateDefect::from_error(&error))
        }
        Err(_) | Ok(()) => None,
    }
}
