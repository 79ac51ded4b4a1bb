//! A batch request of SQS and its response, item by item.
//!
//! Only an id among the `Successful` is done. An id among the `Failed` carries its own error; an id
//! in neither list is unknown, which is an error too and never a success.

use std::string::FromUtf8Error;
use std::time::Duration;

use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::operation::delete_message_batch::DeleteMessageBatchOutput;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry,
};
use posthaste_ports::{ErrorKind, MessageId, OutgoingMessage, PortError, ReceiptHandle};

use crate::clients::failure::kind_of_code;

/// The result of one item.
pub(super) type ItemResult<T> = Result<T, PortError>;

/// Reasons for which an entry cannot be written. A validated message always can.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error("the body is not UTF-8")]
    Text(#[from] FromUtf8Error),
    #[error("the entry is incomplete")]
    Incomplete(#[from] BuildError),
}

/// Entries whose ids are their places, with the messages' groups or without.
pub(super) fn send_entries(
    messages: Vec<OutgoingMessage>,
    sends_groups: bool,
) -> Result<Vec<SendMessageBatchRequestEntry>, EntryError> {
    messages
        .into_iter()
        .enumerate()
        .map(|(place, message)| send_entry(place, message, sends_groups))
        .collect()
}

fn send_entry(
    place: usize,
    message: OutgoingMessage,
    sends_groups: bool,
) -> Result<SendMessageBatchRequestEntry, EntryError> {
    // A body with a single owner is not copied.
    let body = String::from_utf8(message.body.into())?;
    let entry = SendMessageBatchRequestEntry::builder()
        .id(place.to_string())
        .message_body(body)
        .set_message_group_id(message.group.filter(|_| sends_groups))
        // Always set, because a queue may have a delay of its own.
        .delay_seconds(whole_secs(message.delay));
    Ok(entry.build()?)
}

/// A delay in the whole seconds that SQS takes: never shorter.
fn whole_secs(delay: Duration) -> i32 {
    i32::try_from(delay.as_millis().div_ceil(1000)).unwrap_or(i32::MAX)
}

/// Entries whose ids are their places.
pub(super) fn delete_entries(
    receipts: Vec<ReceiptHandle>,
) -> Result<Vec<DeleteMessageBatchRequestEntry>, EntryError> {
    receipts
        .into_iter()
        .enumerate()
        .map(|(place, receipt)| {
            let entry = DeleteMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .receipt_handle(&*receipt.0);
            Ok(entry.build()?)
        })
        .collect()
}

/// The result of each of `count` messages.
pub(super) fn send_results(
    doing: &'static str,
    count: usize,
    answer: SendMessageBatchOutput,
) -> Vec<ItemResult<MessageId>> {
    let done = answer
        .successful
        .into_iter()
        .map(|entry| (entry.id, MessageId(entry.message_id.into())));
    results_in_order(doing, count, done, answer.failed)
}

/// The result of each of `count` deletes.
pub(super) fn delete_results(
    doing: &'static str,
    count: usize,
    answer: DeleteMessageBatchOutput,
) -> Vec<ItemResult<()>> {
    let done = answer.successful.into_iter().map(|entry| (entry.id, ()));
    results_in_order(doing, count, done, answer.failed)
}

/// Results in the order of the request. Foreign ids are ignored. An id in both lists counts as
/// failed: a repeated message is better than a lost one.
fn results_in_order<T>(
    doing: &'static str,
    count: usize,
    done: impl Iterator<Item = (String, T)>,
    failed: Vec<BatchResultErrorEntry>,
) -> Vec<ItemResult<T>> {
    let mut items: Vec<_> = std::iter::repeat_with(|| Err(missing_result(doing)))
        .take(count)
        .collect();
    let done = done.map(|(id, done)| (id, Ok(done)));
    let failed = failed
        .into_iter()
        .map(|entry| (entry.id.clone(), Err(entry_failure(doing, entry))));
    for (id, result) in done.chain(failed) {
        let place = id.parse::<usize>().ok();
        if let Some(item) = place.and_then(|place| items.get_mut(place)) {
            *item = result;
        }
    }
    items
}

fn missing_result(doing: &'static str) -> PortError {
    let cause = "the answer does not tell of this item";
    PortError::with_cause(doing, ErrorKind::Other, cause)
}

fn entry_failure(doing: &'static str, entry: BatchResultErrorEntry) -> PortError {
    let fallback = if entry.sender_fault {
        ErrorKind::Invalid
    } else {
        ErrorKind::Other
    };
    let kind = kind_of_code(&entry.code, entry.message.as_deref()).unwrap_or(fallback);
    PortError::with_cause(
        doing,
        kind,
        format!("{}: {}", entry.code, entry.message.unwrap_or_default()),
    )
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use aws_sdk_sqs::types::SendMessageBatchResultEntry;
    use bytes::Bytes;

    use super::*;

    fn successful(id: &str) -> SendMessageBatchResultEntry {
        SendMessageBatchResultEntry::builder()
            .id(id)
            .message_id(format!("message {id}"))
            .md5_of_message_body("")
            .build()
            .unwrap()
    }

    fn failed(id: &str, code: &str, sender_fault: bool) -> BatchResultErrorEntry {
        BatchResultErrorEntry::builder()
            .id(id)
            .code(code)
            .message("why")
            .sender_fault(sender_fault)
            .build()
            .unwrap()
    }

    /// Reads a response about three messages.
    fn read(
        successful: Vec<SendMessageBatchResultEntry>,
        failed: Vec<BatchResultErrorEntry>,
    ) -> Vec<Result<String, ErrorKind>> {
        let answer = SendMessageBatchOutput::builder()
            .set_successful(Some(successful))
            .set_failed(Some(failed))
            .build()
            .unwrap();
        send_results("test", 3, answer)
            .into_iter()
            .map(|item| item.map(|id| id.0.to_string()).map_err(|e| e.kind))
            .collect()
    }

    #[test]
    fn results_stand_at_their_places_in_whatever_order_they_came() {
        assert_eq!(
            read(
                vec![successful("2"), successful("0"), successful("1")],
                vec![]
            ),
            [
                Ok("message 0".to_owned()),
                Ok("message 1".to_owned()),
                Ok("message 2".to_owned())
            ]
        );
    }

    #[test]
    fn an_id_in_neither_list_is_not_sent() {
        assert_eq!(
            read(vec![successful("1")], vec![]),
            [
                Err(ErrorKind::Other),
                Ok("message 1".to_owned()),
                Err(ErrorKind::Other)
            ]
        );
        assert_eq!(read(vec![], vec![]), [const { Err(ErrorKind::Other) }; 3]);
    }

    #[test]
    fn an_id_in_both_lists_is_not_sent() {
        let read = read(
            vec![successful("0")],
            vec![failed("0", "InternalError", false)],
        );
        assert_eq!(read[0], Err(ErrorKind::Other));
    }

    #[test]
    fn foreign_ids_are_passed_over() {
        let foreign = ["3", "-1", "", "x", "18446744073709551616"]
            .map(successful)
            .to_vec();
        assert_eq!(read(foreign, vec![]), [const { Err(ErrorKind::Other) }; 3]);
    }

    #[test]
    fn a_failed_entry_has_the_kind_of_its_code_or_else_of_its_fault() {
        let check = |code: &str, sender_fault, expected| {
            let read = read(vec![], vec![failed("1", code, sender_fault)]);
            assert_eq!(read[1], Err(expected), "{code}");
        };
        check("InternalError", false, ErrorKind::Other);
        check("ServiceUnavailable", false, ErrorKind::Other);
        check("InvalidMessageContents", true, ErrorKind::Invalid);
        check("InvalidParameterValue", true, ErrorKind::Invalid);
        check("ReceiptHandleIsInvalid", true, ErrorKind::NotFound);
        check("AccessDenied", true, ErrorKind::Denied);
        check(
            "AWS.SimpleQueueService.NonExistentQueue",
            true,
            ErrorKind::NotFound,
        );
        check(
            "RequestThrottled",
            true,
            ErrorKind::Throttled { retry_after: None },
        );
        check(
            "ThrottlingException",
            false,
            ErrorKind::Throttled { retry_after: None },
        );
    }

    #[test]
    fn an_error_tells_what_sqs_said() {
        let answer = DeleteMessageBatchOutput::builder()
            .set_successful(Some(vec![]))
            .failed(failed("0", "Code", true));
        let error = delete_results("delete", 1, answer.build().unwrap())
            .remove(0)
            .unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), "Code: why");
    }

    #[test]
    fn entry_has_body_and_delay_and_the_group_if_groups_are_sent() {
        let message = OutgoingMessage {
            body: Bytes::from("b\u{fc}"),
            group: Some("g".to_owned()),
            delay: Duration::from_mins(15),
        };
        for (sends_groups, group) in [(true, Some("g")), (false, None)] {
            let entry = send_entries(vec![message.clone()], sends_groups)
                .unwrap()
                .remove(0);
            assert_eq!((entry.id(), entry.message_body()), ("0", "b\u{fc}"));
            assert_eq!(
                (entry.message_group_id(), entry.delay_seconds()),
                (group, Some(900))
            );
        }
    }

    #[test]
    fn a_body_that_is_no_text_is_refused() {
        let message = OutgoingMessage {
            body: Bytes::from_static(b"\xff"),
            group: None,
            delay: Duration::ZERO,
        };
        assert!(matches!(
            send_entries(vec![message], false),
            Err(EntryError::Text(_))
        ));
    }
}
