//! Content codings of responses. None is asked for, but some servers and balancers compress
//! whatever they send.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use posthaste_core::model::RESPONSE_BODY_BYTES_MAX;
use posthaste_ports::WebhookResponse;

/// A body, and whether it is all of it.
type DecodedBody = (Vec<u8>, bool);

/// The response with its body as it was before it was compressed, at most as much as is kept of
/// any. A body that cannot be decoded stays as it is, with its coding.
pub(crate) fn decode_response(mut response: WebhookResponse) -> WebhookResponse {
    let mut codings = response.headers.get_all(CONTENT_ENCODING).iter();
    let Some(coding) = codings.next() else {
        return response;
    };
    if codings.next().is_some() {
        return response;
    }
    let Some((body, is_whole)) = decode_body(coding.as_bytes().trim_ascii(), &response.body) else {
        return response;
    };
    response.body = body.into();
    response.body_is_whole &= is_whole;
    response.headers.remove(CONTENT_ENCODING);
    response.headers.remove(CONTENT_LENGTH);
    response
}

fn decode_body(coding: &[u8], body: &Bytes) -> Option<DecodedBody> {
    if body.is_empty() {
        None
    } else if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") {
        read_decoded(MultiGzDecoder::new(&**body))
    } else if coding.eq_ignore_ascii_case(b"deflate") {
        // Some servers leave out the frame of zlib (RFC 9110, section 8.4.1.2).
        read_decoded(ZlibDecoder::new(&**body))
            .or_else(|| read_decoded(DeflateDecoder::new(&**body)))
    } else {
        None
    }
}

/// The bytes that can be decoded. `None` without any.
fn read_decoded(mut decoder: impl Read) -> Option<DecodedBody> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => return Some((text, true)),
            Ok(bytes) => text.extend_from_slice(&piece[..bytes]),
            Err(_) => return (!text.is_empty()).then_some((text, false)),
        }
        if text.len() > RESPONSE_BODY_BYTES_MAX {
            text.truncate(RESPONSE_BODY_BYTES_MAX);
            return Some((text, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn response(coding: &'static str, body: Vec<u8>) -> WebhookResponse {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        headers.insert(CONTENT_LENGTH, body.len().into());
        WebhookResponse {
            status: StatusCode::OK,
            headers,
            body: body.into(),
            body_is_whole: true,
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn check(coding: &'static str, body: Vec<u8>, expected: &[u8], is_whole: bool) {
        let decoded = decode_response(response(coding, body));
        assert_eq!(
            (&*decoded.body, decoded.body_is_whole),
            (expected, is_whole)
        );
        assert!(decoded.headers.is_empty(), "{coding}");
    }

    #[test]
    fn compressed_body_is_its_text() {
        check("gzip", gzip(b"try later"), b"try later", true);
        check("X-GZIP", gzip(b"try later"), b"try later", true);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(b"try later").unwrap();
        check("deflate", zlib.finish().unwrap(), b"try later", true);
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(b"try later").unwrap();
        check("deflate", raw.finish().unwrap(), b"try later", true);
    }

    #[test]
    fn decoded_body_is_no_longer_than_any() {
        let most = vec![b'x'; RESPONSE_BODY_BYTES_MAX];
        check("gzip", gzip(&most), &most, true);
        check("gzip", gzip(&vec![b'x'; 100 << 20]), &most, false);
    }

    #[test]
    fn cut_body_is_decoded_as_far_as_it_goes() {
        let text: Vec<u8> = (0..20_000u32).flat_map(u32::to_le_bytes).collect();
        let mut body = gzip(&text);
        body.truncate(body.len() / 2);
        let decoded = decode_response(response("gzip", body));
        assert!(!decoded.body.is_empty() && text.starts_with(&decoded.body));
        assert!(!decoded.body_is_whole);
    }

    /// Bodies that cannot be decoded stay as they are, with their header.
    #[test]
    fn undecodable_body_keeps_its_coding() {
        for (coding, body) in [
            ("gzip", &b"no gzip"[..]),
            ("deflate", &b"\xff\xff"[..]),
            ("br", &b"\x0b\x01\x80no\x03"[..]),
            ("identity", &b"ok"[..]),
            ("gzip, gzip", &b"ok"[..]),
            ("gzip", &b""[..]),
        ] {
            let decoded = decode_response(response(coding, body.to_vec()));
            assert_eq!(
                (&*decoded.body, decoded.body_is_whole),
                (body, true),
                "{coding}"
            );
            assert_eq!(decoded.headers[CONTENT_ENCODING], coding);
        }
    }
}
