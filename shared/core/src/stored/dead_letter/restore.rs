//! The inverse of [`dead_letter_record`](super::dead_letter_record): the event as it was, without
//! the members that say what became of it.
//!
//! It reads Azure Event Grid's own dead letters too, whose members have the same names and stand in
//! another order. They say no creation, and the time at which Azure took them says nothing about
//! one: whoever copies them to a subscription means that one.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::members::{
    CLOUD_EVENTS, EVENT_GRID, MemberNames, ORIGINAL_ATTRIBUTES, member_value, read_members,
};
use crate::events::{Event, EventError, put_back, value_behind, without_members};
use crate::model::{
    EarlierLife, EventEnvelope, EventSchema, Identity, MAPPED_VALUE_BYTES_MAX,
    RESTORED_EVENT_BYTES_MAX, SubscriptionCreation, Timestamp, WEBHOOK_ID_PREFIX, hex,
    webhook_id_of,
};

/// Bytes of a digest in the `webhook-id` of a letter that has none: as many as a UUID has.
const LETTER_ID_BYTES: usize = 16;

/// Longest `webhook-id` that a letter may name. Ours have some forty bytes.
pub const LETTER_WEBHOOK_ID_BYTES_MAX: usize = 64;

/// A dead letter as it was read from its object.
#[derive(Debug, Clone)]
pub struct RestoredLetter {
    /// The reason why it was given up, as it is written.
    pub reason: Box<str>,
    /// The creation of its subscription that it was accepted for; `None` where an older program
    /// gave it up, or another's.
    pub identity: Option<Identity>,
    /// The time at which posthaste accepted it, if it says so.
    pub published_at: Option<Timestamp>,
    /// The key of the delivery that was given up; `None` where release 0.1 or another program wrote
    /// the letter.
    pub delivery_key: Option<String>,
    /// The `webhook-id` that the event has when it travels alone; `None` as above.
    pub webhook_id: Option<String>,
    /// The time since which its link or its subscription was not well when it was given up; `None`
    /// if nothing says so.
    pub outage_since: Option<Timestamp>,
    /// The life of the event before it was sent again; `None` where it was given up for the first
    /// time.
    pub earlier: Option<EarlierLife>,
    /// The event, byte for byte as it was. In a record of a version before `originalattributes`, a
    /// member of the producer's own that had the name of one of ours is gone.
    pub event: Event,
}

/// Why a part of a dead-letter object is no event that could be sent again.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The reason why it was given up is missing.
    #[error("not a dead letter: there is no deadLetterReason in it")]
    NotADeadLetter,
    /// The event is larger than any accepted one can become.
    #[error("larger than {RESTORED_EVENT_BYTES_MAX} bytes")]
    TooLarge,
    /// A custom event whose envelope says too little, or too much.
    #[error("a custom event whose envelope cannot be read")]
    Envelope,
    /// The text without our members is not as its schema says.
    #[error("not an event of its schema")]
    Event(#[source] EventError),
}

/// Why an object is no list of dead letters.
#[derive(Debug, thiserror::Error)]
#[error("not a JSON array of dead letters")]
pub struct NotDeadLetters(#[source] pub(super) serde_json::Error);

/// A time as we write it: with seven digits behind the second, of which the last four are zeros.
/// Event Grid's own has ten millionths of a second, and one in ten thousand looks like ours.
fn own_time(text: &str) -> Option<Timestamp> {
    let time = Timestamp::parse(text).ok()?;
    (time.to_event_grid() == text).then_some(time)
}

/// The members that we added to a record. They stand behind the reason.
struct OwnMembers<'a> {
    record: &'a Bytes,
    /// The name of the reason's member.
    reason: &'static str,
}

impl OwnMembers<'_> {
    /// Reads a member; `None` if it is missing, or no such value.
    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(value_behind(self.record, self.reason, name)?).ok()
    }

    fn read_time(&self, name: &str) -> Option<Timestamp> {
        own_time(&self.read::<String>(name)?)
    }
}

impl RestoredLetter {
    /// The `webhook-id` that the event has when it travels alone. Of a letter that does not say it
    /// one is made of its place, the same whenever it is sent again.
    pub fn webhook_id_at(&self, object: &str, index: usize) -> String {
        self.webhook_id.clone().unwrap_or_else(|| {
            let digest = Sha256::new()
                .chain_update(object)
                .chain_update([0])
                .chain_update(index.to_string())
                .finalize();
            webhook_id_of(&hex::encode(&digest[..LETTER_ID_BYTES]))
        })
    }

