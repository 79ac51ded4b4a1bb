//! Rules of SQS. They are written from its documentation, and on purpose not with the code under
//! test.

use posthaste_core::model::{
    SQS_BATCH_ENTRIES_MAX, SQS_DELAY_SECS_MAX, SQS_GROUP_ID_CHARS_MAX, SQS_MESSAGE_BYTES_MAX,
    SQS_VISIBILITY_SECS_MAX,
};

use super::error::Error;
use super::request::{Outgoing, Receive};

/// Longest id of a batch's entry, in characters.
const ENTRY_ID_CHARS_MAX: usize = 80;

/// Longest `WaitTimeSeconds`, in seconds.
const WAIT_SECS_MAX: i64 = 20;

/// The ids of a batch's entries.
pub(super) fn entry_ids(ids: &[&str]) -> Result<(), Error> {
    let count = ids.len();
    if count == 0 {
        return Err(Error::empty_batch());
    }
    if count > SQS_BATCH_ENTRIES_MAX {
        return Err(Error::too_many_entries(count));
    }
    for (index, id) in ids.iter().enumerate() {
        let is_word = id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !is_word || id.is_empty() || id.len() > ENTRY_ID_CHARS_MAX {
            return Err(Error::bad_entry_id());
        }
        if ids[..index].contains(id) {
            return Err(Error::repeated_entry_id(id));
        }
    }
    Ok(())
}

/// A message to send; answers its body.
pub(super) fn outgoing(outgoing: &Outgoing) -> Result<&str, Error> {
    let body = outgoing.body.as_deref().filter(|body| !body.is_empty());
    let body = body.ok_or_else(|| Error::missing("MessageBody"))?;
    if body.len() > SQS_MESSAGE_BYTES_MAX {
        return Err(Error::too_long_message());
    }
    if !body.chars().all(is_accepted) {
        return Err(Error::refused_characters());
    }
    let delay_max = i64::from(SQS_DELAY_SECS_MAX);
    if let Some(delay) = outgoing
        .delay_secs
        .filter(|delay| !(0..=delay_max).contains(delay))
    {
        return Err(Error::invalid(
            "DelaySeconds",
            delay,
            "DelaySeconds must be >= 0 and <= 900.",
        ));
    }
    if let Some(group) = outgoing
        .group
        .as_deref()
        .filter(|group| !is_group_id(group))
    {
        let reason = "MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.";
        return Err(Error::invalid("MessageGroupId", group, reason));
    }
    if let Some(id) = &outgoing.deduplication_id {
        let reason = "The request include parameter that is not valid for this queue type.";
        return Err(Error::invalid("MessageDeduplicationId", id, reason));
    }
    Ok(body)
}

/// A receive.
pub(super) fn receive(receive: &Receive) -> Result<(), Error> {
    let entries_max = i64::try_from(SQS_BATCH_ENTRIES_MAX).unwrap_or(i64::MAX);
    if !(1..=entries_max).contains(&receive.max) {
        let reason = "Must be between 1 and 10, if provided.";
        return Err(Error::invalid("MaxNumberOfMessages", receive.max, reason));
    }
    if !(0..=WAIT_SECS_MAX).contains(&receive.wait_secs) {
        let reason = "Must be >= 0 and <= 20, if provided.";
        return Err(Error::invalid("WaitTimeSeconds", receive.wait_secs, reason));
    }
    visibility(receive.visibility_secs)
}

/// A visibility timeout by itself.
pub(super) fn visibility(secs: i64) -> Result<(), Error> {
    if (0..=i64::from(SQS_VISIBILITY_SECS_MAX)).contains(&secs) {
        return Ok(());
    }
    Err(Error::invalid(
        "VisibilityTimeout",
        secs,
        "Must be between 0 and 43200.",
    ))
}

/// `#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF`.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn is_accepted(c: char) -> bool {
    matches!(u32::from(c), 0x9 | 0xA | 0xD | 0x20..=0xD7FF | 0xE000..=0xFFFD | 0x1_0000..=0x10_FFFF)
}

fn is_group_id(group: &str) -> bool {
    (1..=SQS_GROUP_ID_CHARS_MAX).contains(&group.len())
        && group
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c.is_ascii_punctuation())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<(), Error>) -> String {
        result.map_or_else(|error| error.code, |()| "ok".to_owned())
    }

    #[test]
    fn ids_of_a_batch_are_few_plain_and_distinct() {
        let check = |ids: &[&str], expected: &str| {
            let short = code(entry_ids(ids)).replace("AWS.SimpleQueueService.", "");
            assert_eq!(short, expected, "{ids:?}");
        };
        check(&["a", "b-_9"], "ok");
        check(&["a"; 1], "ok");
        check(&[], "EmptyBatchRequest");
        check(
            &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"],
            "TooManyEntriesInBatchRequest",
        );
        check(&["a", "b", "a"], "BatchEntryIdsNotDistinct");
        check(&["a.b"], "InvalidBatchEntryId");
        check(&[""], "InvalidBatchEntryId");
        check(&[&"i".repeat(80)], "ok");
        check(&[&"i".repeat(81)], "InvalidBatchEntryId");
    }

    #[test]
    fn a_message_keeps_every_limit() {
        let good = || Outgoing {
            body: Some("x".into()),
            delay_secs: None,
            group: None,
            deduplication_id: None,
        };
        let check = |message: &Outgoing, expected: &str| {
            assert_eq!(code(outgoing(message).map(drop)), expected);
        };
        let body = |body: &str| Outgoing {
            body: Some(body.to_owned()),
            ..good()
        };
        check(&good(), "ok");
        check(
            &Outgoing {
                body: None,
                ..good()
            },
            "MissingParameter",
        );
        check(&body(""), "MissingParameter");
        check(&body(&"x".repeat(1_048_576)), "ok");
        check(&body(&"x".repeat(1_048_577)), "InvalidParameterValue");
        check(
            &body("\t\n\r \u{d7ff}\u{e000}\u{fffd}\u{10000}\u{10ffff}"),
            "ok",
        );
        for bad in ["\0", "\u{8}", "\u{b}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
            check(&body(bad), "InvalidMessageContents");
        }
        for (delay, expected) in [
            (0, "ok"),
            (900, "ok"),
            (901, "InvalidParameterValue"),
            (-1, "InvalidParameterValue"),
        ] {
            check(
                &Outgoing {
                    delay_secs: Some(delay),
                    ..good()
                },
                expected,
            );
        }
        let group = |group: &str| Outgoing {
            group: Some(group.to_owned()),
            ..good()
        };
        check(&group("orders.billing"), "ok");
        check(&group(&"g".repeat(128)), "ok");
        for bad in ["", "a b", "ä", &"g".repeat(129)] {
            check(&group(bad), "InvalidParameterValue");
        }
        check(
            &Outgoing {
                deduplication_id: Some("d".into()),
                ..good()
            },
            "InvalidParameterValue",
        );
    }

    #[test]
    fn a_receive_keeps_every_limit() {
        let check = |max, visibility_secs, wait_secs, expected: &str| {
            let asked = Receive {
                max,
                visibility_secs,
                wait_secs,
                attributes: vec![],
            };
            assert_eq!(code(receive(&asked)), expected, "{asked:?}");
        };
        check(1, 0, 0, "ok");
        check(10, 43_200, 20, "ok");
        for (max, visibility, wait) in [
            (0, 30, 0),
            (11, 30, 0),
            (1, 43_201, 0),
            (1, -1, 0),
            (1, 30, 21),
        ] {
            check(max, visibility, wait, "InvalidParameterValue");
        }
    }
}
