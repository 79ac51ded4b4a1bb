//! The three dead letters of Event Grid's page on delivery, word for word: every member, its value
//! and its place.
//! <https://learn.microsoft.com/azure/event-grid/delivery-and-retry#delivery-event-formats>
//!
//! Three things are ours. Event Grid also writes the status of the last answer, which the page leaves
//! out. A time of ours is whole milliseconds, so that the last four of the page's seven digits are
//! zeros. And a letter of ours says its delivery's key and the `webhook-id`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::dead_letter_record;
use super::tests::{entry, letter};
use crate::events::{Event, convert_event};
use crate::model::{EventEnvelope, EventSchema, Timestamp};

const EVENT_GRID: &str = r#"{
    "id": "93902694-901e-008f-6f95-7153a806873c",
    "eventTime": "2020-08-13T17:18:13.1647262Z",
    "eventType": "Microsoft.Storage.BlobCreated",
    "dataVersion": "",
    "metadataVersion": "1",
    "topic": "/subscriptions/0000000000-0000-0000-0000-000000000000000/resourceGroups/rgwithoutpolicy/providers/Microsoft.Storage/storageAccounts/myegteststgfoo",
    "subject": "/blobServices/default/containers/deadletter/blobs/myBlobFile.txt",    
    "data": {
        "api": "PutBlob",
        "clientRequestId": "c0d879ad-88c8-4bbe-8774-d65888dc2038",
        "requestId": "93902694-901e-008f-6f95-7153a8000000",
        "eTag": "0x8D83FACDC0C3402",
        "contentType": "text/plain",
        "contentLength": 0,
        "blobType": "BlockBlob",
        "url": "https://myegteststgfoo.blob.core.windows.net/deadletter/myBlobFile.txt",
        "sequencer": "00000000000000000000000000015508000000000005101c",
        "storageDiagnostics": { "batchId": "cfb32f79-3006-0010-0095-711faa000000" }
    },

    "deadLetterReason": "MaxDeliveryAttemptsExceeded",
    "deliveryAttempts": 1,
    "lastDeliveryOutcome": "NotFound",
    "publishTime": "2020-08-13T17:18:14.0265758Z",
    "lastDeliveryAttemptTime": "2020-08-13T17:18:14.0465788Z" 
}"#;

/// The page's CloudEvents letter. The last comma is the page's fault, and so is the missing
/// `specversion`, without which it is no CloudEvent.
const CLOUD_EVENTS: &str = r#"{
    "id": "caee971c-3ca0-4254-8f99-1395b394588e",
    "source": "mysource",
    "dataversion": "1.0",
    "subject": "mySubject",
    "type": "fooEventType",
    "datacontenttype": "application/json",
    "data": {
        "prop1": "value1",
        "prop2": 5
    },

    "deadletterreason": "MaxDeliveryAttemptsExceeded",
    "deliveryattempts": 1,
    "lastdeliveryoutcome": "NotFound",
    "publishtime": "2020-08-13T21:21:36.4018726Z",
}"#;

const CUSTOM: &str = r#"{
    "id": "8bc07e6f-0885-4729-90e4-7c3f052bd754",
    "eventTime": "2020-08-13T18:11:29.4121391Z",
    "eventType": "myEventType",
    "dataVersion": "1.0",
    "metadataVersion": "1",
    "topic": "/subscriptions/00000000000-0000-0000-0000-000000000000000/resourceGroups/rgwithoutpolicy/providers/Microsoft.EventGrid/topics/myCustomSchemaTopic",
    "subject": "subjectDefault",
  
    "deadLetterReason": "MaxDeliveryAttemptsExceeded",
    "deliveryAttempts": 1,
    "lastDeliveryOutcome": "NotFound",
    "publishTime": "2020-08-13T18:11:29.4121391Z",
    "lastDeliveryAttemptTime": "2020-08-13T18:11:29.4277644Z",
  
    "data": {
        "prop1": "my property",
        "prop2": 5,
        "myEventType": "fooEventType"
    }
}"#;

const CUSTOM_EVENT: &str = r#"{
    "prop1": "my property",
    "prop2": 5,
    "myEventType": "fooEventType"
}"#;

fn parse_object(json: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(json).unwrap()
}

/// The page's letter as we would have to write it: its times in whole milliseconds, and besides its
/// own the members `more`.
fn expected_letter(page: &str, more: &[(&str, Value)]) -> Map<String, Value> {
    let mut members = parse_object(page.as_bytes());
    for (name, value) in &mut members {
        let is_ours = name.starts_with("last") || name.starts_with("publish");
        if let Some(text) = value.as_str().filter(|text| is_ours && text.ends_with('Z')) {
            *value = format!("{}0000Z", &text[..text.len() - 5]).into();
        }
    }
    members.extend(
        more.iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone())),
    );
    members
}

