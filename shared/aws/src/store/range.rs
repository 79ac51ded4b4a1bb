//! Reading a part of an object.

use std::ops::Range;

use bytes::Bytes;
use posthaste_ports::{ErrorKind, PortError, ends_early_error, validate};

use super::bucket::{ObjectResponse, ReadError, S3Bucket};
use crate::clients::failure::to_port_error;

/// The name of this operation in errors.
const GETTING: &str = "get a range of an object";

/// Reads exactly these bytes of an object, again if the body breaks off.
pub(super) async fn read_exactly(
    bucket: &S3Bucket,
    key: &str,
    range: &Range<u64>,
) -> Result<Bytes, PortError> {
    validate::object_key(key).map_err(|refusal| refusal.into_port_error(GETTING))?;
    check_length(range, bucket.object_bytes_max)?;
    let request = bucket
        .get_request(key)
        .range(format!("bytes={}-{}", range.start, range.end - 1));
    match bucket.send_get(request).await {
        Ok(answer) => exact_bytes(range, answer),
        Err(ReadError::Refused(error)) => {
            Err(match error.raw_response().map(|it| it.status().as_u16()) {
                // The object ends before the first byte.
                Some(416) => PortError::with_cause(GETTING, ErrorKind::Damaged, error),
                _ => to_port_error(GETTING, *error),
            })
        }
        Err(ReadError::Body(error)) => Err(error.into_port_error(GETTING)),
    }
}

/// Refuses a range that would not be read in any case.
fn check_length(range: &Range<u64>, most: usize) -> Result<(), PortError> {
    validate::byte_range(range).map_err(|refusal| refusal.into_port_error(GETTING))?;
    let length = range.end - range.start;
    if length > most as u64 {
        let cause = format!("a range of {length} bytes, expected at most {most}");
        return Err(PortError::with_cause(GETTING, ErrorKind::Invalid, cause));
    }
    Ok(())
}

/// The bytes of a response, if they are those that were asked for.
fn exact_bytes(asked: &Range<u64>, answer: ObjectResponse) -> Result<Bytes, PortError> {
    let announced = answer.content_range.as_deref().and_then(parse);
    let begins = announced.is_some_and(|announced| announced.start == asked.start);
    let length = asked.end - asked.start;
    let came = answer.bytes.len() as u64;
    match came {
        _ if !begins || came > length => {
            let cause = format!(
                "the answer has other bytes than {} to {}: {:?}",
                asked.start, asked.end, answer.content_range
            );
            Err(PortError::with_cause(GETTING, ErrorKind::Other, cause))
        }
        _ if came < length => Err(ends_early_error(GETTING, asked, asked.start + came)),
        _ => Ok(answer.bytes),
    }
}

/// The bytes that a header as in `bytes 0-499/1234` announces.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>
fn parse(content_range: &str) -> Option<Range<u64>> {
    let (range, _) = content_range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some(first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(
        asked: Range<u64>,
        content_range: Option<&str>,
        bytes: &'static str,
    ) -> Result<Bytes, ErrorKind> {
        let content_range = content_range.map(str::to_owned);
        let answer = ObjectResponse {
            bytes: Bytes::from(bytes),
            etag: None,
            content_range,
        };
        exact_bytes(&asked, answer).map_err(|error| error.kind)
    }

    #[test]
    fn range_response_is_taken_only_with_exactly_the_asked_bytes() {
        assert_eq!(
            answered(2..5, Some("bytes 2-4/9"), "abc"),
            Ok(Bytes::from("abc"))
        );
        assert_eq!(
            answered(2..5, Some("bytes 2-4/*"), "abc"),
            Ok(Bytes::from("abc"))
        );
        let damaged = Err(ErrorKind::Damaged);
        assert_eq!(answered(2..5, Some("bytes 2-3/4"), "ab"), damaged);
        assert_eq!(answered(2..5, Some("bytes 2-4/9"), "ab"), damaged);
        let other = Err(ErrorKind::Other);
        assert_eq!(answered(2..5, Some("bytes 0-2/9"), "abc"), other);
        assert_eq!(answered(2..5, Some("bytes 2-5/9"), "abcd"), other);
        // A service that takes no notice of the range.
        assert_eq!(answered(2..5, None, "abc"), other);
        assert_eq!(answered(0..3, Some("no range"), "abc"), other);
    }

    #[test]
    fn a_range_that_is_too_long_to_be_read_is_refused() {
        let check =
            |range, expected| assert_eq!(check_length(&range, 9).map_err(|e| e.kind), expected);
        check(7..16, Ok(()));
        check(7..17, Err(ErrorKind::Invalid));
        check(0..u64::MAX, Err(ErrorKind::Invalid));
        check(5..5, Err(ErrorKind::Invalid));
    }

    #[test]
    fn a_content_range_is_read_whatever_it_holds() {
        let check = |text, expected| assert_eq!(parse(text), expected, "{text}");
        check("bytes 0-499/1234", Some(0..500));
        check("bytes 0-0/1", Some(0..1));
        let last = format!("bytes 0-{}/*", u64::MAX);
        for bad in [
            "",
            "bytes",
            "bytes 0-1",
            "bytes */5",
            "items 0-1/2",
            "bytes 0-x/2",
            "bytes -1/2",
            &last,
        ] {
            check(bad, None);
        }
    }
}
