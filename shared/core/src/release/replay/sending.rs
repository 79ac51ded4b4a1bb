//! From dead letters to messages: what a replayed event is in the delivery queue.

use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::again::{ResentEventReceiver, stored_payload};
use super::pace::ReplayPace;
use crate::attempt::settle::choose_wait_place;
use crate::attempt::{EventSize, PackingLimits, WaitPlace};
use crate::events::Event;
use crate::model::{
    DeliveryEntry, EarlierLife, EventMarks, EventSchema, LetterPlace, Subscription, Timestamp, hex,
};
use crate::stored::RestoredLetter;
use crate::stored::delivery::render_delivery;

/// Bytes that the marks of a replayed event take in its message, beside their texts.
const MARKS_BYTES: usize =
    r#""replayed":true,"run":"","webhookId":"","letter":{"object":"","index":18446744073709551615},"#.len()
        + r#""earlier":{"acceptedAt":18446744073709551615,"recoveries":255},"#.len();

/// The data that all events of a replay share.
#[derive(Debug, Clone, Copy)]
pub struct ReplayContext<'a> {
    /// The replay's id.
    pub id: &'a str,
    /// The subscription that receives the events. No other does, whatever its filter says.
    pub subscription: &'a Subscription,
    /// Default and cap of the topic's time to live.
    pub default_time_to_live: Option<Duration>,
    /// Whether events get a new `webhook-id`, made of the key of their new delivery.
    pub gives_new_ids: bool,
    /// Whether recovery sends the events, so that each counts this time.
    pub counts_recovery: bool,
}

/// An event that was asked for, with its place in its object.
#[derive(Debug, Clone)]
pub struct SelectedLetter {
    /// The place in its object, from 0.
    pub index: usize,
    /// The dead letter.
    pub letter: RestoredLetter,
}

/// An event that is sent again.
#[derive(Debug, Clone)]
pub struct ResentEvent {
    /// The place of the event among those that were looked at.
    pub index: usize,
    /// The event.
    pub event: Event,
    /// The key of the new delivery.
    pub key: String,
    /// The dead letter of the event, if it has one.
    pub letter: Option<LetterPlace>,
    /// The life of the event until now, if its first acceptance is known.
    pub earlier: Option<EarlierLife>,
    /// The `webhook-id` that it had, and keeps unless the replay gives new ones.
    pub webhook_id: String,
}

/// A message for the delivery queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayMessage {
    /// The body.
    pub body: Bytes,
    /// The `MessageGroupId`.
    pub group: String,
    /// The time for which the queue hides it, in seconds.
    pub delay: Duration,
    /// The places of its events in their object.
    pub indexes: Vec<usize>,
    /// The key and text of each payload that must be stored before the message is sent.
    pub payloads: Vec<(String, Bytes)>,
}

impl ReplayContext<'_> {
    /// The messages for events of one object, packed as publish packs them, and none with more
    /// events than fall due in a second.
    pub fn messages_of_object(
        &self,
        key: &str,
        events: &[SelectedLetter],
        pace: &mut ReplayPace,
        now: Timestamp,
    ) -> Vec<ReplayMessage> {
        let events = events.iter().map(|event| ResentEvent {
            index: event.index,
            event: event.letter.event.clone(),
            key: key_of(self.id, key, event.index),
            letter: Some(LetterPlace {
                object: key.to_owned(),
                index: event.index,
            }),
            earlier: event.letter.earlier_life(),
            webhook_id: event.letter.webhook_id_at(key, event.index),
        });
        self.messages_of_events(&events.collect::<Vec<_>>(), pace, now)
    }

    /// The same of any events.
    pub fn messages_of_events(
        &self,
        events: &[ResentEvent],
        pace: &mut ReplayPace,
        now: Timestamp,
    ) -> Vec<ReplayMessage> {
        let entries: Vec<_> = events
            .iter()
            .map(|event| self.build_entry(event, now))
            .collect();
        let sizes: Vec<_> = entries.iter().map(marked_entry_size).collect();
        let second = PackingLimits {
            items_max: pace.at_once(),
            bytes_preferred: usize::MAX,
        };
        let mut messages = Vec::new();
        for run in self.subscription.batching.cut_into_messages(&sizes) {
            for part in second.cut_into_runs(run.clone().map(|_| 0)) {
                let part = run.start + part.start..run.start + part.end;
                for alike in runs_of_one_schema(&events[part.clone()]) {
                    let range = part.start + alike.start..part.start + alike.end;
                    let due = pace.take_due_time(range.len());
                    messages.push(self.build_message(
                        &events[range.clone()],
                        entries[range].to_vec(),
                        due,
                        now,
                    ));
                }
            }
        }
        messages
    }

    fn build_message(
        &self,
        events: &[ResentEvent],
        entries: Vec<DeliveryEntry>,
        due: Timestamp,
        now: Timestamp,
    ) -> ReplayMessage {
        let schema = events
            .first()
            .map_or(EventSchema::default(), |event| event.event.schema());
        let delivery = self.receiver().new_delivery(schema, entries, due, now);
        let delay = match choose_wait_place(due, now) {
            WaitPlace::Queue { delay } => delay,
            // The pace does not reach that far.
            WaitPlace::Parked => Duration::ZERO,
        };
        let payloads = delivery
            .events
            .iter()
            .zip(events)
            .filter_map(|(entry, event)| stored_payload(entry, &event.event));
        ReplayMessage {
            payloads: payloads.collect(),
            body: render_delivery(&delivery),
            group: delivery.message_group_id(),
            delay,
            indexes: events.iter().map(|event| event.index).collect(),
        }
    }

    fn build_entry(&self, event: &ResentEvent, now: Timestamp) -> DeliveryEntry {
        let ResentEvent {
            event,
            key,
            letter,
            earlier,
            webhook_id,
            ..
        } = event;
        let counted = u8::from(self.counts_recovery);
        let earlier = earlier.map(|life| EarlierLife {
            recoveries: life.recoveries.saturating_add(counted),
            ..life
        });
        let marks = EventMarks {
            replayed: true,
            run: Some(self.id.to_owned()),
            letter: letter.clone(),
            earlier,
            webhook_id: (!self.gives_new_ids).then(|| webhook_id.clone()),
            ..EventMarks::default()
        };
        self.receiver().new_entry(event, key.clone(), marks, now)
    }

    fn receiver(&self) -> ResentEventReceiver<'_> {
        ResentEventReceiver {
            subscription: self.subscription,
            default_time_to_live: self.default_time_to_live,
        }
    }
}

