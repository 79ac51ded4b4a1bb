//! From events to messages, without effects: the events of each subscription, the payloads that are
//! stored once instead of copied, and the packing.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::attempt::{EventSize, decide};
use posthaste_core::delivery_log::{AcceptedEvent, RecordText};
use posthaste_core::events::Event;
use posthaste_core::model::{
    Delivery, DeliveryEntry, ENTRY_OVERHEAD_BYTES, ENVELOPE_BYTES_RESERVED, EventEnvelope,
    EventMarks, EventPayload, EventSchema, Hops, INLINE_FAN_OUT_BYTES_MAX, LOG_PAYLOAD_BYTES_MAX,
    MatchCounts, PublishSchedule, SQS_MESSAGE_BYTES_MAX, Subscription, SubscriptionIntake,
    Timestamp, Topic,
};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::{event_id_digest, layout};
use posthaste_ports::OutgoingMessage;

use super::acceptance::{MeantSubscriptions, RECORD_BYTES_USUAL};
use super::schedule::{EventSchedule, ScheduledObject};

/// Largest event that a reference would hardly be shorter than, in bytes.
const TINY_EVENT_BYTES_MAX: usize = 512;

/// The most bytes that the schedule of an event takes in its message.
const SCHEDULED_BYTES: usize = 128;

/// The events that travel in their messages. Larger ones are stored, and their messages refer to
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InlineEvents {
    /// Events that a message can hold.
    #[default]
    Fitting,
    /// Events that the delivery log keeps whole. Of a larger one it keeps the reference.
    Logged,
    /// Events that a reference would hardly be shorter than. For times in which the queue is under
    /// pressure.
    Tiny,
}

impl InlineEvents {
    /// The largest of them, in bytes.
    const fn bytes_max(self) -> usize {
        match self {
            Self::Fitting => SQS_MESSAGE_BYTES_MAX - ENVELOPE_BYTES_RESERVED - ENTRY_OVERHEAD_BYTES,
            Self::Logged => LOG_PAYLOAD_BYTES_MAX,
            Self::Tiny => TINY_EVENT_BYTES_MAX,
        }
    }
}

/// The events of a request that each subscription receives.
#[derive(Debug)]
pub(super) struct FanOutPlan<'a> {
    /// The schema of the events: as a rule the topic's, but a notice is a CloudEvent wherever it
    /// is sent.
    input: EventSchema,
    /// Every subscription that receives something, with its part of `indexes`.
    receivers: Vec<(&'a Subscription, Range<usize>)>,
    /// The matched events of one receiver after the other, as positions in the request. One list
    /// for all, four bytes each, because a request may hold thousands of events and a topic
    /// hundreds of subscriptions.
    indexes: Vec<u32>,
    /// The subscriptions that are disabled and skip events, each with theirs.
    skipped: Vec<(&'a Subscription, Vec<u32>)>,
    /// The number of receivers of every event, by schema.
    copies: Vec<[u32; EventSchema::ALL.len()]>,
}

/// The payload of every event, by the schema in which it is sent. It is empty where no subscription
/// receives the event in that schema, and a schema in which none receives anything has no payloads.
#[derive(Debug, Default)]
pub(super) struct SchemaPayloads([Vec<EventPayload>; EventSchema::ALL.len()]);

impl SchemaPayloads {
    /// Takes in the payloads of all events in this schema.
    pub(super) fn set_schema(&mut self, schema: EventSchema, payloads: Vec<EventPayload>) {
        self.0[schema as usize] = payloads;
    }
}

/// The origin that all events of a fan-out have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventOrigin {
    /// The marks of the events.
    pub marks: EventMarks,
    /// The number of posthaste deliveries they came through.
    pub hops: Hops,
    /// The id of the request, from which its events have theirs: where the same request may be
    /// fanned out again. Left out, it is drawn.
    pub request_id: Option<String>,
    /// The times before which its events are not sent.
    pub schedule: EventSchedule,
}

/// The values that all deliveries of one request share.
#[derive(Debug)]
pub(super) struct FanOutRequest<'a> {
    /// The topic.
    pub(super) topic: &'a Topic,
    /// The events.
    pub(super) events: &'a [Event],
    /// The texts of each event, or the keys of those that are stored.
    pub(super) payloads: &'a SchemaPayloads,
    /// The time at which the events were accepted.
    pub(super) at: Timestamp,
    /// The id of the request; with its position it is the id of every event in it.
    pub(super) id: &'a str,
    /// The origin of its events.
    pub(super) origin: EventOrigin,
    /// The subscriptions that its events are meant for.
    pub(super) meant: &'a MeantSubscriptions,
}

