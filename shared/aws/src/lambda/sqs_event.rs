//! The event of an SQS event source mapping, read record by record.
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>

use std::collections::HashSet;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_ports::queue::{MessageId, ReceiptHandle, ReceivedMessage};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The event with its records still unread: a broken record must not hide the others.
#[derive(Debug, Deserialize)]
pub(crate) struct SqsEvent {
    #[serde(rename = "Records")]
    records: Vec<Box<RawValue>>,
}

/// The event of a function that a queue and a schedule start. Only the queue's has records.
#[derive(Debug, Deserialize)]
pub(crate) struct QueueOrSchedule {
    #[serde(rename = "Records")]
    records: Option<Vec<Box<RawValue>>>,
}

/// An event that cannot be worked on at all: the invocation fails, and every message of it comes
/// again. Holds the place, from 0, of a record without an id. A record can only be reported by its
/// id, and is deleted when it is not reported. So nothing is begun: the work on its neighbours
/// would be repeated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {0} of the event has no messageId")]
pub(crate) struct SqsEventError(usize);

/// Reasons for which a record is not a message for the handler. It is reported by its id, and comes
/// again.
#[derive(Debug, thiserror::Error)]
enum SqsRecordError {
    #[error("the record is not as SQS sends it")]
    Shape(#[from] serde_json::Error),
    #[error("the attribute {0} is not a number")]
    Number(&'static str),
    #[error("the record is of another queue than its neighbours")]
    OtherQueue,
}

/// The messages of one invocation by the event source mapping of a queue.
#[derive(Debug, Clone, Default)]
pub struct SqsBatch {
    /// The queue's name on AWS: the last segment of its ARN.
    pub queue: String,
    /// The messages, as they were received.
    pub messages: Vec<ReceivedMessage>,
}

/// An event, sorted into messages and records that were not understood.
#[derive(Debug, Default)]
pub(super) struct SortedRecords {
    /// The messages that were understood.
    pub(super) batch: SqsBatch,
    /// The ids that may be reported.
    pub(super) ids: EventMessageIds,
}

/// The ids of an event. Its response may name no others.
#[derive(Debug, Default)]
pub(super) struct EventMessageIds {
    /// Ids of all records, understood or not, in the event's order.
    pub(super) all: Vec<MessageId>,
    /// Ids of the records that were not understood.
    pub(super) refused: Vec<MessageId>,
}

#[derive(Deserialize)]
struct RecordId {
    #[serde(rename = "messageId")]
    message_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SqsRecord {
    message_id: String,
    receipt_handle: String,
    body: String,
    attributes: SqsRecordAttributes,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: String,
}

#[derive(Deserialize)]
struct SqsRecordAttributes {
    #[serde(rename = "ApproximateReceiveCount")]
    receive_count: String,
    #[serde(rename = "SentTimestamp")]
    sent_at: String,
}

/// The part of a record that says since when its message is known. It is read of records that are
/// not understood as well.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KnownRecord {
    message_id: String,
    attributes: KnownAttributes,
}

#[derive(Deserialize)]
struct KnownAttributes {
    #[serde(rename = "ApproximateFirstReceiveTimestamp")]
    first_received_at: Option<String>,
    #[serde(rename = "SentTimestamp")]
    sent_at: String,
}

impl QueueOrSchedule {
    /// The event of the queue; `None` if the schedule sent it.
    pub(crate) fn into_queue_event(self) -> Option<SqsEvent> {
        self.records.map(|records| SqsEvent { records })
    }
}

impl SqsEvent {
    /// Reads each record by itself.
    pub(super) fn sort_records(&self) -> Result<SortedRecords, SqsEventError> {
        let mut sorted = SortedRecords::default();
        for (index, record) in self.records.iter().enumerate() {
            let read = serde_json::from_str(record.get())
                .map_err(SqsRecordError::Shape)
                .and_then(|record| sorted.take_record(record));
            if let Err(error) = read {
                let id = id_of(record).ok_or(SqsEventError(index))?;
                tracing::error!(
                    message_id = %id.0,
                    error = &error as &dyn std::error::Error,
                    "record not understood",
                );
                sorted.ids.all.push(id.clone());
                sorted.ids.refused.push(id);
            }
        }
        // An empty id would be read, and reported, as well as any other.
        match sorted.ids.all.iter().position(|id| id.0.is_empty()) {
            Some(index) => Err(SqsEventError(index)),
            None => Ok(sorted),
        }
    }

    /// The time at which the first of the messages with these ids was first received. A message was
    /// due by then: the time at which it was sent would count its delay. It stands in where SQS
    /// does not say more.
    pub(super) fn first_received_at(&self, ids: &HashSet<&str>) -> Option<Timestamp> {
        let records = self
            .records
            .iter()
            .filter_map(|record| serde_json::from_str(record.get()).ok());
        let wanted =
            records.filter(|record: &KnownRecord| ids.contains(record.message_id.as_str()));
        wanted
            .filter_map(|record| record.attributes.first_received_at())
            .min()
    }
}

impl KnownAttributes {
    fn first_received_at(self) -> Option<Timestamp> {
        self.first_received_at
            .unwrap_or(self.sent_at)
            .parse()
            .ok()
            .map(Timestamp::from_millis)
    }
}

fn id_of(record: &RawValue) -> Option<MessageId> {
    serde_json::from_str(record.get())
        .ok()
        .map(|RecordId { message_id }| MessageId(message_id.into()))
}

impl SortedRecords {
    fn take_record(&mut self, record: SqsRecord) -> Result<(), SqsRecordError> {
        let receive_count = record.attributes.receive_count.parse();
        let sent_at = record.attributes.sent_at.parse();
        let message = ReceivedMessage {
            id: MessageId(record.message_id.into()),
            receipt: ReceiptHandle(record.receipt_handle.into()),
            body: Bytes::from(record.body),
            receive_count: receive_count
                .map_err(|_| SqsRecordError::Number("ApproximateReceiveCount"))?,
            sent_at: Timestamp::from_millis(
                sent_at.map_err(|_| SqsRecordError::Number("SentTimestamp"))?,
            ),
        };
        let queue = record
            .event_source_arn
            .rsplit(':')
            .next()
            .unwrap_or_default();
        if self.batch.messages.is_empty() {
            queue.clone_into(&mut self.batch.queue);
        } else if self.batch.queue != queue {
            // A mapping has one queue; the handler must not take one queue's message for another's.
            return Err(SqsRecordError::OtherQueue);
        }
        self.ids.all.push(message.id.clone());
        self.batch.messages.push(message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn record(id: &str) -> Value {
        let mut event: Value =
            serde_json::from_str(include_str!("fixtures/sqs-event.json")).unwrap();
        let mut record = event["Records"][0].take();
        record["messageId"] = json!(id);
        record
    }

    fn sorted(records: &[Value]) -> Result<SortedRecords, SqsEventError> {
        let event = json!({ "Records": records }).to_string();
        serde_json::from_str::<SqsEvent>(&event)
            .unwrap()
            .sort_records()
    }

    /// Compares the ids that are understood and those that are not.
    fn check(records: &[Value], understood: &[&str], refused: &[&str]) {
        let sorted = sorted(records).unwrap();
        let messages: Vec<_> = sorted
            .batch
            .messages
            .iter()
            .map(|message| &*message.id.0)
            .collect();
        assert_eq!(messages, understood);
        assert_eq!(
            sorted
                .ids
                .refused
                .iter()
                .map(|id| &*id.0)
                .collect::<Vec<_>>(),
            refused
        );
        assert_eq!(sorted.ids.all.len(), records.len());
    }

    #[test]
    fn the_documented_event_is_read() {
        let event: SqsEvent =
            serde_json::from_str(include_str!("fixtures/sqs-event.json")).unwrap();
        let batch = event.sort_records().unwrap().batch;
        assert_eq!(batch.queue, "posthaste-deliveries");
        let [first, second] = &batch.messages[..] else {
            panic!("{batch:?}")
        };
        assert_eq!(&*first.id.0, "059f36b4-87a3-44ab-83d2-661975830a7d");
        assert_eq!(&*first.receipt.0, "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a");
        assert_eq!(first.body, r#"{"v":1,"text":"Grüße 👋 \u007f"}"#.as_bytes());
        assert_eq!(
            (first.receive_count, first.sent_at.as_millis()),
            (1, 1_545_082_649_183)
        );
        assert_eq!(second.receive_count, 7);
    }

    #[test]
    fn a_body_is_kept_byte_for_byte() {
        let mut odd = record("odd");
        let body = "\t\n\r \"\\ \u{e000} \u{10ffff} not json";
        odd["body"] = json!(body);
        assert_eq!(
            sorted(&[odd]).unwrap().batch.messages[0].body,
            body.as_bytes()
        );
    }

    #[test]
    fn a_record_that_is_not_understood_leaves_its_neighbours_alone() {
        let broken = [
            ("body", Value::Null),
            ("body", json!({ "not": "a text" })),
            ("receiptHandle", Value::Null),
            ("attributes", json!({})),
            (
                "attributes",
                json!({ "ApproximateReceiveCount": "many", "SentTimestamp": "1" }),
            ),
            (
                "attributes",
                json!({ "ApproximateReceiveCount": "1", "SentTimestamp": "-1" }),
            ),
            ("eventSourceARN", Value::Null),
            (
                "eventSourceARN",
                json!("arn:aws:sqs:eu-west-1:123456789012:another"),
            ),
        ];
        for (member, value) in broken {
            let mut odd = record("odd");
            odd[member] = value;
            check(&[record("a"), odd, record("b")], &["a", "b"], &["odd"]);
        }
    }

    #[test]
    fn a_record_without_an_id_fails_the_whole_event() {
        let nameless = [
            json!({}),
            json!(7),
            json!({ "messageId": 7 }),
            json!({ "messageId": "" }),
            record(""),
        ];
        for odd in nameless {
            assert_eq!(sorted(&[record("a"), odd]).unwrap_err(), SqsEventError(1));
        }
    }

    #[test]
    fn an_event_without_records_is_not_one_of_a_queue() {
        for event in ["{}", "[]", r#"{"Records":{}}"#, r#"{"Records":null}"#] {
            assert!(serde_json::from_str::<SqsEvent>(event).is_err(), "{event}");
        }
        check(&[], &[], &[]);
    }

    /// An event with records is the queue's, and any other the schedule's.
    #[test]
    fn event_with_records_is_of_the_queue_others_of_the_schedule() {
        let of_queue = |event: &str| {
            let event: QueueOrSchedule = serde_json::from_str(event).unwrap();
            event.into_queue_event().map(|event| event.records.len())
        };
        assert_eq!(of_queue(include_str!("fixtures/sqs-event.json")), Some(2));
        assert_eq!(of_queue(r#"{"Records":[]}"#), Some(0));
        assert_eq!(
            of_queue(r#"{"source":"aws.events","detail-type":"Scheduled Event"}"#),
            None
        );
        for event in ["[]", r#"{"Records":{}}"#, r#"{"Records":7}"#] {
            assert!(
                serde_json::from_str::<QueueOrSchedule>(event).is_err(),
                "{event}"
            );
        }
    }

    /// The documented event, with text in the place of a part of it.
    fn damaged() -> impl Strategy<Value = String> {
        const EVENT: &str = include_str!("fixtures/sqs-event.json");
        const WORDS: [&str; 10] = [
            "",
            "\"",
            "null",
            "{}",
            "[]",
            "-1",
            "1e400",
            "18446744073709551616",
            "\\ud800",
            "\"a\":",
        ];
        let places = EVENT.char_indices().map(|(at, _)| at).collect::<Vec<_>>();
        let place = prop::sample::select(places);
        (place.clone(), place, prop::sample::select(WORDS.to_vec())).prop_map(
            |(one, other, word)| {
                let start = one.min(other);
                let end = one.max(other).min(one.min(other) + 40);
                let end = EVENT.ceil_char_boundary(end);
                [&EVENT[..start], word, &EVENT[end..]].concat()
            },
        )
    }

    proptest! {
        /// Whatever Lambda hands over, each record is understood or refused, and none is forgotten:
        /// a message that is not reported is deleted.
        #[test]
        fn every_record_of_a_damaged_event_is_reported(text in damaged()) {
            let Ok(event) = serde_json::from_str::<SqsEvent>(&text) else {
                return Ok(());
            };
            if let Ok(SortedRecords { batch, ids }) = event.sort_records() {
                prop_assert_eq!(ids.all.len(), event.records.len());
                prop_assert_eq!(batch.messages.len() + ids.refused.len(), ids.all.len());
                let known: HashSet<_> = ids.all.iter().map(|id| &*id.0).collect();
                event.first_received_at(&known);
            }
        }
    }
}
