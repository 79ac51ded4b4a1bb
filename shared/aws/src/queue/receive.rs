//! Receiving by polling. On AWS the event source mapping receives, and this code does not run.

use std::time::Duration;

use aws_sdk_sqs::Config;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::validate::{self, RECEIVE_WAIT_MAX};
use posthaste_ports::{
    ErrorKind, MessageId, PortError, ReceiptHandle, ReceiveRequest, ReceivedMessage,
};

use super::calls::SqsCalls;
use crate::clients::failure::to_port_error;
use crate::clients::limits::request_timeouts;

const RECEIVING: &str = "receive messages";

pub(super) async fn receive_messages(
    calls: &SqsCalls,
    request: ReceiveRequest,
) -> Result<Vec<ReceivedMessage>, PortError> {
    validate::receive_request(&request).map_err(|refusal| refusal.into_port_error(RECEIVING))?;
    let call = calls
        .client
        .receive_message()
        .queue_url(calls.own_url(RECEIVING)?);
    let call = call
        .max_number_of_messages(i32::try_from(request.max).unwrap_or(i32::MAX))
        .visibility_timeout(whole_secs(request.visibility))
        .wait_time_seconds(whole_secs(request.wait))
        .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
        .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
    let answer = if request.wait.is_zero() {
        call.send().await
    } else {
        let patient = Config::builder().timeout_config(request_timeouts(RECEIVE_WAIT_MAX));
        call.customize().config_override(patient).send().await
    };
    let answer = answer.map_err(|e| to_port_error(RECEIVING, e))?;
    answer
        .messages
        .unwrap_or_default()
        .into_iter()
        .map(received_message)
        .collect()
}

/// A message without its id, receipt or attributes makes the whole response untrustworthy: all its
/// messages come back after the visibility timeout.
fn received_message(message: Message) -> Result<ReceivedMessage, PortError> {
    read_message(message).ok_or_else(|| PortError::new(RECEIVING, ErrorKind::Other))
}

fn read_message(message: Message) -> Option<ReceivedMessage> {
    let receive_count = read_number(
        &message,
        &MessageSystemAttributeName::ApproximateReceiveCount,
    )?;
    let sent_at = read_number(&message, &MessageSystemAttributeName::SentTimestamp)?;
    Some(ReceivedMessage {
        id: MessageId(message.message_id?.into()),
        receipt: ReceiptHandle(message.receipt_handle?.into()),
        body: Bytes::from(message.body?),
        receive_count: u32::try_from(receive_count).unwrap_or(u32::MAX),
        sent_at: Timestamp::from_millis(sent_at),
    })
}

fn read_number(message: &Message, name: &MessageSystemAttributeName) -> Option<u64> {
    message.attributes.as_ref()?.get(name)?.parse().ok()
}

/// Whole seconds, as SQS takes them, rounded up.
pub(super) fn whole_secs(length: Duration) -> i32 {
    let secs = length
        .as_secs()
        .saturating_add((length.subsec_nanos() > 0).into());
    i32::try_from(secs).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_second_counts_as_one() {
        let check =
            |ms, expected| assert_eq!(whole_secs(Duration::from_millis(ms)), expected, "{ms}");
        check(0, 0);
        check(1, 1);
        check(1000, 1);
        check(43_199_001, 43_200);
        assert_eq!(whole_secs(Duration::MAX), i32::MAX);
    }

    fn message() -> aws_sdk_sqs::types::builders::MessageBuilder {
        Message::builder()
            .message_id("id")
            .receipt_handle("receipt")
            .body("body")
            .attributes(MessageSystemAttributeName::ApproximateReceiveCount, "3")
            .attributes(MessageSystemAttributeName::SentTimestamp, "1700000000123")
    }

    #[test]
    fn a_message_is_read_with_its_attributes() {
        let read = received_message(message().build()).unwrap();
        assert_eq!(
            (&*read.id.0, &*read.receipt.0, &*read.body),
            ("id", "receipt", &b"body"[..])
        );
        assert_eq!(
            (read.receive_count, read.sent_at),
            (3, Timestamp::from_millis(1_700_000_000_123))
        );
    }

    #[test]
    fn a_message_that_lacks_something_is_an_error() {
        for lacking in [
            message().set_message_id(None),
            message().set_receipt_handle(None),
            message().set_body(None),
            message().set_attributes(None),
            message().attributes(MessageSystemAttributeName::ApproximateReceiveCount, "many"),
        ] {
            assert_eq!(
                received_message(lacking.build())
                    .map_err(|e| e.kind)
                    .unwrap_err(),
                ErrorKind::Other
            );
        }
    }
}