/// Checks that the page's members stand in the page's order.
fn assert_in_order(page: &str, record: &Bytes) {
    let text = String::from_utf8(record.to_vec()).unwrap();
    let mut names: Vec<String> = parse_object(page.as_bytes())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    names.sort_by_key(|name| find_member(page, name));
    assert!(
        names.is_sorted_by_key(|name| find_member(&text, name)),
        "{text}"
    );
}

fn find_member(text: &str, name: &str) -> usize {
    text.find(&format!("\"{name}\":")).unwrap()
}

fn parse_time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

#[test]
fn the_page_s_event_grid_letter_is_written_as_it_stands_there() {
    let (event, _) = EVENT_GRID
        .split_once(",\n\n    \"deadLetterReason\"")
        .unwrap();
    let letter = letter(EventSchema::EventGrid, Some(404));
    let record = dead_letter_record(&letter, &entry(None), &Bytes::from(format!("{event}\n}}")));
    assert_eq!(
        parse_object(&record),
        expected_letter(
            EVENT_GRID,
            &[
                ("lastHttpStatusCode", 404.into()),
                ("deliveryKey", "k".into()),
                ("webhookId", "msg_k".into()),
            ]
        )
    );
    assert_in_order(EVENT_GRID, &record);
}

#[test]
fn the_page_s_cloud_events_letter_is_written_as_it_stands_there() {
    let page = CLOUD_EVENTS.replace("Z\",\n}", "Z\"\n}");
    let (event, _) = page.split_once(",\n\n    \"deadletterreason\"").unwrap();
    let mut letter = letter(EventSchema::CloudEvents, Some(404));
    letter.delivery.published_at = parse_time("2020-08-13T21:21:36.4018726Z");
    let event = Bytes::from(format!("{event},\"specversion\":\"1.0\"}}"));
    assert!(Event::parse(EventSchema::CloudEvents, event.clone()).is_ok());
    let record = dead_letter_record(&letter, &entry(None), &event);
    let more = [
        ("specversion", "1.0".into()),
        ("lasthttpstatuscode", 404.into()),
        ("deliverykey", "k".into()),
        ("webhookid", "msg_k".into()),
        (
            "lastdeliveryattempttime",
            "2020-08-13T17:18:14.0460000Z".into(),
        ),
    ];
    assert_eq!(parse_object(&record), expected_letter(&page, &more));
    assert_in_order(&page, &record);
}

/// The envelope that a mapping with constants for type, subject and version makes, except for the
/// topic, which is Azure's.
fn page_envelope() -> EventEnvelope {
    let page = parse_object(CUSTOM.as_bytes());
    let [id, event_time, event_type, data_version, topic, subject] = [
        "id",
        "eventTime",
        "eventType",
        "dataVersion",
        "topic",
        "subject",
    ]
    .map(|name| page[name].as_str().unwrap().into());
    EventEnvelope {
        id,
        event_time,
        event_type,
        data_version,
        topic,
        subject,
    }
}

#[test]
fn the_page_s_custom_letter_is_written_as_it_stands_there() {
    let mut letter = letter(EventSchema::Custom, Some(404));
    letter.delivery.published_at = parse_time("2020-08-13T18:11:29.4121391Z");
    letter.delivery.last.as_mut().unwrap().at = parse_time("2020-08-13T18:11:29.4277644Z");
    let record = dead_letter_record(
        &letter,
        &entry(Some(page_envelope())),
        &Bytes::from_static(CUSTOM_EVENT.as_bytes()),
    );
    assert_eq!(
        parse_object(&record),
        expected_letter(
            CUSTOM,
            &[
                ("lastHttpStatusCode", 404.into()),
                ("deliveryKey", "k".into()),
                ("webhookId", "msg_k".into()),
            ]
        )
    );
    assert_in_order(CUSTOM, &record);
}

#[test]
fn custom_event_of_the_page_becomes_its_form_of_a_cloud_event() {
    let event = Event::from_envelope(
        Bytes::from_static(CUSTOM_EVENT.as_bytes()),
        Arc::new(page_envelope()),
    );
    let text = convert_event(&event, EventSchema::CloudEvents).unwrap();
    let page = CLOUD_EVENTS.replace("Z\",\n}", "Z\"\n}");
    let (form, _) = page.split_once(",\n\n    \"deadletterreason\"").unwrap();
    assert_in_order(&format!("{form}\n}}"), &text);
}