/// The key of the event at this place of a request, of which its
/// [`webhook_id`](posthaste_core::model::webhook_id_of) is made.
pub fn event_key(request_id: &str, index: usize) -> String {
    format!("{request_id}-{index}")
}

impl<'a> FanOutPlan<'a> {
    /// Matches every event with every subscription of the topic that takes new ones at this time.
    pub(super) fn match_events(topic: &'a Topic, events: &[Event], at: Timestamp) -> Self {
        let input = events.first().map_or(topic.input_schema, Event::schema);
        let mut receivers = Vec::new();
        let mut indexes = Vec::new();
        let mut copies = vec![[0; EventSchema::ALL.len()]; events.len()];
        let matches = topic.filters.match_events(events);
        let mut skipped = Vec::new();
        // Among hundreds of subscriptions, only those that receive something are looked at.
        let passing = matches
            .passing_filters()
            .iter()
            .map(|position| (*position, &*topic.subscriptions[*position]));
        for (position, subscription) in passing {
            match subscription.intake_at(at) {
                SubscriptionIntake::Delivers | SubscriptionIntake::DeadLetters => {}
                SubscriptionIntake::Skips => {
                    skipped.push((subscription, matches.passing_events(position).collect()));
                    continue;
                }
                SubscriptionIntake::PassesBy => continue,
            }
            let start = indexes.len();
            let schema = output_schema(input, subscription);
            indexes.extend(matches.passing_events(position));
            for index in &indexes[start..] {
                copies[*index as usize][schema as usize] += 1;
            }
            receivers.push((subscription, start..indexes.len()));
        }
        Self {
            input,
            receivers,
            indexes,
            skipped,
            copies,
        }
    }

    /// Whether a subscription skips an event.
    pub(super) fn has_skipped(&self) -> bool {
        !self.skipped.is_empty()
    }

    /// Whether a subscription skips the event at this position.
    pub(super) fn is_skipped(&self, index: usize) -> bool {
        let Ok(index) = u32::try_from(index) else {
            return false;
        };
        self.skipped
            .iter()
            .any(|(_, events)| events.binary_search(&index).is_ok())
    }

    /// The number of records that say so: one for each event and subscription.
    pub(super) fn skipped_count(&self) -> usize {
        self.skipped.iter().map(|(_, events)| events.len()).sum()
    }

    /// Counts the events that are skipped, and logs them.
    pub(super) fn report_skipped(&self) {
        for (subscription, indexes) in &self.skipped {
            let topic = &subscription.topic;
            let name = &subscription.name;
            let events = indexes.len();
            let labels = [
                ("topic", topic.to_string()),
                ("subscription", name.to_string()),
            ];
            metrics::counter!("SkippedEventCount", &labels).increment(events as u64);
            tracing::debug!(%topic, subscription = %name, events, "events skipped");
        }
    }

    /// Every subscription that receives something, with the positions of its events.
    pub(super) fn receivers(&self) -> impl Iterator<Item = (&Subscription, &[u32])> + Clone {
        self.receivers
            .iter()
            .map(|(subscription, range)| (*subscription, &self.indexes[range.clone()]))
    }

    /// The events that at least one subscription receives, and the subscriptions that receive
    /// something.
    pub(super) fn matched_counts(&self) -> MatchCounts {
        let events = self
            .copies
            .iter()
            .filter(|copies| copies.iter().any(|&copies| copies > 0))
            .count();
        MatchCounts {
            events,
            subscriptions: self.receivers.len(),
        }
    }

    /// The schemas in which any subscription receives an event.
    pub(super) fn received_schemas(&self) -> impl Iterator<Item = EventSchema> {
        EventSchema::ALL.into_iter().filter(|schema| {
            self.copies
                .iter()
                .any(|copies| copies[*schema as usize] > 0)
        })
    }

    /// Whether any subscription receives this event in this schema.
    pub(super) fn is_received(&self, index: usize, schema: EventSchema) -> bool {
        self.copies_of(index, schema) > 0
    }

    fn copies_of(&self, index: usize, schema: EventSchema) -> usize {
        self.copies
            .get(index)
            .map_or(0, |copies| copies[schema as usize] as usize)
    }

    /// Whether this event's text in this schema is stored once and referenced by its messages.
    pub(super) fn is_stored(
        &self,
        index: usize,
        schema: EventSchema,
        bytes: usize,
        inline: InlineEvents,
    ) -> bool {
        let copies = self.copies_of(index, schema);
        let costs_too_much = copies > 1 && bytes.saturating_mul(copies) > INLINE_FAN_OUT_BYTES_MAX;
        copies > 0 && (costs_too_much || bytes > inline.bytes_max())
    }

