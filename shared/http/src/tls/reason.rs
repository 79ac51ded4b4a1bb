//! Failed handshakes as sentences: the alert that the endpoint sent, and what is not common to
//! both.

use std::borrow::Cow;

use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible, PeerMisbehaved};

const NO_VERSION: &str = "no TLS version in common: posthaste has TLS 1.2 and TLS 1.3";
const NO_ALGORITHM: &str = "the endpoint chose an algorithm that posthaste lacks";
const NO_HTTP_1_1: &str = "the endpoint does not offer HTTP/1.1";
const CLIENT_CERTIFICATE: &str =
    "the endpoint asks for a client certificate, and posthaste has none";

/// The reason why a handshake failed, or a connection after it; certificates have their own.
pub(crate) fn handshake_reason(error: &Error) -> Cow<'static, str> {
    match error {
        Error::AlertReceived(alert) => alert_reason(*alert).into(),
        Error::PeerIncompatible(fault) => incompatible_reason(fault),
        Error::PeerMisbehaved(fault) => misbehaved_reason(fault),
        Error::NoApplicationProtocol => NO_HTTP_1_1.into(),
        Error::NoCertificatesPresented => "the endpoint shows no certificate".into(),
        Error::InvalidMessage(fault) => unreadable_reason(*fault),
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "the endpoint sent a TLS message out of turn".into()
        }
        Error::DecryptError => "a message of the endpoint could not be decrypted".into(),
        Error::PeerSentOversizedRecord => "the endpoint sent a TLS record that is too large".into(),
        error => format!("the TLS library says: {error}").into(),
    }
}

fn alert_reason(alert: AlertDescription) -> String {
    let said = match alert {
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "no cipher suite, key exchange or signature algorithm in common, or the endpoint asks \
                for a client certificate"
        }
        AlertDescription::ProtocolVersion | AlertDescription::InappropriateFallback => NO_VERSION,
        AlertDescription::UnrecognisedName => "the endpoint does not know the name of its host",
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            CLIENT_CERTIFICATE
        }
        AlertDescription::BadCertificate | AlertDescription::UnsupportedCertificate => {
            "the endpoint may ask for a client certificate, and posthaste has none"
        }
        AlertDescription::NoApplicationProtocol => NO_HTTP_1_1,
        AlertDescription::InternalError => "the endpoint has a fault of its own",
        AlertDescription::AccessDenied => "the endpoint denies access",
        _ => "the endpoint ended it",
    };
    let number = u8::from(alert);
    format!("{said} (it sent the alert {}, {number})", alert_name(alert))
}

/// The names of RFC 8446, section 6, and of what came before and after it.
fn alert_name(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CloseNotify => "close_notify",
        AlertDescription::UnexpectedMessage => "unexpected_message",
        AlertDescription::BadRecordMac => "bad_record_mac",
        AlertDescription::RecordOverflow => "record_overflow",
        AlertDescription::HandshakeFailure => "handshake_failure",
        AlertDescription::NoCertificate => "no_certificate",
        AlertDescription::BadCertificate => "bad_certificate",
        AlertDescription::UnsupportedCertificate => "unsupported_certificate",
        AlertDescription::CertificateRevoked => "certificate_revoked",
        AlertDescription::CertificateExpired => "certificate_expired",
        AlertDescription::CertificateUnknown => "certificate_unknown",
        AlertDescription::IllegalParameter => "illegal_parameter",
        AlertDescription::UnknownCA => "unknown_ca",
        AlertDescription::AccessDenied => "access_denied",
        AlertDescription::DecodeError => "decode_error",
        AlertDescription::DecryptError => "decrypt_error",
        AlertDescription::ProtocolVersion => "protocol_version",
        AlertDescription::InsufficientSecurity => "insufficient_security",
        AlertDescription::InternalError => "internal_error",
        AlertDescription::InappropriateFallback => "inappropriate_fallback",
        AlertDescription::UserCanceled => "user_canceled",
        AlertDescription::NoRenegotiation => "no_renegotiation",
        AlertDescription::MissingExtension => "missing_extension",
        AlertDescription::UnsupportedExtension => "unsupported_extension",
        AlertDescription::UnrecognisedName => "unrecognized_name",
        AlertDescription::UnknownPSKIdentity => "unknown_psk_identity",
        AlertDescription::CertificateRequired => "certificate_required",
        AlertDescription::NoApplicationProtocol => "no_application_protocol",
        _ => "without a name",
    }
}

