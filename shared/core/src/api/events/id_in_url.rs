//! The id of an event in a URL. Producers choose ids freely, and a URL does not carry all of them.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::delivery_log::cut_text;
use crate::model::EVENT_ID_URL_BYTES_MAX;

/// Base64url without padding, and with any when it is read.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The segment of a path beside a parameter that has the id.
const NO_SEGMENT: &str = "-";

/// An id as a URL carries it. Only as much of it as the delivery log keeps, by which it is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdInUrl<'a> {
    /// A segment of the path.
    Segment(&'a str),
    /// The parameter `id`.
    Id(&'a str),
    /// The parameter `id64`: base64url, a third longer than the id, where percent-encoding may take
    /// three times as much.
    Id64(String),
}

impl<'a> IdInUrl<'a> {
    /// The way for this id. Only a plain one is a segment: clients and proxies take `.` and `..` for
    /// steps, and some decode `%2F` and `%25` on the way, as an HTTP API of API Gateway does.
    pub fn for_id(id: &'a str) -> Self {
        let id = cut_text(id);
        let encoded_bytes: usize = id
            .bytes()
            .map(|byte| if is_bare(byte) { 1 } else { 3 })
            .sum();
        if encoded_bytes > EVENT_ID_URL_BYTES_MAX {
            Self::always_encoded(id)
        } else if is_plain(id) {
            Self::Segment(id)
        } else {
            Self::Id(id)
        }
    }

    /// The way for an id that no form and no proxy may change.
    pub fn always_encoded(id: &str) -> Self {
        Self::Id64(BASE64.encode(cut_text(id)))
    }

    /// The segment of the path.
    pub fn path_segment(&self) -> &str {
        match self {
            Self::Segment(id) => id,
            Self::Id(_) | Self::Id64(_) => NO_SEGMENT,
        }
    }

    /// The parameter beside it, by name and value.
    pub fn query_parameter(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Segment(_) => None,
            Self::Id(id) => Some(("id", id)),
            Self::Id64(id) => Some(("id64", id)),
        }
    }
}

/// Whether each reader of a path leaves this segment as it is.
fn is_plain(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..") && segment.bytes().all(|byte| is_bare(byte) || byte == b'.')
}

fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
}

/// Whether each reader of a path leaves the segments of this key as they are.
pub fn is_plain_path(key: &str) -> bool {
    key.split('/').all(is_plain)
}

/// An id that was read from base64url.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct EncodedId(pub String);

/// A text that is no id in base64url.
#[derive(Debug, thiserror::Error)]
#[error("expected the UTF-8 of an id in base64url (RFC 4648, section 5)")]
pub struct EncodedIdError;

impl TryFrom<String> for EncodedId {
    type Error = EncodedIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = BASE64.decode(text).map_err(|_| EncodedIdError)?;
        String::from_utf8(bytes)
            .map(Self)
            .map_err(|_| EncodedIdError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LOG_TEXT_CHARS_MAX;
    use proptest::prelude::*;

    /// Longest URL that all recipients should take, in bytes.
    /// <https://www.rfc-editor.org/rfc/rfc9110#section-4.1>
    const URL_BYTES_MIN: usize = 8_000;

    fn id_of(carried: &IdInUrl<'_>) -> String {
        match carried {
            IdInUrl::Segment(id) | IdInUrl::Id(id) => (*id).to_owned(),
            IdInUrl::Id64(id) => EncodedId::try_from(id.clone()).unwrap().0,
        }
    }

    #[test]
    fn only_a_plain_id_is_a_segment() {
        for plain in ["order-1", "a_b.c", "...", "-", "a..b", &"x".repeat(1_024)] {
            assert_eq!(IdInUrl::for_id(plain), IdInUrl::Segment(plain), "{plain}");
        }
        for other in [
            "", ".", "..", "a/b", "../x", "a%41", "a%2Fb", "a b", "a+b", "ü", "\"", "'", "a?b#c",
            "a\\b", "a:b", "~a", "a\nb", "\0",
        ] {
            let carried = IdInUrl::for_id(other);
            assert_eq!(carried, IdInUrl::Id(other));
            assert_eq!(
                (carried.path_segment(), carried.query_parameter()),
                ("-", Some(("id", other)))
            );
        }
    }

    #[test]
    fn long_id_is_carried_in_base64_as_far_as_the_log_has_it() {
        for character in ["👋", "日", "ü", "\"", "%", "."] {
            let id = character.repeat(5_000);
            let carried = IdInUrl::for_id(&id);
            let (name, value) = carried.query_parameter().unwrap();
            assert_eq!(name, "id64");
            assert!(value.len() < URL_BYTES_MIN - 1_000, "{}", value.len());
            assert_eq!(id_of(&carried), character.repeat(LOG_TEXT_CHARS_MAX));
        }
        let long = "x".repeat(100_000);
        assert_eq!(
            IdInUrl::for_id(&long),
            IdInUrl::Segment(&long[..LOG_TEXT_CHARS_MAX])
        );
    }

    #[test]
    fn base64_is_read_with_padding_and_without() {
        let check = |text: &str, expected: Option<&str>| {
            let read = EncodedId::try_from(text.to_owned()).ok();
            assert_eq!(read.map(|id| id.0).as_deref(), expected, "{text}");
        };
        check("", Some(""));
        check("YQ", Some("a"));
        check("YQ==", Some("a"));
        check("w7w_w7w-", Some("ü?ü>"));
        for bad in ["Y", "YQ=Q", "w7w/", "_w", "a b", "é"] {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn every_id_arrives_as_it_is(id in any::<String>()) {
            prop_assert_eq!(id_of(&IdInUrl::for_id(&id)), cut_text(&id));
            prop_assert_eq!(id_of(&IdInUrl::always_encoded(&id)), cut_text(&id));
        }
    }
}