    /// The messages that are sent at once, each rendered on demand: all of them at once could take
    /// five hundred times the request.
    pub(super) fn render_messages(
        &self,
        request: &FanOutRequest<'_>,
    ) -> impl Iterator<Item = OutgoingMessage> {
        self.receivers
            .iter()
            .flat_map(move |(subscription, range)| {
                let indexes = request.sent_at_once(&self.indexes[range.clone()]);
                let schema = output_schema(self.input, subscription);
                let runs = request.split_into_messages(subscription, schema, &indexes);
                runs.into_iter()
                    .map(move |run| request.render_message(subscription, schema, &indexes[run]))
            })
    }

    /// The objects of the deliveries that are not sent at once, each rendered on demand.
    pub(super) fn render_scheduled(
        &self,
        request: &FanOutRequest<'_>,
    ) -> impl Iterator<Item = ScheduledObject> {
        let objects = self.receivers.iter().flat_map(|(subscription, range)| {
            let indexes = &self.indexes[range.clone()];
            let minutes = request.origin.schedule.by_minute(request.at, indexes);
            minutes
                .into_iter()
                .map(move |(minute, indexes)| (subscription, minute, indexes))
        });
        objects.map(|(subscription, minute, indexes)| {
            let schema = output_schema(self.input, subscription);
            let runs = request.split_into_messages(subscription, schema, &indexes);
            let messages: Vec<_> = runs
                .into_iter()
                .map(|run| {
                    let delivery = request.build_delivery(subscription, schema, &indexes[run]);
                    render_delivery(&Delivery {
                        not_before: minute,
                        ..delivery
                    })
                })
                .collect();
            let key = layout::scheduled_key(
                minute,
                &subscription.topic,
                &subscription.name,
                request.id,
                &messages,
            );
            ScheduledObject { key, messages }
        })
    }

    /// The number of objects of the deliveries that are not sent at once.
    pub(super) fn scheduled_objects(&self, schedule: &EventSchedule, at: Timestamp) -> usize {
        if schedule.is_empty() {
            return 0;
        }
        let receivers = self.receivers.iter();
        let indexes = receivers.map(|(_, range)| &self.indexes[range.clone()]);
        indexes
            .map(|indexes| schedule.by_minute(at, indexes).len())
            .sum()
    }
}

/// The schema in which a subscription receives events of this one. A topic is checked as a whole,
/// so that its own events always have a conversion; others go out as they are.
fn output_schema(input: EventSchema, subscription: &Subscription) -> EventSchema {
    let output = subscription.delivery_schema;
    if input.converts_to(output) {
        output
    } else {
        input
    }
}

