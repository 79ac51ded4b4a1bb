//! Letters and messages for this crate's tests.

mod stores;
mod time;

use bytes::Bytes;
use posthaste_core::model::{DeadLetter, DeadLetterReason, Delivery, EventPayload, Timestamp};
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_ports::{MessageId, ReceiptHandle, ReceivedMessage};
use posthaste_testkit::records::{delivery, subscription_name, topic_name};

use crate::letter::ReceivedLetter;

/// An event of this many bytes that is, or was, stored under this key.
pub(crate) fn stored(key: &str, bytes: usize) -> EventPayload {
    EventPayload::Stored {
        key: key.to_owned(),
        bytes,
        digest: None,
        names: None,
    }
}

/// A letter of the subscription `billing` with these events, in a message of this id.
pub(crate) fn letter(id: &str, payloads: Vec<EventPayload>) -> ReceivedLetter {
    let names = (topic_name("orders"), subscription_name("billing"));
    let delivery = Delivery {
        attempts: 1,
        ..delivery(names, "k", payloads, Timestamp::EPOCH)
    };
    let dead = DeadLetter {
        reason: DeadLetterReason::TimeToLiveExceeded,
        delivery,
        storage: None,
        object: None,
        dropped: false,
        outage_since: None,
    };
    let message = ReceivedMessage {
        id: MessageId(id.into()),
        receipt: ReceiptHandle(id.into()),
        body: Bytes::new(),
        receive_count: 1,
        sent_at: Timestamp::EPOCH,
    };
    ReceivedLetter {
        message,
        dead,
        unresolved: Vec::new(),
    }
}

/// The message in which such a letter comes.
pub(crate) fn message(id: &str, payloads: Vec<EventPayload>) -> ReceivedMessage {
    let ReceivedLetter { message, dead, .. } = letter(id, payloads);
    ReceivedMessage {
        body: render_dead_letter(&dead),
        ..message
    }
}
