//! One event that is sent again by its id: a replay of one, at once.

use std::time::Duration;

use super::again::{ResentEventReceiver, stored_payload};
use super::sending::ReplayMessage;
use crate::events::Event;
use crate::model::{EarlierLife, EventMarks, LetterPlace, Subscription, Timestamp};
use crate::stored::delivery::render_delivery;

/// A resend.
#[derive(Debug, Clone)]
pub struct EventResend<'a> {
    /// The key of the new delivery.
    pub key: &'a str,
    /// The `webhook-id` that the event keeps; `None` where it gets a new one.
    pub webhook_id: Option<&'a str>,
    /// The dead letter that it is made of, or that says what became of it; `None` if there is
    /// none.
    pub letter: Option<LetterPlace>,
    /// The event's life until now, if its first acceptance is known.
    pub earlier: Option<EarlierLife>,
    /// The subscription that receives the event. No other does, whatever its filter says.
    pub subscription: &'a Subscription,
    /// Default and cap of the topic's time to live.
    pub default_time_to_live: Option<Duration>,
}

impl EventResend<'_> {
    /// The message that makes the new delivery, due at once.
    pub fn to_message(&self, event: &Event, now: Timestamp) -> ReplayMessage {
        let Self {
            key,
            webhook_id,
            subscription,
            default_time_to_live,
            ref letter,
            earlier,
        } = *self;
        let receiver = ResentEventReceiver {
            subscription,
            default_time_to_live,
        };
        let webhook_id = webhook_id.map(str::to_owned);
        let letter = letter.clone();
        let marks = EventMarks {
            replayed: true,
            resent: true,
            webhook_id,
            letter,
            earlier,
            ..EventMarks::default()
        };
        let entry = receiver.new_entry(event, key.to_owned(), marks, now);
        let payloads = stored_payload(&entry, event).into_iter().collect();
        let delivery = receiver.new_delivery(event.schema(), vec![entry], now, now);
        let body = render_delivery(&delivery);
        ReplayMessage {
            payloads,
            body,
            group: delivery.message_group_id(),
            delay: Duration::ZERO,
            indexes: vec![0],
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::api::compile_subscription;
    use crate::model::{EventPayload, EventSchema, SubscriptionName, TopicName};
    use crate::stored::delivery::parse_delivery;

    const NOW: Timestamp = Timestamp::from_millis(1_795_256_100_000);

    fn subscription() -> Subscription {
        let settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "filter": { "includedEventTypes": ["other"] },
            "retryPolicy": { "eventTimeToLiveInMinutes": 30 },
        });
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("billing").unwrap();
        compile_subscription(
            &topic,
            EventSchema::CloudEvents,
            &name,
            &serde_json::from_value(settings).unwrap(),
        )
        .unwrap()
    }

    fn letter() -> LetterPlace {
        LetterPlace {
            object: "ORDERS/BILLING/2026/11/21/10/x.json".to_owned(),
            index: 3,
        }
    }

    fn message(data: &str, webhook_id: Option<&str>) -> ReplayMessage {
        let head = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","expirytime":"2020-01-01T00:00:00Z""#;
        let text = format!("{head},\"data\":\"{data}\"}}");
        let event = Event::parse(EventSchema::CloudEvents, Bytes::from(text)).unwrap();
        let subscription = subscription();
        let letter = Some(letter());
        let resend = EventResend {
            key: "k-0",
            webhook_id,
            letter,
            earlier: None,
            subscription: &subscription,
            default_time_to_live: None,
        };
        resend.to_message(&event, NOW)
    }

    #[test]
    fn resent_event_is_new_to_the_queue_and_keeps_its_webhook_id() {
        let message = message("x", Some("msg_a-3"));
        let delivery = parse_delivery(&message.body).unwrap();
        let entry = &delivery.events[0];
        assert_eq!(
            (delivery.attempts, delivery.last, delivery.published_at),
            (0, None, NOW)
        );
        let webhook_id = Some("msg_a-3".to_owned());
        let letter = Some(letter());
        let marks = EventMarks {
            replayed: true,
            resent: true,
            webhook_id,
            letter,
            ..EventMarks::default()
        };
        assert_eq!(entry.marks, marks);
        assert_eq!(
            (entry.key.as_str(), entry.expires_at),
            ("k-0", NOW + Duration::from_mins(30))
        );
        assert_eq!((message.delay, message.payloads), (Duration::ZERO, vec![]));
    }

    #[test]
    fn event_that_a_message_cannot_hold_is_stored_beside_it() {
        let message = message("\u{ffff}", None);
        let entry = &parse_delivery(&message.body).unwrap().events[0];
        let EventPayload::Stored { key, .. } = &entry.payload else {
            panic!("stored")
        };
        assert_eq!(
            (&message.payloads[0].0, entry.marks.webhook_id.as_ref()),
            (key, None)
        );
    }
}
