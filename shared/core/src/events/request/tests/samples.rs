//! The sample events of the repository, published.

use super::*;
use crate::model::{MappedField, SourceField};

/// The text without its last line feed, as it lies in the repository.
fn sample(text: &str) -> &str {
    text.trim_ascii()
}

#[test]
fn the_sample_order_is_kept() {
    let text = sample(include_str!(
        "../../../../../../samples/cloudevents/order-paid.json"
    ));
    let event = &parse(
        EventSchema::CloudEvents,
        &[("content-type", STRUCTURED)],
        text.as_bytes(),
    )
    .unwrap()[0];
    assert_eq!(event.json(), text);
    assert_eq!(event.id(), "5f1c9f5e-7c1b-4c0e-9a53-0d7d2f1b6c11");
    assert_eq!(
        (event.event_type(), event.subject()),
        ("com.example.order.paid", Some("orders/10482"))
    );
    assert_eq!(event.source(), Some("/shops/berlin/checkout"));
    assert_eq!(
        event.time(),
        Some(Timestamp::from_millis(1_795_256_130_125))
    );
    assert_eq!(
        event.traceparent(),
        Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    );
}

#[test]
fn the_sample_batch_is_kept() {
    let text = include_str!("../../../../../../samples/cloudevents/order-batch.json");
    let events = parse(
        EventSchema::CloudEvents,
        &[("content-type", BATCH)],
        text.as_bytes(),
    )
    .unwrap();
    let types: Vec<&str> = events.iter().map(Event::event_type).collect();
    assert_eq!(
        types,
        [
            "com.example.order.paid",
            "com.example.order.shipped",
            "com.example.order.receipt"
        ]
    );
    assert_eq!(
        events[1].expirytime(),
        Some(Timestamp::from_millis(2_110_875_365_000))
    );
    assert!(events.iter().all(|event| {
        text.as_bytes()
            .windows(event.json().len())
            .any(|part| part == event.json())
    }));
}

#[test]
fn the_sample_push_of_github_is_kept() {
    let text = sample(include_str!(
        "../../../../../../samples/cloudevents/github-push.json"
    ));
    let event = &parse(
        EventSchema::CloudEvents,
        &[("content-type", "application/json")],
        text.as_bytes(),
    )
    .unwrap()[0];
    assert_eq!(event.json(), text);
    assert_eq!(
        (event.event_type(), event.subject()),
        ("com.github.push", Some("refs/heads/main"))
    );
}

#[test]
fn the_sample_blob_of_event_grid_is_kept() {
    let text = include_str!("../../../../../../samples/eventgrid/blob-created.json");
    let event = &parse(
        EventSchema::EventGrid,
        &[("content-type", "application/json")],
        text.as_bytes(),
    )
    .unwrap()[0];
    assert_eq!(
        event.json(),
        sample(text).trim_matches(['[', ']']).trim_ascii()
    );
    assert_eq!(event.event_type(), "Microsoft.Storage.BlobCreated");
    assert_eq!(
        event.time(),
        Some(Timestamp::from_millis(1_597_339_093_164))
    );
}

#[test]
fn the_sample_parcels_are_mapped() {
    let json = include_str!("../../../../../../samples/custom/parcel-scanned.json");
    let field = |text| SourceField::parse(text).ok();
    let mapping = InputMapping {
        id: field("scan.no"),
        topic: field("depot"),
        event_time: field("scan.at"),
        event_type: MappedField {
            source: field("scan.kind"),
            default: None,
        },
        subject: MappedField {
            source: field("parcel"),
            default: None,
        },
        data_version: MappedField {
            source: None,
            default: Some("1.0".into()),
        },
    };
    let headers = HeaderMap::new();
    let topic = TopicName::parse("parcels").unwrap();
    let body = Bytes::from(json);
    let input = TopicInput::Custom {
        mapping: &mapping,
        made: GeneratedValues {
            at: Timestamp::EPOCH,
            seed: [0; 16],
        },
    };
    let events = parse_request(&PublishRequest {
        topic: &topic,
        input,
        headers: &headers,
        body: &body,
    })
    .unwrap();
    let [arrived, loaded] = events.try_into().unwrap();
    assert_eq!(
        (arrived.id(), arrived.event_type()),
        ("48211907735102938475", "parcel.arrived")
    );
    assert_eq!(
        (arrived.subject(), arrived.time()),
        (
            Some("JD014600003RU"),
            Some(Timestamp::from_millis(1_795_246_867_218))
        )
    );
    assert_eq!(
        loaded.envelope().map(|envelope| &*envelope.topic),
        Some("/depots/leipzig")
    );
    assert!(json.contains(std::str::from_utf8(loaded.json()).unwrap()));
}
