//! The content coding of a message: the compression of its body, such as gzip.

use http::header::{CONTENT_ENCODING, HeaderMap};

/// The coding that changes nothing.
const IDENTITY: &[u8] = b"identity";

/// The first content coding that changes the body. `None` if there is none: the header may be left
/// out, be empty, or say `identity`, as often as it likes.
pub fn content_coding(headers: &HeaderMap) -> Option<&[u8]> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings
        .map(<[u8]>::trim_ascii)
        .find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(IDENTITY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn empty_coding_and_identity_are_none() {
        let check = |values: &[&'static str], expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            let found = content_coding(&headers);
            assert_eq!(found, expected.map(str::as_bytes), "{values:?}");
        };
        for nothing in [
            &[][..],
            &[""],
            &[" "],
            &[","],
            &["identity"],
            &["Identity, IDENTITY"],
            &["", "identity"],
        ] {
            check(nothing, None);
        }
        check(&["gzip"], Some("gzip"));
        check(&["identity, br"], Some("br"));
        check(&["identity", "gzip"], Some("gzip"));
        check(&["", " x-unknown "], Some("x-unknown"));
    }
}
