//! The limits of the ports as checks, so that every adapter refuses the same. What is refused is of
//! kind `Invalid`.

use std::ops::Range;
use std::time::Duration;

use posthaste_core::model::{
    OBJECT_KEY_BYTES_MAX, SQS_BATCH_ENTRIES_MAX, SQS_DELAY_MAX, SQS_GROUP_ID_CHARS_MAX,
    SQS_MESSAGE_BYTES_MAX, SQS_VISIBILITY_SECS_MAX, fits_into_a_message, is_object_key,
};

use crate::{ErrorKind, OutgoingMessage, PortError, ReceiveRequest};

/// Longest `WaitTimeSeconds` of a receive.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html>
pub const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Most objects on one page of a listing.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>
pub const LIST_PAGE_MAX: usize = 1000;

/// Bytes of a body that are looked at together.
const CHUNK_BYTES: usize = 1024;

/// Why a request breaks a limit of a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitRefusal {
    /// A batch of none or of too many.
    #[error("{0} entries, expected 1 to {SQS_BATCH_ENTRIES_MAX}")]
    Entries(usize),
    /// The bodies of a batch together.
    #[error("the bodies sum to {0} bytes, expected at most {SQS_MESSAGE_BYTES_MAX}")]
    BatchBytes(usize),
    /// One body.
    #[error("the body has {0} bytes, expected 1 to {SQS_MESSAGE_BYTES_MAX}")]
    BodyBytes(usize),
    /// The body is not text of characters SQS accepts.
    #[error("the body holds a character that SQS refuses, or is not UTF-8")]
    BodyCharacters,
    /// The delay.
    #[error("a delay of {0:?}, expected at most {SQS_DELAY_MAX:?}")]
    Delay(Duration),
    /// The group id.
    #[error("a group id is 1 to {SQS_GROUP_ID_CHARS_MAX} visible ASCII characters")]
    Group,
    /// The visibility timeout.
    #[error("a visibility timeout of {0:?}, expected at most {SQS_VISIBILITY_SECS_MAX} s")]
    Visibility(Duration),
    /// The wait of a receive.
    #[error("a wait of {0:?}, expected at most {RECEIVE_WAIT_MAX:?}")]
    Wait(Duration),
    /// An object's key.
    #[error(
        "a key is 1 to {OBJECT_KEY_BYTES_MAX} bytes in segments, none of them empty, '.' or '..', without \
         control characters"
    )]
    Key,
    /// A range of an object's bytes.
    #[error("bytes {} to {} of an object, expected a range of one byte or more", .0.start, .0.end)]
    Range(Range<u64>),
    /// The number of objects on a page.
    #[error("a page of {0}, expected 1 to {LIST_PAGE_MAX}")]
    Page(usize),
}

impl LimitRefusal {
    /// The refusal as the port's error.
    pub fn into_port_error(self, doing: &'static str) -> PortError {
        PortError::with_cause(doing, ErrorKind::Invalid, self)
    }
}

/// Checks the limits of a whole batch; [`message`] checks its entries one by one.
pub fn batch(entries: &[OutgoingMessage]) -> Result<(), LimitRefusal> {
    if !(1..=SQS_BATCH_ENTRIES_MAX).contains(&entries.len()) {
        return Err(LimitRefusal::Entries(entries.len()));
    }
    let sum = entries.iter().map(|entry| entry.body.len()).sum();
    if sum > SQS_MESSAGE_BYTES_MAX {
        Err(LimitRefusal::BatchBytes(sum))
    } else {
        Ok(())
    }
}

/// Checks the limits of one message.
pub fn message(message: &OutgoingMessage) -> Result<(), LimitRefusal> {
    if message.delay > SQS_DELAY_MAX {
        return Err(LimitRefusal::Delay(message.delay));
    }
    if message
        .group
        .as_deref()
        .is_some_and(|group| !is_group_id(group))
    {
        return Err(LimitRefusal::Group);
    }
    if !(1..=SQS_MESSAGE_BYTES_MAX).contains(&message.body.len()) {
        return Err(LimitRefusal::BodyBytes(message.body.len()));
    }
    if is_accepted_text(&message.body) {
        Ok(())
    } else {
        Err(LimitRefusal::BodyCharacters)
    }
}

/// Checks the limits of a receive.
pub fn receive_request(request: &ReceiveRequest) -> Result<(), LimitRefusal> {
    if !(1..=SQS_BATCH_ENTRIES_MAX).contains(&request.max) {
        return Err(LimitRefusal::Entries(request.max));
    }
    visibility_timeout(request.visibility)?;
    if request.wait > RECEIVE_WAIT_MAX {
        Err(LimitRefusal::Wait(request.wait))
    } else {
        Ok(())
    }
}

/// Checks the limit of a visibility timeout.
pub fn visibility_timeout(length: Duration) -> Result<(), LimitRefusal> {
    let longest = Duration::from_secs(SQS_VISIBILITY_SECS_MAX.into());
    if length > longest {
        Err(LimitRefusal::Visibility(length))
    } else {
        Ok(())
    }
}

