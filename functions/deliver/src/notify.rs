//! Notices about dropped events, sent before their message is deleted.

use std::sync::Arc;

use metrics::counter;
use posthaste_core::api::notice::{DeliveryFailedNotice, Notice};
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::model::{DeadLetter, DeliveryEntry, EventPayload};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{FanOut, NoticeAddressee, NoticeError, Notifier, TopicRegistry, stop_at};

use crate::invocation::Invocation;
use crate::payloads::PayloadReader;

/// The way of notices: the fan-out that every event takes.
pub(crate) struct NoticePorts<P: Ports> {
    pub(crate) queue: Arc<P::Queue>,
    pub(crate) state: Arc<P::Store>,
    pub(crate) registry: Arc<TopicRegistry<P::Store, P::Clock>>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
}

/// Sends notices about dropped events.
pub(crate) struct DroppedNotices<P: Ports> {
    ports: Arc<NoticePorts<P>>,
    payloads: Arc<PayloadReader<P>>,
}

/// Reasons for which notices about dropped events were not sent.
#[derive(Debug, thiserror::Error)]
enum DroppedNoticeError {
    #[error("failed to tell of dropped events")]
    Notice(#[from] NoticeError),
    #[error("failed to read the payload of a dropped event")]
    Payload,
}

impl<P: Ports> NoticePorts<P> {
    pub(crate) fn new(
        queue: Arc<P::Queue>,
        state: &Arc<P::Store>,
        registry: &Arc<TopicRegistry<P::Store, P::Clock>>,
        clock: &P::Clock,
        entropy: &P::Entropy,
    ) -> Self {
        Self {
            queue,
            state: Arc::clone(state),
            registry: Arc::clone(registry),
            clock: clock.clone(),
            entropy: entropy.clone(),
        }
    }

    pub(crate) fn notifier(&self) -> Notifier<'_, P::Queue, P::Store, P::Clock, P::Entropy> {
        let Self {
            queue,
            state,
            registry,
            clock,
            entropy,
        } = self;
        Notifier {
            registry,
            fan_out: FanOut {
                deliveries: &**queue,
                slow: None,
                payloads: &**state,
                clock,
                entropy,
            },
        }
    }
}

impl<P: Ports> DroppedNotices<P> {
    pub(crate) fn new(ports: Arc<NoticePorts<P>>, payloads: Arc<PayloadReader<P>>) -> Self {
        Self { ports, payloads }
    }

    /// Counts dropped events and sends notices about them. Answers whether the notices were sent in
    /// time, so that enough time is left for the queue.
    pub(crate) async fn drop_events(&self, invocation: &Invocation, letter: &DeadLetter) -> bool {
        report_dropped(letter);
        let end = invocation.deadlines.storing_end();
        let sent = stop_at(
            &self.ports.clock,
            end,
            self.send_notices(invocation, letter),
        )
        .await;
        if let Some(Err(error)) = &sent {
            tracing::error!(
                topic = %letter.delivery.topic, subscription = %letter.delivery.subscription,
                error = error as &dyn std::error::Error, "notices of dropped events not sent yet"
            );
        }
        matches!(sent, Some(Ok(())))
    }

    /// Sends the notices, except about events that are notices themselves. If the topic names no
    /// topic for notices, only the topic's record is read, which is known already.
    async fn send_notices(
        &self,
        invocation: &Invocation,
        letter: &DeadLetter,
    ) -> Result<(), DroppedNoticeError> {
        let told_of = letter
            .delivery
            .events
            .iter()
            .filter(|entry| !entry.marks.notice);
        let (inline, stored): (Vec<_>, Vec<_>) =
            told_of.partition(|entry| matches!(entry.payload, EventPayload::Inline(_)));
        if inline.is_empty() && stored.is_empty() {
            return Ok(());
        }
        let to = self
            .ports
            .notifier()
            .find_addressee(&letter.delivery.topic)
            .await?;
        if !to.is_named() {
            return Ok(());
        }
        for entry in stored {
            // One at a time and within the budget: a message may refer to a hundred megabytes.
            self.send_entries(invocation, letter, &to, &[entry]).await?;
        }
        self.send_entries(invocation, letter, &to, &inline).await
    }

    async fn send_entries(
        &self,
        invocation: &Invocation,
        letter: &DeadLetter,
        to: &NoticeAddressee,
        entries: &[&DeliveryEntry],
    ) -> Result<(), DroppedNoticeError> {
        let at = self.ports.clock.now();
        let payloads: Vec<_> = entries.iter().map(|entry| &entry.payload).collect();
        let payloads = self
            .payloads
            .read(&payloads, invocation.deadlines.storing_end())
            .await;
        let mut notices = Vec::with_capacity(entries.len());
        for (entry, text) in entries.iter().zip(&payloads.texts) {
            let text = match text {
                Ok(text) => Some(text),
                Err(EntryVerdict::GiveUp { .. }) => None,
                Err(_) => return Err(DroppedNoticeError::Payload),
            };
            notices.push(Notice::Failed(DeliveryFailedNotice {
                letter,
                entry,
                text,
                object: None,
                at,
            }));
        }
        Ok(self
            .ports
            .notifier()
            .send_to_addressee(Some(&letter.delivery.topic), to, &notices)
            .await?)
    }
}

/// Counts events that are dropped because their subscription does not keep dead letters like them.
fn report_dropped(letter: &DeadLetter) {
    let delivery = &letter.delivery;
    let reason = letter.reason;
    let events = letter.delivery.events.len();
    let labels = [
        ("topic", delivery.topic.to_string()),
        ("subscription", delivery.subscription.to_string()),
        ("reason", reason.to_string()),
    ];
    counter!("DroppedEventCount", &labels).increment(events as u64);
    tracing::warn!(
        topic = %delivery.topic, subscription = %delivery.subscription, %reason, events, "events dropped"
    );
}