    /// The life that it has when it is sent again: its first acceptance stays. `None` if it does
    /// not say when it was accepted.
    pub fn earlier_life(&self) -> Option<EarlierLife> {
        let first = self.published_at.map(|accepted_at| EarlierLife {
            accepted_at,
            recoveries: 0,
        });
        self.earlier.or(first)
    }

    /// Whether it was accepted for this creation of its subscription. Where it does not say when it
    /// was accepted, only its identity tells.
    pub fn is_for(&self, created: &SubscriptionCreation) -> bool {
        created.has_accepted(
            self.identity,
            self.published_at
                .unwrap_or(Timestamp::from_millis(u64::MAX)),
        )
    }
}

/// The reason why a record's event was given up, with the names of its schema. The reason has
/// another name in CloudEvents; what has that name with another value than a text is a member of
/// the producer's own.
fn read_reason(record: &[u8]) -> Option<(String, MemberNames, EventSchema)> {
    let names = [EVENT_GRID.reason, CLOUD_EVENTS.reason];
    let [event_grid, cloud_events] = read_members(record, names)?;
    match (member_value(event_grid), member_value(cloud_events)) {
        (Some(reason), _) => Some((reason, EVENT_GRID, EventSchema::EventGrid)),
        (None, Some(reason)) => Some((reason, CLOUD_EVENTS, EventSchema::CloudEvents)),
        (None, None) => None,
    }
}

