//! Rules of SQS.

use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    MessageSystemAttributeName, QueueAttributeName, SendMessageBatchRequestEntry,
};
use bytes::Bytes;
use posthaste_aws::QueueUrls;
use posthaste_core::model::Timestamp;
use posthaste_ports::{OutgoingMessage, QueueName, QueueReceiver, QueueSender, Successor};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use posthaste_tests_aws::double::Double;
use posthaste_tests_aws::emulator::{Emulator, Tool};

use super::{Outcome, accepted, outcome, refused};
use crate::clients::{Sdk, clients};

const MEBIBYTE: usize = 1_048_576;

/// A service that is asked to break rules.
struct Queue {
    sqs: Client,
    url: String,
    /// The double or emulator behind it, which runs as long as this is held.
    _home: Arc<dyn Send + Sync>,
}

impl Queue {
    async fn on_double() -> Self {
        let double = Double::start(ManualClock::new(Timestamp::EPOCH)).await;
        let url = double.queue("strict", None);
        Self {
            sqs: Sdk::new(&double.endpoint()).sqs,
            url,
            _home: Arc::new(double),
        }
    }

    async fn on_moto() -> Self {
        let emulator = Emulator::start(Tool::Moto);
        let sqs = Sdk::new(emulator.endpoint()).sqs;
        let url = sqs
            .create_queue()
            .queue_name("strict")
            .send()
            .await
            .unwrap()
            .queue_url
            .unwrap();
        Self {
            sqs,
            url,
            _home: Arc::new(emulator),
        }
    }

    async fn send(&self, body: &str) -> Outcome {
        outcome(
            self.sqs
                .send_message()
                .queue_url(&self.url)
                .message_body(body)
                .send()
                .await,
        )
    }

    async fn send_delayed(&self, secs: i32) -> Outcome {
        let request = self
            .sqs
            .send_message()
            .queue_url(&self.url)
            .message_body("x")
            .delay_seconds(secs);
        outcome(request.send().await)
    }

    async fn send_grouped(&self, group: &str) -> Outcome {
        let request = self
            .sqs
            .send_message()
            .queue_url(&self.url)
            .message_body("x")
            .message_group_id(group);
        outcome(request.send().await)
    }

    async fn send_batch(&self, entries: Vec<(&str, String)>) -> Outcome {
        let entry = |(id, body): (&str, String)| {
            SendMessageBatchRequestEntry::builder()
                .id(id)
                .message_body(body)
                .build()
                .unwrap()
        };
        let entries = entries.into_iter().map(entry).collect();
        outcome(
            self.sqs
                .send_message_batch()
                .queue_url(&self.url)
                .set_entries(Some(entries))
                .send()
                .await,
        )
    }

    async fn receive(&self, max: i32, visibility: i32, wait: i32) -> Outcome {
        let request = self.sqs.receive_message().queue_url(&self.url);
        let request = request
            .max_number_of_messages(max)
            .visibility_timeout(visibility);
        outcome(request.wait_time_seconds(wait).send().await)
    }

    /// Sends a message, receives it and answers its handle.
    async fn handle(&self) -> String {
        assert_eq!(self.send("x").await, accepted());
        let answer = self
            .sqs
            .receive_message()
            .queue_url(&self.url)
            .visibility_timeout(600)
            .send()
            .await;
        answer
            .unwrap()
            .messages
            .unwrap()
            .remove(0)
            .receipt_handle
            .unwrap()
    }

    async fn hide(&self, handle: &str, secs: i32) -> Outcome {
        let request = self.sqs.change_message_visibility().queue_url(&self.url);
        outcome(
            request
                .receipt_handle(handle)
                .visibility_timeout(secs)
                .send()
                .await,
        )
    }

    async fn delete(&self, handle: &str) -> Outcome {
        outcome(
            self.sqs
                .delete_message()
                .queue_url(&self.url)
                .receipt_handle(handle)
                .send()
                .await,
        )
    }
}

