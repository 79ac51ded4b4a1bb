//! Events on their way in, between schemas, and out.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use posthaste_core::delivery_log::{log_text, names_to_keep};
use posthaste_core::events::output::{binary_request, request_body};
use posthaste_core::events::test_event::check_given_event;
use posthaste_core::events::{
    Event, GeneratedValues, PublishRequest, TopicInput, attribute_time, convert_event,
    parse_request, put_back, set_aside, with_members, without_members,
};
use posthaste_core::model::filter::FilterSet;
use posthaste_core::model::signature::header_value;
use posthaste_core::model::{
    EventSchema, Hops, InputMapping, MappedField, SigningSecret, SourceField, Timestamp, TopicName,
    fits_into_a_message, webhook_id_of,
};

use crate::hold::{debug, word};
use crate::target::Target;

/// A moment for what needs one: 2026-11-21.
const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// Requests as text: a line for each header, an empty line, and the body.
const REQUESTS: &[&str] = &["tests/parsers/corpus/events/"];

/// The events of the samples.
const SAMPLES: &[&str] = &[
    "samples/cloudevents/order-paid",
    "samples/eventgrid/",
    "samples/custom/parcel",
    "tests/parsers/corpus/event.lines",
];

/// The targets.
pub(super) const TARGETS: &[Target] = &[
    target("publish-cloud-events", REQUESTS, |bytes| {
        published(bytes, TopicInput::CloudEvents)
    }),
    target("publish-event-grid", REQUESTS, |bytes| {
        published(bytes, TopicInput::EventGrid)
    }),
    target("publish-custom", REQUESTS, |bytes| {
        let at = NOW;
        let seed = [7; 16];
        let made = GeneratedValues { at, seed };
        let mapping = mapping();
        published(bytes, TopicInput::Custom { mapping, made })
    }),
    target("event", SAMPLES, event),
    target("event-members", SAMPLES, members),
];

const fn target(
    name: &'static str,
    corpus: &'static [&'static str],
    check: fn(&[u8]) -> String,
) -> Target {
    let weight = 3;
    Target {
        name,
        corpus,
        check,
        weight,
    }
}

/// The members of custom events that have what posthaste needs.
fn mapping() -> &'static InputMapping {
    static MAPPING: OnceLock<InputMapping> = OnceLock::new();
    MAPPING.get_or_init(|| {
        let source = |text| SourceField::parse(text).ok();
        let mapped = |text, default: &str| MappedField {
            source: source(text),
            default: Some(default.into()),
        };
        InputMapping {
            id: None,
            topic: None,
            event_time: source("scannedAt"),
            event_type: mapped("type", "scan"),
            subject: mapped("order.id", "none"),
            data_version: MappedField::default(),
        }
    })
}

/// The headers and the body of a request that is written as text. Lines that are no headers are
/// left out.
pub(super) fn request(bytes: &[u8]) -> (HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    (headers, Bytes::copy_from_slice(rest))
}

/// An accepted event can be kept, filtered, converted, logged and sent.
fn published(bytes: &[u8], input: TopicInput<'_>) -> String {
    let (headers, body) = request(bytes);
    let topic = TopicName::parse("orders").expect("a name");
    let hops = Hops::from_request(&headers);
    let request = PublishRequest {
        topic: &topic,
        input,
        headers: &headers,
        body: &body,
    };
    match parse_request(&request) {
        Ok(events) => {
            events.iter().for_each(holds);
            assert_eq!(
                FilterSet::from_filters([])
                    .match_events(&events)
                    .passing_filters()
                    .len(),
                0
            );
            format!("{} {hops:?}", events.len().min(3))
        }
        Err(error) => word(&error),
    }
}