/// Whether a text can be a `webhook-id`: who copies letters may have changed it.
fn is_webhook_id(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(WEBHOOK_ID_PREFIX) else {
        return false;
    };
    text.len() <= LETTER_WEBHOOK_ID_BYTES_MAX
        && !rest.is_empty()
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// The parts of an object, each restored by itself. `output` is the schema in which their
/// subscription receives events: a custom event lies in Event Grid's members, so that only it tells
/// the two apart.
pub fn restore_all(
    object: &Bytes,
    output: EventSchema,
) -> Result<Vec<Result<RestoredLetter, RestoreError>>, NotDeadLetters> {
    let records: Vec<&RawValue> = serde_json::from_slice(object).map_err(NotDeadLetters)?;
    Ok(records
        .iter()
        .map(|raw| restore_letter(&object.slice_ref(raw.get().as_bytes()), output))
        .collect())
}

/// The event of one dead letter.
pub fn restore_letter(record: &Bytes, output: EventSchema) -> Result<RestoredLetter, RestoreError> {
    let (reason, names, schema) = read_reason(record).ok_or(RestoreError::NotADeadLetter)?;
    // Members of the producer's own may have these names: they say nothing, and cost nothing.
    let accepted = read_members(record, [names.identity, names.published]);
    let [identity, published_at] = accepted.unwrap_or_default();
    let identity = member_value::<String>(identity).and_then(|text| Identity::parse(&text));
    let published_at = member_value::<String>(published_at).and_then(|text| own_time(&text));
    let ours = OwnMembers {
        record,
        reason: names.reason,
    };
    let delivery_key = ours.read(names.key);
    let webhook_id = ours
        .read(names.webhook_id)
        .filter(|id: &String| is_webhook_id(id));
    let outage_since = ours.read_time(names.outage);
    let earlier = ours
        .read_time(names.first_published)
        .map(|accepted_at| EarlierLife {
            accepted_at,
            recoveries: ours.read(names.recoveries).unwrap_or_default(),
        });
    let text = without_our_members(record, &names);
    let event = match (schema, output) {
        (EventSchema::EventGrid, EventSchema::Custom) => custom_event(&text)?,
        _ => Event::parse(schema, text).map_err(RestoreError::Event)?,
    };
    if event.json().len() > RESTORED_EVENT_BYTES_MAX {
        return Err(RestoreError::TooLarge);
    }
    Ok(RestoredLetter {
        reason: reason.into(),
        identity,
        published_at,
        delivery_key,
        webhook_id,
        outage_since,
        earlier,
        event,
    })
}

/// The event of a text that the delivery log keeps: a custom event lies in its envelope. `schema`
/// is the one that it was sent in, `output` the one in which its subscription receives events now.
pub fn restore_logged(
    text: Bytes,
    schema: EventSchema,
    output: EventSchema,
) -> Result<Event, RestoreError> {
    match (schema, output) {
        (EventSchema::Custom, EventSchema::Custom) => custom_event(&text),
        (EventSchema::Custom, _) => {
            Event::parse(EventSchema::EventGrid, text).map_err(RestoreError::Event)
        }
        _ => Event::parse(schema, text).map_err(RestoreError::Event),
    }
}

/// The record without our members, and with those of the producer's own that were kept beside them.
/// A member that is not as we write it is the producer's own itself.
fn without_our_members(record: &Bytes, names: &MemberNames) -> Bytes {
    let reserved = names.reserved_names();
    let [ours @ .., _] = &reserved;
    let kept = value_behind(record, names.reason, ORIGINAL_ATTRIBUTES);
    let kept = kept.and_then(|json| serde_json::from_str::<String>(json).ok());
    let whole = kept
        .and_then(|members| put_back(&without_members(record, names.reason, &reserved), &members));
    whole.unwrap_or_else(|| without_members(record, names.reason, ours))
}

/// The members of Event Grid's that lie around a custom event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnvelopeMembers<'a> {
    id: Box<str>,
    event_time: Box<str>,
    event_type: Box<str>,
    #[serde(default)]
    data_version: Box<str>,
    topic: Box<str>,
    #[serde(default)]
    subject: Box<str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// The custom event under `data`, in its envelope.
fn custom_event(text: &Bytes) -> Result<Event, RestoreError> {
    let around: EnvelopeMembers<'_> =
        serde_json::from_slice(text).map_err(|_| RestoreError::Envelope)?;
    let EnvelopeMembers {
        id,
        event_time,
        event_type,
        data_version,
        topic,
        subject,
        data,
    } = around;
    let envelope = EventEnvelope {
        id,
        event_time,
        event_type,
        data_version,
        topic,
        subject,
    };
    let EventEnvelope {
        id,
        event_time,
        event_type,
        data_version,
        topic,
        subject,
    } = &envelope;
    let texts = [id, event_time, event_type, data_version, topic, subject];
    let is_void = [id, event_type, topic].iter().any(|text| text.is_empty());
    if is_void || texts.iter().any(|text| text.len() > MAPPED_VALUE_BYTES_MAX) {
        return Err(RestoreError::Envelope);
    }
    if !data.get().starts_with('{') {
        return Err(RestoreError::Envelope);
    }
    Ok(Event::from_envelope(
        text.slice_ref(data.get().as_bytes()),
        Arc::new(envelope),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::dead_letter_record;
    use super::super::tests::{entry, letter};
    use super::*;
    use crate::events::{
        GeneratedValues, PublishRequest, TopicInput, convert_event, parse_request,
    };
    use crate::model::{
        CreationId, CreationRecord, DeliveryEntry, EVENT_BYTES_MAX, InputMapping, Timestamp,
        TopicName,
    };
    use http::HeaderMap;
    use proptest::prelude::*;
    use std::error::Error;

    const CLOUD_EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s", "type":"t","data":{"deadletterreason":1.00} }"#;
    const EVENT_GRID_EVENT: &str = r#"{"id":"1","eventType":"t","subject":"","eventTime":"2026-11-21T10:00:00Z","data":null, "publishtime":"mine"}"#;

    fn check(schema: EventSchema, status: Option<u16>, event: &str) {
        let event = Bytes::from(event.to_owned());
        let restored = restore_letter(
            &dead_letter_record(&letter(schema, status), &entry(None), &event),
            schema,
        )
        .unwrap();
        assert_eq!(
            (&*restored.reason, restored.event.json()),
            ("MaxDeliveryAttemptsExceeded", &event)
        );
        assert_eq!(
            (restored.event.schema(), restored.event.id()),
            (schema, "1")
        );
    }

    #[test]
    fn letter_of_an_outage_says_it_and_its_earlier_life() {
        let first = Timestamp::parse("2020-08-01T17:18:14.026Z").unwrap();
        for (schema, event) in [
            (EventSchema::CloudEvents, CLOUD_EVENT),
            (EventSchema::EventGrid, EVENT_GRID_EVENT),
        ] {
            let mut dead = letter(schema, None);
            dead.outage_since = Some(first);
            let mut entry = entry(None);
            let text = Bytes::from_static(event.as_bytes());
            let said = |dead: &_, entry: &_| {
                restore_letter(&dead_letter_record(dead, entry, &text), schema).unwrap()
            };
            let fresh = said(&dead, &entry);
            assert_eq!((fresh.outage_since, fresh.earlier), (Some(first), None));
            let life = fresh.earlier_life().unwrap();
            assert_eq!(life.accepted_at, dead.delivery.published_at);
            let life = EarlierLife {
                accepted_at: first,
                recoveries: 2,
            };
            entry.marks.earlier = Some(life);
            dead.outage_since = None;
            let again = said(&dead, &entry);
            assert_eq!(
                (again.outage_since, again.earlier_life()),
                (None, Some(life))
            );
            assert_eq!(again.event.json(), &text);
        }
    }

    #[test]
    fn letter_says_its_delivery_and_the_webhook_id() {
        for (schema, event) in [
            (EventSchema::CloudEvents, CLOUD_EVENT),
            (EventSchema::EventGrid, EVENT_GRID_EVENT),
        ] {
            let mut entry = entry(None);
            let said = |entry: &DeliveryEntry| {
                let event = Bytes::from_static(event.as_bytes());
                let restored = restore_letter(
                    &dead_letter_record(&letter(schema, None), entry, &event),
                    schema,
                );
                let restored = restored.unwrap();
                (restored.delivery_key.unwrap(), restored.webhook_id.unwrap())
            };
            assert_eq!(said(&entry), ("k".to_owned(), "msg_k".to_owned()));
            entry.marks.webhook_id = Some("msg_first-3".to_owned());
            assert_eq!(said(&entry), ("k".to_owned(), "msg_first-3".to_owned()));
        }
    }

    /// Of release 0.1, of another program, or changed by hand.
    #[test]
    fn letter_without_a_webhook_id_gets_one_of_its_place() {
        let long = format!("msg_{}", "x".repeat(LETTER_WEBHOOK_ID_BYTES_MAX));
        for said in ["msg_", "x", "msg_a.b", "msg_a\\\"", "msg_ä", &long] {
            let letter = format!(
                r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","deadletterreason":"x","webhookid":"{said}"}}"#
            );
            let restored = restore_letter(&Bytes::from(letter), EventSchema::CloudEvents).unwrap();
            assert_eq!(restored.webhook_id, None, "{said}");
            let id = restored.webhook_id_at("A/B/x.json", 3);
            assert!(is_webhook_id(&id) && id == restored.webhook_id_at("A/B/x.json", 3));
            assert_ne!(id, restored.webhook_id_at("A/B/x.json", 4));
            assert_ne!(id, restored.webhook_id_at("A/B/y.json", 3));
        }
    }

    #[test]
    fn members_of_the_producer_s_own_name_no_webhook_id() {
        let own = r#","webhookid":"msg_mine-0","deliverykey":"mine""#;
        let event = CLOUD_EVENT.replacen(',', &format!("{own},"), 1);
        check(EventSchema::CloudEvents, None, &event);
        let former = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","webhookid":"msg_mine-0","deadletterreason":"x"}"#;
        let restored = restore_letter(&Bytes::from(former), EventSchema::CloudEvents).unwrap();
        assert_eq!((restored.delivery_key, restored.webhook_id), (None, None));
    }

    #[test]
    fn an_event_comes_back_byte_for_byte() {
        for status in [None, Some(404)] {
            check(EventSchema::CloudEvents, status, CLOUD_EVENT);
            check(EventSchema::EventGrid, status, EVENT_GRID_EVENT);
        }
    }

    #[test]
    fn a_member_of_the_producer_s_own_that_was_not_replaced_stays() {
        check(
            EventSchema::CloudEvents,
            None,
            r#"{"lasthttpstatuscode":7,"specversion":"1.0","id":"1","source":"/s","type":"t","lasthttpstatus":1}"#,
        );
    }

    /// A member of the producer's own under the other schema's name stays.
    #[test]
    fn producer_member_with_the_other_schemas_name_stays() {
        for own in ["5", "{}", "null", "[1]"] {
            let event =
                EVENT_GRID_EVENT.replacen('{', &format!("{{\"deadletterreason\":{own},"), 1);
            check(EventSchema::EventGrid, None, &event);
        }
    }

    /// Members of the producer's own that have a name of ours come back.
    #[test]
    fn producer_members_with_reserved_names_come_back() {
        let attributes =
            r#""deadletterreason" :"mine", "deliveryattempts":3, "originalattributes":"{}""#;
        for status in [None, Some(404)] {
            check(
                EventSchema::CloudEvents,
                status,
                &CLOUD_EVENT.replacen(',', &format!(",{attributes} ,"), 1),
            );
            check(
                EventSchema::CloudEvents,
                status,
                &CLOUD_EVENT.replace("} }", &format!("}} ,{attributes}}}")),
            );
            let own = EVENT_GRID_EVENT.replacen(
                '{',
                r#"{"deadLetterReason":7,"lastHttpStatusCode":null,"#,
                1,
            );
            check(EventSchema::EventGrid, status, &own);
        }
    }

    #[test]
    fn a_kept_member_that_is_not_ours_is_the_producer_s() {
        let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
        let laid = r#","deadletterreason":"x","originalattributes":"hello"}"#;
        let record = Bytes::from(event.replace('}', laid));
        let restored = restore_letter(&record, EventSchema::CloudEvents)
            .unwrap()
            .event;
        assert_eq!(
            restored.json(),
            &event.replace('}', r#","originalattributes":"hello"}"#)
        );
    }

    /// The text of a request's only event in `output`.
    fn published(input: TopicInput<'_>, body: String, output: EventSchema) -> Bytes {
        let topic = TopicName::parse("orders").unwrap();
        let headers = HeaderMap::new();
        let request = PublishRequest {
            topic: &topic,
            input,
            headers: &headers,
            body: &Bytes::from(body),
        };
        convert_event(&parse_request(&request).unwrap()[0], output).unwrap()
    }

    #[test]
    fn the_largest_event_comes_back_whatever_was_added_to_it() {
        let mapping = InputMapping::default();
        let made = GeneratedValues {
            at: Timestamp::EPOCH,
            seed: [1; 16],
        };
        let custom = TopicInput::Custom {
            mapping: &mapping,
            made,
        };
        let grid = EVENT_GRID_EVENT.replace(r#"null, "publishtime":"mine""#, "\"#\"");
        let blank = grid.replace('#', "").replacen('{', r##"{"topic":"#","##, 1);
        for (input, event, output) in [
            (TopicInput::EventGrid, grid.clone(), EventSchema::EventGrid),
            (TopicInput::EventGrid, grid, EventSchema::CloudEvents),
            (TopicInput::EventGrid, blank, EventSchema::CloudEvents),
            (custom, "{\"a\":\"#\"}".to_owned(), EventSchema::EventGrid),
            (custom, "{\"a\":\"#\"}".to_owned(), EventSchema::CloudEvents),
        ] {
            let fill = " ".repeat(EVENT_BYTES_MAX + 1 - event.len());
            let event = published(input, event.replace('#', &fill), output);
            assert!(event.len() > EVENT_BYTES_MAX);
            let restored = restore_letter(
                &dead_letter_record(&letter(output, None), &entry(None), &event),
                output,
            )
            .unwrap();
            assert!(restored.event.json() == &event, "{output:?}");
        }
    }

    #[test]
    fn characters_that_sqs_refuses_and_names_stay_as_written() {
        let check = |record: &str, expected: &str| {
            let restored =
                restore_letter(&Bytes::from(record.to_owned()), EventSchema::EventGrid).unwrap();
            assert_eq!(restored.event.json(), expected);
        };
        let rest =
            r#""id":"1","eventType":"t","subject":"","eventTime":"2026-11-21T10:00:00Z","data":"#;
        check(
            &format!("{{\"deadLetterReason\":\"x\",\"\\u0061\\uffff\":1,{rest}\"\u{ffff}\"}}"),
            &format!("{{\"\\u0061\\uffff\":1,{rest}\"\u{ffff}\"}}"),
        );
    }

    #[test]
    fn a_dead_letter_says_for_whom_it_was_accepted_and_when() {
        for (schema, event) in [
            (EventSchema::CloudEvents, CLOUD_EVENT),
            (
                EventSchema::EventGrid,
                &EVENT_GRID_EVENT.replace("publishtime", "subscriptionidentity"),
            ),
        ] {
            let event = Bytes::from(event.to_owned());
            let mut letter = letter(schema, None);
            letter.delivery.identity = Identity::parse("a1b2c3d4e5f60102030405ff");
            let restored =
                restore_letter(&dead_letter_record(&letter, &entry(None), &event), schema).unwrap();
            let published_at = Some(letter.delivery.published_at);
            assert_eq!(
                (restored.identity, restored.published_at),
                (letter.delivery.identity, published_at)
            );
            assert_eq!(restored.event.json(), &event);
        }
    }

    /// Only the identity tells where nothing says when the letter was accepted.
    #[test]
    fn letter_without_acceptance_time_is_judged_by_its_identity() {
        let text =
            r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","deadletterreason":"x"#;
        let now = Timestamp::from_millis(1_795_256_100_000);
        let creation = |byte| {
            Some(CreationRecord {
                id: CreationId::new([byte; 6]),
                at: Some(now),
            })
        };
        let created = SubscriptionCreation {
            topic: creation(1),
            subscription: creation(2),
            topic_at: now,
        };
        for (more, expected) in [
            ("", true),
            (
                r#"","subscriptionidentity":"010101010101020202020202"#,
                true,
            ),
            (
                r#"","subscriptionidentity":"010101010101030303030303"#,
                false,
            ),
            (r#"","publishtime":"2020-08-13T17:18:14.0260000Z"#, false),
            // What Azure accepted, and whoever writes times in another way.
            (r#"","publishtime":"2020-08-13T17:18:14.0265758Z"#, true),
            (r#"","publishtime":"2020-08-13T17:18:14Z"#, true),
        ] {
            let record = Bytes::from(format!("{text}{more}\"}}"));
            assert_eq!(
                restore_letter(&record, EventSchema::CloudEvents)
                    .unwrap()
                    .is_for(&created),
                expected,
                "{more}"
            );
        }
    }

    #[test]
    fn a_custom_event_is_taken_out_of_its_envelope() {
        let envelope = EventEnvelope {
            id: "1".into(),
            event_time: "2020-08-13T18:11:29.4121391Z".into(),
            event_type: "made".into(),
            data_version: "".into(),
            topic: "/topics/orders".into(),
            subject: "a\"b".into(),
        };
        let event = Bytes::from_static(br#"{ "n": 1.00, "deadLetterReason": "mine" }"#);
        let record = dead_letter_record(
            &letter(EventSchema::Custom, Some(404)),
            &entry(Some(envelope.clone())),
            &event,
        );
        let restored = restore_letter(&record, EventSchema::Custom).unwrap().event;
        assert_eq!(
            (restored.json(), restored.schema()),
            (&event, EventSchema::Custom)
        );
        assert_eq!(
            restored.envelope().map(|envelope| &**envelope),
            Some(&envelope)
        );
        // A subscription that receives Event Grid's schema by now gets it in that.
        let restored = restore_letter(&record, EventSchema::EventGrid)
            .unwrap()
            .event;
        assert_eq!(
            (restored.json(), restored.schema()),
            (&envelope.wrap_event(&event, &[]), EventSchema::EventGrid)
        );
        let long = EventEnvelope {
            subject: "x".repeat(MAPPED_VALUE_BYTES_MAX + 1).into(),
            ..envelope
        };
        let record = dead_letter_record(
            &letter(EventSchema::Custom, None),
            &entry(Some(long)),
            &event,
        );
        assert!(matches!(
            restore_letter(&record, EventSchema::Custom),
            Err(RestoreError::Envelope)
        ));
    }

    #[test]
    fn logged_event_comes_back_in_the_schema_it_was_sent_in() {
        let event = Bytes::from_static(CLOUD_EVENT.as_bytes());
        let restored = restore_logged(
            event.clone(),
            EventSchema::CloudEvents,
            EventSchema::EventGrid,
        )
        .unwrap();
        assert_eq!(
            (restored.json(), restored.schema()),
            (&event, EventSchema::CloudEvents)
        );
        let text: Box<str> = "2020-08-13T18:11:29Z".into();
        let [id, event_time, event_type, data_version, topic, subject] =
            [(); 6].map(|()| text.clone());
        let envelope = EventEnvelope {
            id,
            event_time,
            event_type,
            data_version,
            topic,
            subject,
        };
        let logged = envelope.wrap_event(b"{ }", &[]);
        let custom =
            restore_logged(logged.clone(), EventSchema::Custom, EventSchema::Custom).unwrap();
        assert_eq!(
            (custom.json(), custom.schema()),
            (&Bytes::from_static(b"{ }"), EventSchema::Custom)
        );
        let grid =
            restore_logged(logged.clone(), EventSchema::Custom, EventSchema::EventGrid).unwrap();
        assert_eq!(
            (grid.json(), grid.schema()),
            (&logged, EventSchema::EventGrid)
        );
        assert!(restore_logged(event, EventSchema::Custom, EventSchema::Custom).is_err());
    }

    /// The sample of Event Grid's page on dead letters, whose members stand among the event's own.
    /// <https://learn.microsoft.com/azure/event-grid/manage-event-delivery>
    #[test]
    fn azure_s_own_dead_letter_is_an_event_again() {
        let sample = r#"[
  {
    "id": "93902694-901e-008f-6f95-7153a806873c",
    "eventTime": "2020-08-13T17:18:13.1647262Z",
    "eventType": "Microsoft.Storage.BlobCreated",
    "dataVersion": "",
    "metadataVersion": "1",
    "topic": "/subscriptions/000000000-0000-0000-0000-00000000000000/resourceGroups/rgwithoutpolicy",
    "subject": "/blobServices/default/containers/testcontainer/blobs/readme.txt",
    "deadLetterReason": "MaxDeliveryAttemptsExceeded",
    "deliveryAttempts": 1,
    "lastDeliveryOutcome": "NotFound",
    "publishTime": "2020-08-13T17:18:14.0265758Z",
    "lastDeliveryAttemptTime": "2020-08-13T17:18:14.0465788Z",
    "data": { "api": "PutBlob" }
  }
]"#;
        let restored = restore_all(&Bytes::from(sample), EventSchema::EventGrid)
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!(restored.event.event_type(), "Microsoft.Storage.BlobCreated");
        let text = std::str::from_utf8(restored.event.json()).unwrap();
        assert!(
            !text.contains("eliver") && text.ends_with(r#","data":{ "api": "PutBlob" }}"#),
            "{text}"
        );
    }

    #[test]
    fn text_that_is_no_dead_letter_says_why() {
        let check = |record: &str, expected: &str| {
            let restored =
                restore_letter(&Bytes::from(record.to_owned()), EventSchema::CloudEvents);
            let error = restored.map(|_| ()).unwrap_err();
            let cause = error
                .source()
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            assert_eq!(format!("{error}{cause}"), expected, "{record}");
        };
        let none = "not a dead letter: there is no deadLetterReason in it";
        check("{}", none);
        check("[]", none);
        check(r#"{"deadletterreason":7}"#, none);
        check(
            r#"{"id":"1","deadletterreason":"EndpointGone"}"#,
            "not an event of its schema: specversion: expected \"1.0\"",
        );
        let large = CLOUD_EVENT.replace("1.00", &"7".repeat(RESTORED_EVENT_BYTES_MAX));
        let large = dead_letter_record(
            &letter(EventSchema::CloudEvents, None),
            &entry(None),
            &Bytes::from(large),
        );
        assert!(matches!(
            restore_letter(&large, EventSchema::CloudEvents),
            Err(RestoreError::TooLarge)
        ));
        assert!(restore_all(&Bytes::from_static(b"{}"), EventSchema::CloudEvents).is_err());
        assert_eq!(
            restore_all(&Bytes::from_static(b"[{}, 1]"), EventSchema::Custom)
                .unwrap()
                .len(),
            2
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let bytes = Bytes::from(bytes);
            let _ = (restore_letter(&bytes, EventSchema::Custom).is_ok(), restore_all(&bytes, EventSchema::Custom).is_ok());
        }

        #[test]
        fn recording_and_restoring_changes_nothing(
            extensions in prop::collection::btree_map(
                "x[a-z0-9]{0,4}|deadletterreason|publishtime|lasthttpstatuscode|originalattributes",
                "[ -~é\u{1F600}]{0,8}",
                0..5,
            ),
            space in "[ \t\n]{0,2}",
            status in prop::option::of(200_u16..600),
        ) {
            let json = |text: &str| serde_json::Value::from(text).to_string();
            let mut text = format!(r#"{{{space}"specversion":"1.0","id":"1","source":"/s","type":"t""#);
            for (name, value) in &extensions {
                text.extend([",", &space, "\"", name, "\"", &space, ": ", &json(value)]);
            }
            check(EventSchema::CloudEvents, status, &format!("{text}{space}}}"));
        }
    }
}