fn incompatible_reason(fault: &PeerIncompatible) -> Cow<'static, str> {
    match fault {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::SupportedVersionsExtensionRequired
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled => NO_VERSION.into(),
        PeerIncompatible::NoCipherSuitesInCommon => "no cipher suite in common".into(),
        PeerIncompatible::NoKxGroupsInCommon
        | PeerIncompatible::NamedGroupsExtensionRequired
        | PeerIncompatible::KeyShareExtensionRequired => "no key exchange in common".into(),
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::SignatureAlgorithmsExtensionRequired => {
            "no signature algorithm in common".into()
        }
        PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => CLIENT_CERTIFICATE.into(),
        fault => format!("the endpoint's TLS lacks what posthaste requires ({fault:?})").into(),
    }
}

fn misbehaved_reason(fault: &PeerMisbehaved) -> Cow<'static, str> {
    match fault {
        PeerMisbehaved::SelectedUnofferedCipherSuite
        | PeerMisbehaved::SelectedUnofferedKxGroup
        | PeerMisbehaved::SelectedUnusableCipherSuiteForVersion
        | PeerMisbehaved::SignedKxWithWrongAlgorithm
        | PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme => NO_ALGORITHM.into(),
        PeerMisbehaved::SelectedUnofferedApplicationProtocol => NO_HTTP_1_1.into(),
        fault => format!("the endpoint breaks a rule of TLS ({fault:?})").into(),
    }
}

fn unreadable_reason(fault: InvalidMessage) -> Cow<'static, str> {
    match fault {
        InvalidMessage::UnknownProtocolVersion => NO_VERSION.into(),
        InvalidMessage::UnsupportedCurveType
        | InvalidMessage::UnsupportedKeyExchangeAlgorithm(_) => NO_ALGORITHM.into(),
        InvalidMessage::CertificatePayloadTooLarge => {
            "the endpoint's certificates have more than 64 KiB".into()
        }
        fault => format!("the endpoint sent a TLS message that cannot be read ({fault:?})").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alert_is_said_by_its_name_and_meaning() {
        let check = |alert, expected: &str| {
            assert_eq!(handshake_reason(&Error::AlertReceived(alert)), expected);
        };
        check(
            AlertDescription::ProtocolVersion,
            "no TLS version in common: posthaste has TLS 1.2 and TLS 1.3 (it sent the alert \
                protocol_version, 70)",
        );
        check(
            AlertDescription::UnrecognisedName,
            "the endpoint does not know the name of its host (it sent the alert unrecognized_name, \
                112)",
        );
        check(
            AlertDescription::CertificateRequired,
            "the endpoint asks for a client certificate, and posthaste has none (it sent the alert \
                certificate_required, 116)",
        );
        check(
            AlertDescription::from(200),
            "the endpoint ended it (it sent the alert without a name, 200)",
        );
    }

    /// Failures of handshakes name the version, key exchange or algorithm that is not common.
    #[test]
    fn handshake_failure_names_what_is_not_in_common() {
        let check = |error: Error, expected: &str| assert_eq!(handshake_reason(&error), expected);
        check(
            PeerIncompatible::ServerDoesNotSupportTls12Or13.into(),
            "no TLS version in common: posthaste has TLS 1.2 and TLS 1.3",
        );
        check(
            PeerIncompatible::NoKxGroupsInCommon.into(),
            "no key exchange in common",
        );
        check(
            PeerMisbehaved::SelectedUnofferedCipherSuite.into(),
            "the endpoint chose an algorithm that posthaste lacks",
        );
        check(
            PeerMisbehaved::SelectedUnofferedApplicationProtocol.into(),
            "the endpoint does not offer HTTP/1.1",
        );
    }
}
