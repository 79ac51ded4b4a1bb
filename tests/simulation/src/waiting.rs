//! Waiting events, the fates of the others, and time that passes in the meantime.

use std::cell::Cell;
use std::time::Duration;

use posthaste_core::model::{Delivery, Timestamp};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::parse_parked;
use posthaste_ports::{Clock, ObjectStore, QueueName};
use serde_json::Value;

use crate::{World, start};

/// Time for which dead letters wait for others.
const BURIED_AFTER: Duration = Duration::from_mins(6);

/// A dead letter, as far as tests ask.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Letter {
    /// The event's id.
    pub id: String,
    /// The reason for which it was given up.
    pub reason: String,
    /// The number of attempts that were made.
    pub attempts: u64,
    /// The end of the last of them.
    pub outcome: String,
}

impl World {
    /// Time passes second by second. In each of them deliver takes what is visible; in the first of
    /// each minute wake runs.
    pub async fn pass(&self, length: Duration) {
        self.pass_by(Duration::from_secs(1), length).await;
    }

    /// The same in longer steps.
    pub async fn pass_by(&self, step: Duration, length: Duration) {
        let end = self.clock.now() + length;
        while self.clock.now() < end {
            let minute = minutes(self.clock.now());
            self.clock.advance(step.min(end.since(self.clock.now())));
            self.deliver_all().await;
            if minutes(self.clock.now()) > minute {
                self.wake().await;
                self.deliver_all().await;
            }
        }
    }

    /// Works, and meanwhile invokes what delivers, as long as something is visible: at once when a
    /// call has ended or time has passed. What is still visible after the work is delivered
    /// too, and no invocation is cut.
    pub async fn deliver_beside<F: Future>(
        &self,
        work: F,
        mut invoke: impl AsyncFnMut(),
    ) -> F::Output {
        let is_over = Cell::new(false);
        // Boxed, both: what they wait for is tens of kilobytes large.
        let work = Box::pin(async {
            let output = work.await;
            is_over.set(true);
            output
        });
        let moved = || (self.calls.ended_ever(), self.clock.monotonic());
        let deliver = Box::pin(async {
            loop {
                let is_last = is_over.get();
                let before = moved();
                while self.visible(QueueName::Deliveries).await > 0 {
                    invoke().await;
                }
                if is_last {
                    return;
                }
                while !is_over.get() && moved() == before {
                    tokio::task::yield_now().await;
                }
            }
        });
        tokio::join!(work, deliver).0
    }

    /// The deliveries that are held, those that expire first in front.
    pub async fn held_deliveries(&self) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for key in self.all_keys(layout::HELD).await {
            let object = self
                .local
                .state_store()
                .get(&key)
                .await
                .expect("a read")
                .expect("an object");
            let messages = parse_parked(&object.bytes).expect("held deliveries");
            deliveries.extend(
                messages
                    .iter()
                    .map(|body| parse_delivery(body).expect("a delivery")),
            );
        }
        deliveries
    }

    /// All keys in the state bucket that begin like this.
    pub async fn all_keys(&self, prefix: &str) -> Vec<String> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let page = self
                .local
                .state_store()
                .list(prefix, after.as_deref(), 1000)
                .await
                .expect("a listing");
            keys.extend(page.objects.into_iter().map(|object| object.key));
            after = page.next_after;
            if after.is_none() {
                return keys;
            }
        }
    }

    /// True if nothing waits any more: in the queue, parked or held.
    pub async fn is_at_rest(&self) -> bool {
        let queue = QueueName::Deliveries;
        self.visible(queue).await + self.delayed(queue).await == 0
            && self.keys(layout::PARKED).await.is_empty()
            && self.keys(layout::HELD).await.is_empty()
    }

    /// All dead letters, after the time that the last ones wait.
    pub async fn letters(&self) -> Vec<Letter> {
        self.clock.advance(BURIED_AFTER);
        while self.visible(QueueName::DeadLetters).await > 0 {
            self.bury().await;
        }
        let mut letters = Vec::new();
        for (_, bytes) in self.buried().await {
            let array: Vec<Value> =
                serde_json::from_slice(&bytes).expect("an array of dead letters");
            letters.extend(array.iter().map(letter));
        }
        letters.sort();
        letters
    }
}

fn letter(letter: &Value) -> Letter {
    let text = |member: &str| letter[member].as_str().unwrap_or_default().to_owned();
    Letter {
        id: text("id"),
        reason: text("deadletterreason"),
        attempts: letter["deliveryattempts"]
            .as_u64()
            .expect("a number of attempts"),
        outcome: text("lastdeliveryoutcome"),
    }
}

fn minutes(now: Timestamp) -> u64 {
    now.since(start()).as_secs() / 60
}