impl FanOutRequest<'_> {
    /// The positions of those events that are sent at once.
    fn sent_at_once<'i>(&self, indexes: &'i [u32]) -> Cow<'i, [u32]> {
        let schedule = &self.origin.schedule;
        if !schedule.delays_any(self.at, indexes) {
            return indexes.into();
        }
        indexes
            .iter()
            .copied()
            .filter(|index| schedule.later_than(self.at, *index as usize).is_none())
            .collect()
    }

    /// The events of each message to a subscription.
    fn split_into_messages(
        &self,
        to: &Subscription,
        schema: EventSchema,
        indexes: &[u32],
    ) -> Vec<Range<usize>> {
        let sizes = indexes
            .iter()
            .map(|&index| self.event_size(schema, index as usize));
        to.batching.cut_into_messages(&sizes.collect::<Vec<_>>())
    }

    fn render_message(
        &self,
        subscription: &Subscription,
        schema: EventSchema,
        indexes: &[u32],
    ) -> OutgoingMessage {
        let delivery = self.build_delivery(subscription, schema, indexes);
        OutgoingMessage {
            body: render_delivery(&delivery),
            group: Some(delivery.message_group_id()),
            delay: Duration::ZERO,
        }
    }

    fn build_delivery(
        &self,
        subscription: &Subscription,
        schema: EventSchema,
        indexes: &[u32],
    ) -> Delivery {
        Delivery {
            topic: subscription.topic.clone(),
            subscription: subscription.name.clone(),
            schema,
            published_at: self.at,
            not_before: self.at,
            attempts: 0,
            last: None,
            timed_out: false,
            identity: subscription.created.identity(),
            hops: self.origin.hops,
            events: indexes
                .iter()
                .map(|index| self.build_entry(subscription, schema, *index as usize))
                .collect(),
        }
    }

    /// Custom events travel with their envelope; in the other schemas all of it is in the text.
    fn envelope(&self, schema: EventSchema, index: usize) -> Option<&Arc<EventEnvelope>> {
        self.events[index]
            .envelope()
            .filter(|_| schema == EventSchema::Custom)
    }

    fn event_size(&self, schema: EventSchema, index: usize) -> EventSize {
        let envelope = self.envelope(schema, index).map(|envelope| &**envelope);
        let size = EventSize::measure(&self.payloads.0[schema as usize][index], envelope);
        let scheduled = self.scheduled_at(index).map_or(0, |_| SCHEDULED_BYTES);
        EventSize {
            message: size.message + self.meant.message_bytes(index) + scheduled,
            ..size
        }
    }

    /// The key of an event towards every subscription.
    fn key_of_event(&self, index: usize) -> String {
        event_key(self.id, index)
    }

    /// The records of the acceptances that are not said by messages, and of the events that
    /// subscriptions skip, as many as have room beside the messages. Each has all names.
    pub(super) fn acceptance_records(&self, plan: &FanOutPlan<'_>) -> Vec<RecordText> {
        let mut room = RecordRoom(INLINE_FAN_OUT_BYTES_MAX);
        let mut records = Vec::new();
        for (index, matched) in &self.meant.recorded {
            if !room.take(matched.len()) {
                return records;
            }
            let key = self.key_of_event(*index);
            records.extend(self.accepted_event(*index, &key).render_record(matched));
        }
        for (subscription, indexes) in &plan.skipped {
            for index in indexes {
                if !room.take(0) {
                    return records;
                }
                let key = self.key_of_event(*index as usize);
                let accepted = self.accepted_event(*index as usize, &key);
                records.extend(accepted.skipped_by(subscription));
            }
        }
        records
    }

    fn accepted_event<'e>(&'e self, index: usize, key: &'e str) -> AcceptedEvent<'e> {
        AcceptedEvent {
            topic: &self.topic.name,
            event: &self.events[index],
            key,
            at: self.at,
            not_before: self.scheduled_at(index),
        }
    }

    /// The time before which an event is not sent, if it is not sent at once.
    fn scheduled_at(&self, index: usize) -> Option<Timestamp> {
        self.origin.schedule.later_than(self.at, index)
    }

    fn build_entry(
        &self,
        subscription: &Subscription,
        schema: EventSchema,
        index: usize,
    ) -> DeliveryEntry {
        let event = &self.events[index];
        let not_before = self.scheduled_at(index);
        let scheduled = not_before.map(|at| PublishSchedule {
            at,
            id: event_id_digest(event.id()),
            released: false,
            cancelled: false,
        });
        DeliveryEntry {
            key: self.key_of_event(index),
            expires_at: decide::expires_at(
                not_before.unwrap_or(self.at),
                event.expirytime(),
                subscription.retry.time_to_live,
                self.topic.default_time_to_live,
            ),
            traceparent: event.traceparent().map(str::to_owned),
            marks: EventMarks {
                matched: self.meant.in_messages(index).cloned(),
                scheduled: scheduled.map(Box::new),
                ..self.origin.marks.clone()
            },
            envelope: self.envelope(schema, index).cloned(),
            payload: self.payloads.0[schema as usize][index].clone(),
        }
    }
}

/// The bytes that are left for the records of acceptances.
struct RecordRoom(usize);