/// Checks an object's key.
pub fn object_key(key: &str) -> Result<(), LimitRefusal> {
    if is_object_key(key) {
        Ok(())
    } else {
        Err(LimitRefusal::Key)
    }
}

/// Checks a range of an object's bytes.
pub fn byte_range(range: &Range<u64>) -> Result<(), LimitRefusal> {
    if range.is_empty() {
        Err(LimitRefusal::Range(range.clone()))
    } else {
        Ok(())
    }
}

/// Checks the limit of a listing's page.
pub fn page_size(max: usize) -> Result<(), LimitRefusal> {
    if (1..=LIST_PAGE_MAX).contains(&max) {
        Ok(())
    } else {
        Err(LimitRefusal::Page(max))
    }
}

fn is_group_id(group: &str) -> bool {
    (1..=SQS_GROUP_ID_CHARS_MAX).contains(&group.len())
        && group.bytes().all(|b| b.is_ascii_graphic())
}

/// Whether every character is one of #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn is_accepted_text(body: &[u8]) -> bool {
    // UTF-8 has no surrogates, so only control characters and U+FFFE, U+FFFF are left to refuse.
    std::str::from_utf8(body).is_ok()
        && !body.chunks(CHUNK_BYTES).any(has_refused_control)
        && fits_into_a_message(body)
}

fn has_refused_control(chunk: &[u8]) -> bool {
    // Without an early end in a chunk, many bytes are compared at once.
    chunk
        .iter()
        .fold(false, |has, byte| has | is_refused_control(*byte))
}

fn is_refused_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn of(body: impl Into<Bytes>) -> OutgoingMessage {
        OutgoingMessage {
            body: body.into(),
            group: None,
            delay: Duration::ZERO,
        }
    }

    #[test]
    fn a_body_is_text_of_accepted_characters() {
        let check =
            |body: &str, expected| assert_eq!(message(&of(body.to_owned())), expected, "{body:?}");
        for good in [
            "a",
            "\t\n\r ",
            "\u{7f}\u{85}",
            "\u{d7ff}\u{e000}\u{fffd}",
            "\u{10000}\u{10ffff}",
        ] {
            check(good, Ok(()));
        }
        for bad in ["\0", "a\u{1f}b", "\u{b}", "\u{fffe}", "x\u{ffff}"] {
            check(bad, Err(LimitRefusal::BodyCharacters));
        }
        assert_eq!(
            message(&of(vec![0xff, 0xfe])),
            Err(LimitRefusal::BodyCharacters)
        );
        check("", Err(LimitRefusal::BodyBytes(0)));
    }

    #[test]
    fn limits_are_inclusive() {
        let sized = |bytes: usize| of("x".repeat(bytes));
        assert_eq!(message(&sized(SQS_MESSAGE_BYTES_MAX)), Ok(()));
        assert_eq!(
            message(&sized(SQS_MESSAGE_BYTES_MAX + 1)),
            Err(LimitRefusal::BodyBytes(1_048_577))
        );
        assert_eq!(
            message(&OutgoingMessage {
                delay: Duration::from_mins(15),
                ..of("x")
            }),
            Ok(())
        );
        assert_eq!(
            message(&OutgoingMessage {
                delay: Duration::from_secs(901),
                ..of("x")
            }),
            Err(LimitRefusal::Delay(Duration::from_secs(901)))
        );
        assert_eq!(batch(&vec![sized(104_857); 10]), Ok(()));
        assert_eq!(
            batch(&vec![sized(104_858); 10]),
            Err(LimitRefusal::BatchBytes(1_048_580))
        );
        assert_eq!(batch(&vec![sized(1); 11]), Err(LimitRefusal::Entries(11)));
        assert_eq!(batch(&[]), Err(LimitRefusal::Entries(0)));
        assert_eq!(visibility_timeout(Duration::from_hours(12)), Ok(()));
        let over = Duration::from_millis(43_200_001);
        assert_eq!(
            visibility_timeout(over),
            Err(LimitRefusal::Visibility(over))
        );
    }

    #[test]
    fn a_range_has_a_byte_or_more() {
        let check = |asked: Range<u64>, expected| {
            assert_eq!(byte_range(&asked).is_ok(), expected, "{asked:?}");
        };
        check(0..1, true);
        check(u64::MAX - 1..u64::MAX, true);
        check(0..0, false);
        check(7..7, false);
        check(Range { start: 8, end: 7 }, false);
    }

    #[test]
    fn a_group_id_is_short_visible_ascii() {
        let check = |group: &str, expected| {
            let grouped = OutgoingMessage {
                group: Some(group.to_owned()),
                ..of("x")
            };
            assert_eq!(message(&grouped), expected, "{group}");
        };
        check("orders.billing", Ok(()));
        check(&"g".repeat(128), Ok(()));
        for bad in ["", "a b", "ä", "a\n", &"g".repeat(129)] {
            check(bad, Err(LimitRefusal::Group));
        }
    }

    proptest! {
        #[test]
        fn text_is_accepted_exactly_when_each_character_is(text in any::<String>()) {
            let accepted = |c: char| {
                matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}')
                    || matches!(c, '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
            };
            prop_assert_eq!(is_accepted_text(text.as_bytes()), text.chars().all(accepted));
        }
    }
}
