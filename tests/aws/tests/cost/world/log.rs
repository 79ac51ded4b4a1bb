//! record over the double, fed as the event source mapping of the records queue feeds it.

use std::time::Duration;

use futures_util::future::join_all;
use posthaste_ports::{Clock, QueueReceiver, ReceiveRequest, ReceivedMessage};
use posthaste_tests_aws::lingering::lingering;

use super::{BATCH_MAX, World};

/// Largest event of an invocation, in bytes. A window ends with it.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const EVENT_BYTES_MAX: usize = 6 << 20;

/// Bytes of a message in the event beside its body: ids, receipt handle, attributes.
const FRAME_BYTES: usize = 800;

/// The visibility timeout of the records queue in the template.
const VISIBILITY: Duration = Duration::from_mins(13);

/// The timeout of record in the template.
const TIMEOUT: Duration = Duration::from_mins(2);

impl World {
    /// Works as the mapping while there are records: gathers, invokes record, and deletes.
    pub(crate) async fn record_all(&mut self) {
        loop {
            let batch = self.gather().await;
            if batch.is_empty() {
                return;
            }
            let receipts: Vec<_> = batch
                .iter()
                .map(|message| message.receipt.clone())
                .collect();
            let response =
                Box::pin(self.record.handle(batch, self.clock.monotonic() + TIMEOUT)).await;
            assert_eq!(response.failures, [], "nothing fails here");
            let deleting = receipts
                .iter()
                .map(|receipt| self.records.replace(receipt, vec![]));
            let deleted = lingering(&self.clock, join_all(deleting)).await;
            deleted
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
                .expect("deletes");
            self.bill.record += self.take();
            self.bill.record_invocations += 1;
        }
    }

    /// The messages of one event. Each receive brings ten, as those of a queue that is busy.
    async fn gather(&mut self) -> Vec<ReceivedMessage> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while bytes < EVENT_BYTES_MAX {
            let request = ReceiveRequest {
                max: BATCH_MAX,
                visibility: VISIBILITY,
                wait: Duration::ZERO,
            };
            let received = self.records.receive(request).await.expect("a receive");
            let asked = self.take();
            if received.is_empty() {
                break;
            }
            self.bill.record += asked;
            bytes += received.iter().map(event_bytes).sum::<usize>();
            batch.extend(received);
        }
        batch
    }

    /// A merge that finds nothing.
    pub(crate) async fn merge(&mut self) {
        Box::pin(self.record.merge()).await.expect("a merge");
        self.bill.record += self.take();
    }
}

/// The bytes of a message in the event, where its body is a text of JSON.
fn event_bytes(message: &ReceivedMessage) -> usize {
    let body = String::from_utf8_lossy(&message.body);
    serde_json::to_string(&body).map_or(0, |text| text.len()) + FRAME_BYTES
}