impl RecordRoom {
    /// Takes the room of one record. `false` if there is not enough, after which there is none.
    fn take(&mut self, names_bytes: usize) -> bool {
        let left = self.0.checked_sub(names_bytes + RECORD_BYTES_USUAL);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fan_out::acceptance::FirstAttempts;
    use bytes::Bytes;
    use posthaste_core::model::EVENT_BYTES_MAX;
    use posthaste_core::stored::TopicRecord;
    use posthaste_core::stored::delivery::parse_delivery;
    use proptest::prelude::*;
    use serde_json::json;

    /// A topic whose subscriptions have these types and batches; a batch of none is one that was
    /// not asked for.
    fn topic(subscriptions: &[(char, u32)]) -> Topic {
        let settings = |&(event_type, batch): &(char, u32)| {
            let batching = (batch > 0).then(|| json!({ "maxEventsPerBatch": batch }));
            json!({
                "endpoint": { "url": "https://a.example.com/" },
                "filter": { "includedEventTypes": [event_type] },
                "batching": batching,
            })
        };
        let named = subscriptions
            .iter()
            .enumerate()
            .map(|(n, s)| (format!("s{n}"), settings(s)));
        let record = json!({
            "v": 1, "name": "orders", "key1": "a", "key2": "b", "createdAt": 0, "updatedAt": 0,
            "settings": { "subscriptions": named.collect::<serde_json::Map<_, _>>() },
        });
        TopicRecord::parse(record.to_string().as_bytes())
            .unwrap()
            .compile()
            .unwrap()
    }

    fn event(event_type: char) -> Event {
        let json = json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": event_type });
        Event::parse(EventSchema::CloudEvents, Bytes::from(json.to_string())).unwrap()
    }

    fn stores(copies: usize, bytes: usize, inline: InlineEvents) -> bool {
        let topic = topic(&vec![('a', 0); copies]);
        FanOutPlan::match_events(&topic, &[event('a')], Timestamp::EPOCH).is_stored(
            0,
            EventSchema::CloudEvents,
            bytes,
            inline,
        )
    }

    #[test]
    fn the_bounds_of_storing_are_exact() {
        let quarter = INLINE_FAN_OUT_BYTES_MAX / 4;
        assert!(!stores(
            5,
            INLINE_FAN_OUT_BYTES_MAX / 5,
            InlineEvents::Fitting
        ));
        assert!(stores(
            5,
            INLINE_FAN_OUT_BYTES_MAX / 5 + 1,
            InlineEvents::Fitting
        ));
        assert!(!stores(1, EVENT_BYTES_MAX, InlineEvents::Fitting));
        assert!(
            stores(4, quarter, InlineEvents::Fitting),
            "it would not fit into a message"
        );
        assert!(!stores(1, LOG_PAYLOAD_BYTES_MAX, InlineEvents::Logged));
        assert!(stores(1, LOG_PAYLOAD_BYTES_MAX + 1, InlineEvents::Logged));
        assert!(!stores(1, TINY_EVENT_BYTES_MAX, InlineEvents::Tiny));
        assert!(stores(1, TINY_EVENT_BYTES_MAX + 1, InlineEvents::Tiny));
        assert!(
            !stores(0, EVENT_BYTES_MAX, InlineEvents::Tiny),
            "nobody receives it"
        );
    }

    proptest! {
        #[test]
        fn every_subscription_receives_its_events_once_and_in_order(
            subscriptions in
                prop::collection::vec((prop::sample::select(vec!['a', 'b', 'c']), 0_u32..15), 0..6),
            types in prop::collection::vec(prop::sample::select(vec!['a', 'b', 'd']), 0..40),
        ) {
            let topic = topic(&subscriptions);
            let events: Vec<Event> = types.iter().copied().map(event).collect();
            let mut payloads = SchemaPayloads::default();
            let inline = events.iter().map(|event| EventPayload::Inline(event.json().clone()));
            payloads.set_schema(EventSchema::CloudEvents, inline.collect());
            let at = Timestamp::from_millis(1);
            let origin = EventOrigin::default();
            let plan = FanOutPlan::match_events(&topic, &events, at);
            let first = FirstAttempts { schedule: &EventSchedule::default(), at, wait: false };
            let meant = MeantSubscriptions::from_receivers(plan.receivers(), &topic, &events, first);
            let request = FanOutRequest {
                topic: &topic,
                events: &events,
                payloads: &payloads,
                at,
                id: "r",
                origin,
                meant: &meant,
            };
            let mut received = vec![Vec::new(); subscriptions.len()];
            for message in plan.render_messages(&request) {
                let delivery = parse_delivery(&message.body).unwrap();
                let number: usize = delivery.subscription.as_str()[1..].parse().unwrap();
                let most = match subscriptions[number].1 { 0 => 10, batch => batch as usize };
                prop_assert!(delivery.events.len() <= most);
                received[number].extend(delivery.events.into_iter().map(|entry| entry.key));
            }
            for ((wanted, _), received) in subscriptions.iter().zip(received) {
                let of_type = types.iter().enumerate().filter(|(_, event_type)| *event_type == wanted);
                prop_assert_eq!(received, of_type.map(|(n, _)| format!("r-{n}")).collect::<Vec<_>>());
            }
            let is_wanted =
                |event_type: &&char| subscriptions.iter().any(|(wanted, _)| wanted == *event_type);
            let events = types.iter().filter(is_wanted).count();
            let is_receiver = |(wanted, _): &&(char, u32)| types.contains(wanted);
            let receivers = subscriptions.iter().filter(is_receiver).count();
            prop_assert_eq!(plan.matched_counts(), MatchCounts { events, subscriptions: receivers });
        }
    }
}