fn small(ids: &[&'static str]) -> Vec<(&'static str, String)> {
    ids.iter().map(|id| (*id, "x".to_owned())).collect()
}

/// Requests that the double and moto refuse with the same errors.
async fn check_common_rules(queue: &Queue) {
    let invalid = refused(400, "InvalidParameterValue");
    assert_eq!(queue.send_delayed(900).await, accepted());
    assert_eq!(queue.send_delayed(901).await, invalid);
    assert_eq!(queue.receive(1, 43_201, 0).await, invalid);
    assert_eq!(queue.receive(1, 30, 21).await, invalid);
    assert_eq!(queue.receive(11, 30, 0).await, invalid);
    assert_eq!(queue.send(&"x".repeat(MEBIBYTE)).await, accepted());
    assert_eq!(queue.send(&"x".repeat(MEBIBYTE + 1)).await, invalid);
    assert_eq!(
        queue.send_batch(small(&[])).await,
        refused(400, "EmptyBatchRequest")
    );
    let eleven = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    assert_eq!(
        queue.send_batch(small(&eleven)).await,
        refused(400, "TooManyEntriesInBatchRequest")
    );
    assert_eq!(
        queue.send_batch(small(&["a", "b", "a"])).await,
        refused(400, "BatchEntryIdsNotDistinct")
    );
    assert_eq!(
        queue.send_batch(small(&["a.b"])).await,
        refused(400, "InvalidBatchEntryId")
    );
    let half = "x".repeat(MEBIBYTE / 2);
    let over = vec![("a", half.clone()), ("b", half), ("c", "x".to_owned())];
    assert_eq!(
        queue.send_batch(over).await,
        refused(400, "BatchRequestTooLong")
    );
}

#[tokio::test]
async fn the_double_refuses_what_moto_refuses() {
    check_common_rules(&Queue::on_double().await).await;
}

#[tokio::test]
async fn moto_refuses_what_the_double_refuses() {
    check_common_rules(&Queue::on_moto().await).await;
}

#[tokio::test]
async fn the_double_refuses_what_aws_documents() {
    let queue = Queue::on_double().await;
    let invalid = refused(400, "InvalidParameterValue");
    assert_eq!(queue.send_delayed(-1).await, invalid);
    assert_eq!(queue.receive(0, 30, 0).await, invalid);
    assert_eq!(queue.send("").await, refused(400, "MissingParameter"));
    for character in ["\0", "\u{b}", "\u{1f}", "\u{fffe}", "\u{ffff}"] {
        assert_eq!(
            queue.send(character).await,
            refused(400, "InvalidMessageContents"),
            "{character:?}"
        );
    }
    for group in ["a b", "ä", &"g".repeat(129)] {
        assert_eq!(queue.send_grouped(group).await, invalid, "{group}");
    }
    assert_eq!(queue.send_grouped(&"g".repeat(128)).await, accepted());
    let fifo = queue
        .sqs
        .send_message()
        .queue_url(&queue.url)
        .message_body("x")
        .message_deduplication_id("d");
    assert_eq!(outcome(fifo.send().await), invalid);
}

#[tokio::test]
async fn a_bad_entry_fails_alone_with_its_code() {
    let queue = Queue::on_double().await;
    let entry = |id: &str, body: &str, delay| {
        let entry = SendMessageBatchRequestEntry::builder()
            .id(id)
            .message_body(body)
            .delay_seconds(delay);
        entry.build().unwrap()
    };
    let entries = vec![
        entry("late", "x", 901),
        entry("good", "x", 0),
        entry("odd", "\u{b}", 0),
        entry("none", "", 0),
    ];
    let request = queue
        .sqs
        .send_message_batch()
        .queue_url(&queue.url)
        .set_entries(Some(entries));
    let answer = request.send().await.unwrap();
    let failed: Vec<_> = answer
        .failed
        .iter()
        .map(|one| (&*one.id, &*one.code, one.sender_fault))
        .collect();
    let expected = [
        ("late", "InvalidParameterValue", true),
        ("odd", "InvalidMessageContents", true),
        ("none", "MissingParameter", true),
    ];
    assert_eq!(failed, expected);
    let sent: Vec<_> = answer
        .successful
        .iter()
        .map(|one| (&*one.id, &*one.md5_of_message_body))
        .collect();
    assert_eq!(sent, [("good", "9dd4e461268c8034f5c8564e155c67a6")]);
}

#[tokio::test]
async fn handles_go_stale() {
    let queue = Queue::on_double().await;
    let gone = refused(400, "InvalidParameterValue");
    let unknown = refused(404, "ReceiptHandleIsInvalid");
    let handle = queue.handle().await;
    assert_eq!(
        queue.hide(&handle, 43_201).await,
        refused(400, "InvalidParameterValue")
    );
    assert_eq!(queue.hide(&handle, 0).await, accepted());
    assert_eq!(
        queue.hide(&handle, 60).await,
        refused(400, "MessageNotInflight")
    );
    let newer = queue.handle().await;
    assert_eq!(queue.hide(&handle, 60).await, gone);
    assert_eq!(queue.delete(&handle).await, accepted());
    assert_eq!(queue.hide(&newer, 60).await, accepted());
    assert_eq!(queue.delete(&newer).await, accepted());
    assert_eq!(queue.hide(&newer, 60).await, gone);
    assert_eq!(queue.hide("never given out", 60).await, unknown);
    assert_eq!(queue.delete("never given out").await, unknown);
}

#[tokio::test]
async fn attributes_are_left_out_unless_asked_for() {
    let queue = Queue::on_double().await;
    assert_eq!(queue.send("x").await, accepted());
    let received = queue
        .sqs
        .receive_message()
        .queue_url(&queue.url)
        .visibility_timeout(0)
        .send()
        .await
        .unwrap();
    assert_eq!(received.messages.unwrap()[0].attributes, None);
    let counted = queue
        .sqs
        .get_queue_attributes()
        .queue_url(&queue.url)
        .send()
        .await
        .unwrap();
    assert_eq!(counted.attributes.unwrap_or_default().len(), 0);
    let unknown = QueueAttributeName::from("Weight");
    let asked = queue
        .sqs
        .get_queue_attributes()
        .queue_url(&queue.url)
        .attribute_names(unknown)
        .send()
        .await;
    assert_eq!(outcome(asked), refused(400, "InvalidAttributeName"));
}

#[tokio::test]
async fn another_url_is_another_queue() {
    let queue = Queue::on_double().await;
    for url in [
        queue.url.replace("strict", "absent"),
        queue.url.replace("000000000000", "1"),
        "strict".to_owned(),
    ] {
        let sent = queue
            .sqs
            .send_message()
            .queue_url(&url)
            .message_body("x")
            .send()
            .await;
        assert_eq!(outcome(sent), refused(400, "NonExistentQueue"), "{url}");
    }
}

/// A request with a group costs more than one without, and so does each request for its message.
#[tokio::test]
async fn message_groups_are_sent_only_where_they_are_asked_for() {
    let double = Double::start(ManualClock::new(Timestamp::EPOCH)).await;
    let url = double.queue("deliveries", None);
    let sqs = Sdk::new(&double.endpoint()).sqs;
    let message = |body: &'static [u8]| OutgoingMessage {
        body: Bytes::from_static(body),
        group: Some("orders.billing".to_owned()),
        delay: std::time::Duration::ZERO,
    };
    for (sends_groups, expected) in [(false, None), (true, Some("orders.billing"))] {
        let urls = QueueUrls::from([(QueueName::Deliveries, url.clone())]);
        let clients = clients(&double.endpoint()).with_message_groups(sends_groups);
        let queue = clients.queue(QueueName::Deliveries, urls, SystemClock);
        queue.send_batch(vec![message(b"first")]).await.unwrap();
        assert_eq!(
            received(&sqs, &url).await,
            (Some("first".to_owned()), expected.map(str::to_owned))
        );

        queue.send_batch(vec![message(b"replaced")]).await.unwrap();
        let request = posthaste_ports::ReceiveRequest {
            max: 1,
            wait: std::time::Duration::ZERO,
            visibility: std::time::Duration::from_mins(1),
        };
        let replaced = queue.receive(request).await.unwrap().remove(0);
        let successor = Successor {
            to: QueueName::Deliveries,
            message: message(b"successor"),
        };
        queue
            .replace(&replaced.receipt, vec![successor])
            .await
            .unwrap();
        assert_eq!(
            received(&sqs, &url).await,
            (Some("successor".to_owned()), expected.map(str::to_owned))
        );
    }
}

/// The body and the group of the queue's next message.
async fn received(sqs: &Client, url: &str) -> (Option<String>, Option<String>) {
    let answer = sqs
        .receive_message()
        .queue_url(url)
        .visibility_timeout(600)
        .message_system_attribute_names(MessageSystemAttributeName::MessageGroupId)
        .send()
        .await;
    let message = answer.unwrap().messages.unwrap().remove(0);
    let group = message
        .attributes
        .and_then(|mut all| all.remove(&MessageSystemAttributeName::MessageGroupId));
    (message.body, group)
}