fn holds(event: &Event) {
    let kept = match event.envelope() {
        Some(envelope) => Event::from_envelope(event.json().clone(), envelope.clone()),
        None => Event::parse(event.schema(), event.json().clone()).expect("it was accepted"),
    };
    assert_eq!(kept.json(), event.json());
    assert_eq!(
        (kept.id(), kept.event_type(), kept.subject(), kept.source()),
        (
            event.id(),
            event.event_type(),
            event.subject(),
            event.source()
        ),
    );
    let _ = (
        fits_into_a_message(event.json()),
        names_to_keep(event.schema(), event.json()),
    );
    let logged = log_text(event.id());
    assert_eq!(log_text(&logged), logged, "{:?}", event.id());
    for output in [
        EventSchema::CloudEvents,
        EventSchema::EventGrid,
        EventSchema::Custom,
    ] {
        if !event.schema().converts_to(output) {
            continue;
        }
        let text = convert_event(event, output).expect("it was accepted");
        sent(&text, output);
        if event.envelope().is_none() {
            let again = Event::parse(output, text).expect("it was converted");
            assert_eq!(again.id(), event.id());
            assert_eq!(again.event_type(), event.event_type());
        }
    }
}

/// A kept text goes out, in a body that is JSON, or in headers.
fn sent(text: &Bytes, schema: EventSchema) {
    let body = request_body(&[text.clone(), text.clone()], schema, true);
    let body = body.slices.concat();
    let items: Vec<serde::de::IgnoredAny> = serde_json::from_slice(&body).expect("a JSON array");
    assert_eq!(items.len(), 2);
    if schema == EventSchema::CloudEvents
        && let Some(binary) = binary_request(text).expect("it was accepted")
    {
        assert!(!binary.body.is_empty());
    }
    let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let signed = header_value(
        &[secret],
        &webhook_id_of("key"),
        NOW,
        std::slice::from_ref(text),
    );
    assert!(HeaderValue::try_from(signed).is_ok());
}

/// A text that the log or a dead letter keeps, which a user may have changed.
fn event(bytes: &[u8]) -> String {
    let bytes = Bytes::copy_from_slice(bytes);
    let mut words = Vec::new();
    for schema in [
        EventSchema::CloudEvents,
        EventSchema::EventGrid,
        EventSchema::Custom,
    ] {
        let _ = check_given_event(schema, &bytes);
        words.push(match Event::parse(schema, bytes.clone()) {
            Ok(event) => {
                let again = Event::parse(schema, event.json().clone());
                assert_eq!(debug(&again.ok()), debug(&Some(&event)));
                for output in [
                    EventSchema::CloudEvents,
                    EventSchema::EventGrid,
                    EventSchema::Custom,
                ] {
                    let _ = convert_event(&event, output);
                }
                "read".to_owned()
            }
            Err(error) => word(&error),
        });
    }
    let _ = binary_request(&bytes);
    let _ = attribute_time(&bytes, "expirytime");
    words.join(",")
}

/// Members that are added and taken out again leave the text as it was.
fn members(bytes: &[u8]) -> String {
    let event = Bytes::copy_from_slice(bytes);
    let Ok(read) = Event::parse(EventSchema::CloudEvents, event.clone()) else {
        return "no event".to_owned();
    };
    // White space around an event is no part of it: an accepted one has none.
    let text = &read.json().slice_ref(read.json().trim_ascii());
    let aside = set_aside(text, &["subject", "dataschema"]);
    let own = [
        ("posthastereason", "\"x\"".to_owned()),
        ("posthastenumber", "1".to_owned()),
    ];
    let more = with_members(text, &own);
    assert!(Event::parse(EventSchema::CloudEvents, more.clone()).is_ok());
    let names = own.each_ref().map(|(name, _)| *name);
    let less = without_members(&more, names[0], &names);
    assert_eq!(less, text, "{more:?}");
    let Some(aside) = aside else {
        return "nothing set aside".to_owned();
    };
    let back = put_back(&aside.event, &aside.members);
    assert_eq!(back.as_ref(), Some(text), "{aside:?}");
    "set aside".to_owned()
}