#[cfg(test)]
mod tests {
    use posthaste_core::model::{DeadLetterReason, PayloadDigest, TopicName};
    use posthaste_core::stored::delivery::parse_delivery;
    use posthaste_core::stored::{TopicRecord, layout};
    use posthaste_ports::{ErrorKind, ObjectStore, PutCondition, QueueName};
    use posthaste_testkit::{CallFault, FaultPlan};
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::DeliverSettings;
    use crate::testing::{INVOCATION, TestPorts, World, delivery, topic_record};

    /// Writes the record of a topic.
    async fn put_topic(world: &World, name: &str, settings: Value) {
        let name = TopicName::parse(name).unwrap();
        let key = layout::topic_record_key(&name);
        let settings = serde_json::from_value(settings).unwrap();
        let record = TopicRecord {
            name,
            ..topic_record(settings)
        };
        world
            .memory
            .put(&key, record.render(), PutCondition::Always)
            .await
            .unwrap();
    }

    /// Writes `orders`, whose notices go to `ops`, and `ops`, which has a subscription.
    async fn put_topics(world: &World) {
        put_topic(world, "orders", json!({ "noticesTopic": "ops" })).await;
        let pager = json!({ "endpoint": { "url": "https://pager.example.com/" } });
        put_topic(world, "ops", json!({ "subscriptions": { "pager": pager } })).await;
    }

    fn letter(events: usize) -> DeadLetter {
        let reason = DeadLetterReason::MaxDeliveryAttemptsExceeded;
        DeadLetter::new(reason, delivery(events))
    }

    /// A letter whose event is stored.
    fn stored() -> DeadLetter {
        let mut letter = letter(1);
        let digest = Some(PayloadDigest::for_json(b"{}"));
        letter.delivery.events[0].payload = EventPayload::Stored {
            key: "payloads/a".to_owned(),
            bytes: 2,
            digest,
            names: None,
        };
        letter
    }

    /// Drops the events of a letter now. Answers whether the notices were sent.
    async fn are_sent(world: &World, letter: &DeadLetter) -> bool {
        let state = Arc::clone(&world.state);
        let clock = world.clock.clone();
        let payloads = Arc::new(PayloadReader::new(
            state,
            clock,
            &DeliverSettings::default(),
        ));
        let notices: DroppedNotices<TestPorts> = DroppedNotices {
            ports: world.notice_ports(),
            payloads,
        };
        notices
            .drop_events(&world.invocation(Vec::new()), letter)
            .await
    }

    /// The notices in the delivery queue.
    async fn notices(world: &World) -> Vec<DeliveryEntry> {
        let bodies = world.sent(QueueName::Deliveries).await;
        bodies
            .iter()
            .flat_map(|body| parse_delivery(body).unwrap().events)
            .collect()
    }

    #[tokio::test]
    async fn each_dropped_event_has_a_notice() {
        let world = World::new();
        put_topics(&world).await;
        assert!(are_sent(&world, &letter(3)).await);
        let notices = notices(&world).await;
        assert!(notices.len() == 3 && notices.iter().all(|entry| entry.marks.notice));
    }

    #[tokio::test]
    async fn there_is_no_notice_about_a_notice() {
        let world = World::new();
        put_topics(&world).await;
        let mut letter = letter(1);
        letter.delivery.events[0].marks.notice = true;
        assert!(are_sent(&world, &letter).await);
        assert_eq!(world.calls.all().len(), 0);
    }

    #[tokio::test]
    async fn without_a_topic_for_notices_no_payload_is_read() {
        let world = World::new();
        put_topic(&world, "orders", json!({})).await;
        assert!(are_sent(&world, &stored()).await);
        assert_eq!(
            (notices(&world).await.len(), world.calls.all().len()),
            (0, 1)
        );
    }

    #[tokio::test]
    async fn an_event_whose_payload_is_missing_has_a_notice_too() {
        let world = World::new();
        put_topics(&world).await;
        assert!(are_sent(&world, &stored()).await);
        assert_eq!(notices(&world).await.len(), 1);
    }

    #[tokio::test]
    async fn notices_are_not_sent_yet_while_a_payload_cannot_be_read() {
        let broken = FaultPlan::by(|effect| {
            (effect.key == "payloads/a").then_some(CallFault::Before(ErrorKind::TimedOut))
        });
        let world = World::with(&broken, &FaultPlan::none());
        put_topics(&world).await;
        assert!(!are_sent(&world, &stored()).await);
        assert_eq!(notices(&world).await.len(), 0);
    }

    #[tokio::test]
    async fn notices_are_not_sent_yet_while_the_queue_fails() {
        let world = World::with(
            &FaultPlan::none(),
            &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
        );
        put_topics(&world).await;
        assert!(!are_sent(&world, &letter(1)).await);
    }

    #[tokio::test]
    async fn the_time_of_the_queue_is_not_spent_on_notices() {
        let world = World::new();
        put_topics(&world).await;
        let invocation = world.invocation(Vec::new());
        world.clock.advance(INVOCATION);
        let state = Arc::clone(&world.state);
        let clock = world.clock.clone();
        let payloads = Arc::new(PayloadReader::new(
            state,
            clock,
            &DeliverSettings::default(),
        ));
        let notices: DroppedNotices<TestPorts> = DroppedNotices {
            ports: world.notice_ports(),
            payloads,
        };
        assert!(!notices.drop_events(&invocation, &letter(1)).await);
        assert_eq!(world.calls.all().len(), 0);
    }
}
