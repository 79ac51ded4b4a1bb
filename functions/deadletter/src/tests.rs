//! What is shared by this crate's tests.

mod stores;
mod time;

use bytes::Bytes;
use posthaste_core::attempt::DeadLetterReason;
use posthaste_core::model::{
    DeadLetter, Delivery, Entry, Hops, Marks, Payload, Schema, SubscriptionName, Timestamp, TopicName,
};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{MessageId, Receipt, ReceivedMessage};

use crate::letter::Letter;

/// An event of so many bytes that is, or was, stored under this key.
pub(crate) fn stored(key: &str, bytes: usize) -> Payload {
    Payload::Stored { key: key.to_owned(), bytes, digest: None }
}

/// A letter of the subscription `billing` with these events, in a message of this id.
pub(crate) fn letter(id: &str, payloads: Vec<Payload>) -> Letter {
    let entry = |payload| Entry {
        key: "k".to_owned(),
        expires_at: Timestamp::EPOCH,
        traceparent: None,
        marks: Marks::default(),
        envelope: None,
        payload,
    };
    let delivery = Delivery {
        topic: TopicName::parse("orders").unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
        schema: Schema::CloudEvents,
        published_at: Timestamp::EPOCH,
        not_before: Timestamp::EPOCH,
        attempts: 1,
        last: None,
        timed_out: false,
        identity: None,
        hops: Hops::default(),
        events: payloads.into_iter().map(entry).collect(),
    };
    let dead = DeadLetter {
        reason: DeadLetterReason::TimeToLiveExceeded,
        delivery,
        storage: None,
        object: None,
        dropped: false,
    };
    let message = ReceivedMessage {
        id: MessageId(id.to_owned()),
        receipt: Receipt(id.to_owned()),
        body: Bytes::new(),
        receive_count: 1,
        sent_at: Timestamp::EPOCH,
    };
    Letter { message, dead }
}

/// The message in which such a letter comes.
pub(crate) fn message(id: &str, payloads: Vec<Payload>) -> ReceivedMessage {
    let Letter { message, dead } = letter(id, payloads);
    ReceivedMessage { body: render_dead_letter(&dead), ..message }
}