/// The key of the new delivery of one of the log that a replay sends again.
pub fn replayed_key(replay_id: &str, delivery_key: &str) -> String {
    key_of(replay_id, delivery_key, 0)
}

/// A key that is new with every replay, and the same when one replay sends an event twice after a
/// crash.
fn key_of(replay_id: &str, from: &str, index: usize) -> String {
    let digest = Sha256::new()
        .chain_update(replay_id)
        .chain_update([0])
        .chain_update(from)
        .finalize();
    format!("{}-{index}", hex::encode(&digest[..16]))
}

/// The size of an event with its marks, which only events that are sent again have.
fn marked_entry_size(entry: &DeliveryEntry) -> EventSize {
    let size = EventSize::measure(&entry.payload, entry.envelope.as_deref());
    let texts = [entry.marks.run.as_ref(), entry.marks.webhook_id.as_ref()];
    let letter = entry.marks.letter.as_ref().map(|letter| &letter.object);
    let texts = texts
        .into_iter()
        .chain([letter])
        .flatten()
        .map(String::len)
        .sum::<usize>();
    EventSize {
        message: size.message + MARKS_BYTES + texts,
        ..size
    }
}

/// Cuts events into runs of one schema. In an object of ours all have the same.
fn runs_of_one_schema(events: &[ResentEvent]) -> Vec<std::ops::Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for run in events.chunk_by(|one, other| one.event.schema() == other.event.schema()) {
        let end = start + run.len();
        runs.push(start..end);
        start = end;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::compile_subscription;
    use crate::delivery_log::names_to_keep;
    use crate::model::{EventPayload, PayloadDigest, SubscriptionName, TopicName};
    use crate::stored::dead_letter::restore_letter;
    use crate::stored::delivery::parse_delivery;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::from_millis(1_795_256_100_000);

    #[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
    fn subscription(more: Value) -> Subscription {
        let mut settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "filter": { "includedEventTypes": ["other"] },
        });
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
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

    fn events(count: usize, expirytime: &str) -> Vec<SelectedLetter> {
        let letter = |index: usize| {
            let event = format!(r#""specversion":"1.0","id":"{index}","source":"/s","type":"t""#);
            let record =
                format!(r#"{{{event},"expirytime":"{expirytime}","deadletterreason":"x"}}"#);
            SelectedLetter {
                index,
                letter: restore_letter(&Bytes::from(record), EventSchema::CloudEvents).unwrap(),
            }
        };
        (0..count).map(letter).collect()
    }

    fn messages(subscription: &Subscription, count: usize, rate: u32) -> Vec<ReplayMessage> {
        let replay = ReplayContext {
            id: "r",
            subscription,
            default_time_to_live: None,
            gives_new_ids: false,
            counts_recovery: false,
        };
        let mut pace = ReplayPace::new(rate, Timestamp::EPOCH, NOW);
        replay.messages_of_object("k", &events(count, "2020-01-01T00:00:00Z"), &mut pace, NOW)
    }

    #[test]
    fn a_replayed_event_is_new_to_the_queue_and_marked() {
        let billing = subscription(json!({ "retryPolicy": { "eventTimeToLiveInMinutes": 30 } }));
        let [message] = &messages(&billing, 1, 100)[..] else {
            panic!("one message")
        };
        let delivery = parse_delivery(&message.body).unwrap();
        let entry = &delivery.events[0];
        assert_eq!(
            (delivery.attempts, delivery.last, delivery.not_before),
            (0, None, NOW)
        );
        let run = Some("r".to_owned());
        // The letter does not say one: it is made of its place.
        let webhook_id = events(1, "2020-01-01T00:00:00Z")[0]
            .letter
            .webhook_id_at("k", 0);
        let letter = Some(LetterPlace {
            object: "k".to_owned(),
            index: 0,
        });
        assert_eq!(
            entry.marks,
            EventMarks {
                replayed: true,
                run,
                letter,
                webhook_id: Some(webhook_id),
                ..EventMarks::default()
            }
        );
        assert_eq!(entry.expires_at, NOW + Duration::from_mins(30));
        let EventPayload::Inline(text) = &entry.payload else {
            panic!("the event itself")
        };
        assert!(
            text.starts_with(b"{\"specversion\"") && text.ends_with(b"2020-01-01T00:00:00Z\"}")
        );
    }

    #[test]
    fn event_that_a_message_cannot_hold_is_stored_beside_it() {
        let billing = subscription(json!({}));
        let replay = ReplayContext {
            id: "r",
            subscription: &billing,
            default_time_to_live: None,
            gives_new_ids: false,
            counts_recovery: false,
        };
        let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":"#;
        let text = format!("{event}\"\u{ffff}\"");
        let record = Bytes::from(format!("{text},\"deadletterreason\":\"x\"}}"));
        let event = SelectedLetter {
            index: 0,
            letter: restore_letter(&record, EventSchema::CloudEvents).unwrap(),
        };
        let mut pace = ReplayPace::new(100, Timestamp::EPOCH, NOW);
        let [message] = &replay.messages_of_object("k", &[event], &mut pace, NOW)[..] else {
            panic!("one message")
        };
        let [(key, stored)] = &message.payloads[..] else {
            panic!("one payload")
        };
        assert_eq!(stored, &format!("{text}}}"));
        let entry = &parse_delivery(&message.body).unwrap().events[0];
        let digest = Some(PayloadDigest::for_json(stored));
        assert_eq!(
            entry.payload,
            EventPayload::Stored {
                key: key.clone(),
                bytes: stored.len(),
                digest,
                names: names_to_keep(EventSchema::CloudEvents, stored),
            }
        );
    }

    #[test]
    fn an_event_s_own_time_counts_while_it_is_not_over() {
        let billing = subscription(json!({}));
        let replay = ReplayContext {
            id: "r",
            subscription: &billing,
            default_time_to_live: None,
            gives_new_ids: false,
            counts_recovery: false,
        };
        let soon = NOW + Duration::from_mins(7);
        let mut pace = ReplayPace::new(100, Timestamp::EPOCH, NOW);
        let messages =
            replay.messages_of_object("k", &events(1, &soon.to_string()), &mut pace, NOW);
        let entry = &parse_delivery(&messages[0].body).unwrap().events[0];
        assert_eq!(entry.expires_at, soon);
    }

    #[test]
    fn the_key_is_the_same_for_the_same_event_of_one_replay_only() {
        assert_eq!(key_of("r", "k", 0), replayed_key("r", "k"));
        assert_eq!(key_of("r", "k", 0).len(), 34);
        for other in [
            key_of("s", "k", 0),
            key_of("r", "l", 0),
            key_of("r", "k", 1),
            key_of("rk", "", 0),
        ] {
            assert_ne!(key_of("r", "k", 0), other);
        }
    }

    #[test]
    fn messages_are_packed_as_in_publish_and_due_at_the_rate() {
        let check = |settings: Value, rate, expected: &[(usize, u128)]| {
            let messages = messages(&subscription(settings), 25, rate);
            let shape: Vec<_> = messages
                .iter()
                .map(|m| (m.indexes.len(), m.delay.as_millis()))
                .collect();
            assert_eq!(shape, expected);
            let all: Vec<_> = messages
                .into_iter()
                .flat_map(|message| message.indexes)
                .collect();
            assert_eq!(all, (0..25).collect::<Vec<_>>());
        };
        check(json!({}), 100, &[(10, 0), (10, 100), (5, 200)]);
        check(json!({}), 10, &[(10, 0), (10, 1000), (5, 2000)]);
        check(
            json!({ "batching": { "maxEventsPerBatch": 25 } }),
            20,
            &[(20, 0), (5, 1000)],
        );
        assert_eq!(messages(&subscription(json!({})), 25, 1).len(), 25);
    }
}
