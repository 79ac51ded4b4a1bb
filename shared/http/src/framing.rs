//! The framing of a response, which decides the end of its body (RFC 9112, section 6.3).

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

/// The end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// There is no body.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
    /// With the connection.
    ToTheEnd,
    /// The headers contradict themselves: the bytes that are there are read, and may not be all.
    Unknown,
}

impl BodyFraming {
    /// Reads the framing as it is written. Leniency does no harm here, as long as the connection is
    /// used for no other request.
    pub(crate) fn from_headers(status: StatusCode, headers: &HeaderMap) -> Self {
        if has_no_body(status) {
            return Self::Empty;
        }
        if let Some(codings) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            let last = codings.as_bytes().rsplit(|byte| *byte == b',').next();
            return if last.is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked")) {
                Self::Chunked
            } else {
                Self::ToTheEnd
            };
        }
        let lengths = headers.get_all(CONTENT_LENGTH).iter();
        let mut lengths = lengths.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let Some(first) = lengths.next() else {
            return Self::ToTheEnd;
        };
        match parse_length(first) {
            Some(first) if lengths.all(|other| parse_length(other) == Some(first)) => {
                Self::Length(first)
            }
            _ => Self::Unknown,
        }
    }
}

/// Whether a response's end is written in the one way that every program between us and its sender
/// reads alike. If not, its connection is used for no other request: the end of a response for one
/// program may be its middle for another (request smuggling).
pub(crate) fn is_plain(status: StatusCode, headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (lengths.next(), codings.next()) {
        (None, None) => true,
        (Some(length), None) => {
            let has_length = length.as_bytes().iter().all(u8::is_ascii_digit);
            let fits = status != StatusCode::NO_CONTENT || length == "0";
            has_length && fits && lengths.next().is_none()
        }
        (None, Some(coding)) => {
            coding.as_bytes().eq_ignore_ascii_case(b"chunked")
                && codings.next().is_none()
                && !has_no_body(status)
        }
        (Some(_), Some(_)) => false,
    }
}

fn has_no_body(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn parse_length(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    let is_number = digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(digits).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lengths: &[&'static str], codings: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for length in lengths {
            headers.append(CONTENT_LENGTH, HeaderValue::from_static(length));
        }
        for coding in codings {
            headers.append(TRANSFER_ENCODING, HeaderValue::from_static(coding));
        }
        headers
    }

    #[test]
    fn a_body_ends_where_its_headers_say() {
        let check = |status: u16, lengths: &[&'static str], codings: &[&'static str], expected| {
            let status = StatusCode::from_u16(status).unwrap();
            let headers = headers(lengths, codings);
            assert_eq!(
                BodyFraming::from_headers(status, &headers),
                expected,
                "{headers:?}"
            );
        };
        check(200, &[], &[], BodyFraming::ToTheEnd);
        check(200, &["5"], &[], BodyFraming::Length(5));
        check(200, &["5", " 5"], &[], BodyFraming::Length(5));
        check(200, &["5, 5"], &[], BodyFraming::Length(5));
        for odd in ["", "-5", "+5", "5 5", "5,6", "0x5", "99999999999999999999"] {
            check(200, &[odd], &[], BodyFraming::Unknown);
        }
        check(200, &["5", "6"], &[], BodyFraming::Unknown);
        check(200, &["5"], &["Chunked"], BodyFraming::Chunked);
        check(200, &[], &["gzip, chunked"], BodyFraming::Chunked);
        check(200, &[], &["gzip", "chunked"], BodyFraming::Chunked);
        check(200, &["5"], &["identity"], BodyFraming::ToTheEnd);
        check(200, &[], &["xchunked"], BodyFraming::ToTheEnd);
        for status in [101, 204, 304] {
            check(status, &["5"], &["chunked"], BodyFraming::Empty);
        }
    }

    #[test]
    fn only_one_way_to_write_the_end_is_plain() {
        let check = |status: u16, lengths: &[&'static str], codings: &[&'static str], expected| {
            let status = StatusCode::from_u16(status).unwrap();
            let headers = headers(lengths, codings);
            assert_eq!(is_plain(status, &headers), expected, "{status} {headers:?}");
        };
        check(200, &[], &[], true);
        check(200, &["5"], &[], true);
        check(200, &[], &["chunked"], true);
        check(204, &["0"], &[], true);
        check(304, &["5"], &[], true);
        check(200, &["5", "5"], &[], false);
        check(200, &["5, 5"], &[], false);
        check(200, &["+5"], &[], false);
        check(200, &["5"], &["chunked"], false);
        check(200, &[], &["chunked", "chunked"], false);
        check(200, &[], &["gzip, chunked"], false);
        check(200, &[], &["identity"], false);
        check(204, &["5"], &[], false);
        check(204, &[], &["chunked"], false);
    }
}
