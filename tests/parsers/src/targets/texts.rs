//! Texts in headers, queries, settings, options and keys.

use posthaste_core::api::events::{EncodedId, IdInUrl};
use posthaste_core::api::{AllowedRate, IsoDuration, IsoTimestamp};
use posthaste_core::attempt::retry::parse_retry_after;
use posthaste_core::circuit::DeliveryTarget as LinkTarget;
use posthaste_core::delivery_log::{
    FileKey, LogDay, RecordCursor, StatusRange, log_text, time_in_id,
};
use posthaste_core::model::filter::{DecimalNumber, FilterKey};
use posthaste_core::model::json_pointer::decode_string;
use posthaste_core::model::pasted::{read_admin_key, read_key, read_pasted};
use posthaste_core::model::size::{DiskShare, parse_size};
use posthaste_core::model::time::{format_duration, parse_duration};
use posthaste_core::model::url_text::parse_written;
use posthaste_core::model::visible::{escaped_json, visible_line, visible_text};
use posthaste_core::model::{
    AddressPolicy, DeliveryHeader, EndpointUrl, EventSchema, Identity, JsonPointer, KeyDigest,
    PayloadDigest, PublishUrls, SasToken, Secret, SigningSecret, SourceField, SubscriptionName,
    Timestamp, TopicName, WrittenTime, WrittenTimeError, is_key_text, is_object_key, origin,
};
use posthaste_core::release::LogPosition;
use posthaste_core::stored::dead_letter::dead_letter_owner;
use posthaste_core::stored::layout::{payload_kept_until, temporary_topic, validating_topic};
use posthaste_core::stored::parked::{
    carried_of_key, held_expiry_minute, held_folder, parked_due_minute, parked_folder,
    parked_instead,
};
use posthaste_core::stored::{EventReference, IdempotencyKey};
use posthaste_http::parse_dns_server;

use crate::hold::{Nothing, debug, only_text, text, word};
use crate::target::Target;

/// A moment for what needs one: 2026-11-21.
const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// A text that is read, with lines of known ones.
macro_rules! texts {
    ($($name:literal: $check:expr;)*) => {
        &[$(Target {
            name: $name,
            corpus: &[concat!("tests/parsers/corpus/texts/", $name, ".lines")],
            check: $check,
            weight: 1,
        }),*]
    };
}

/// The targets.
pub(super) const TARGETS: &[Target] = texts! {
    "timestamp": |bytes| text(bytes, Timestamp::parse, ToString::to_string);
    // Times and lengths are written in milliseconds.
    "duration": |bytes| text(
        bytes,
        |text| parse_duration(text).map(format_duration),
        String::clone
    );
    "written-time": |bytes| text(
        bytes,
        |text| {
            let time = WrittenTime::parse(text)?;
            let _ = time.resolve_at(NOW);
            Ok::<_, WrittenTimeError>(time.to_string())
        },
        String::clone
    );
    "iso-duration": |bytes| text(
        bytes,
        |text| IsoDuration::try_from(text.to_owned()).map(json),
        String::clone
    );
    "iso-timestamp": |bytes| text(
        bytes,
        |text| IsoTimestamp::try_from(text.to_owned()).map(json),
        String::clone
    );
    "size": |bytes| only_text(bytes, |text| {
        let _ = DiskShare::parse(text, 1).map(|share| share.bytes_of_disk(u64::MAX));
        parse_size(text).ok_or(Nothing)
    });
    "topic-name": |bytes| text(bytes, TopicName::parse, ToString::to_string);
    "subscription-name": |bytes| text(bytes, SubscriptionName::parse, ToString::to_string);
    "url": |bytes| text(bytes, parse_written, ToString::to_string);
    "endpoint-url": endpoint_url;
    "dns-server": |bytes| text(bytes, parse_dns_server, ToString::to_string);
    "origin": |bytes| only_text(bytes, origin::parse);
    "pasted": |bytes| only_text(bytes, |text| {
        let _ = (read_key(text).map(str::len), read_admin_key(text).map(str::len));
        read_pasted(text).map(str::len)
    });
    "key-digest": |bytes| only_text(bytes, |text| KeyDigest::parse(text).ok_or(Nothing));
    "payload-digest": |bytes| text(
        bytes,
        |text| PayloadDigest::parse(text).ok_or(Nothing),
        ToString::to_string
    );
    "identity": |bytes| text(bytes, |text| Identity::parse(text).ok_or(Nothing), ToString::to_string);
    "json-pointer": |bytes| only_text(bytes, |text| {
        let pointer = JsonPointer::parse(text)?;
        let _ = pointer.find(br#"{"a":[{"b":1},2],"":{"/":3},"~":4}"#);
        let _ = pointer.find(text.as_bytes());
        Ok::<_, posthaste_core::model::JsonPointerError>(())
    });
    "json-string": |bytes| only_text(bytes, |text| decode_string(text).map(|text| text.len()).ok_or(Nothing));
    "source-field": |bytes| text(bytes, SourceField::parse, |field| field.as_str().to_owned());
    "sas-token": sas_token;
    "signing-secret": |bytes| text(bytes, SigningSecret::parse, |secret| {
        let _ = secret.public_key();
        secret.text().expose().to_owned()
    });
    "delivery-header": |bytes| only_text(bytes, |text| {
        let (name, value) = text.split_once('\t').unwrap_or((text, ""));
        let _ = DeliveryHeader::from_event(name, value);
        DeliveryHeader::with_value(name, value, false)
    });
    "filter-key": |bytes| only_text(bytes, |text| {
        let _ = FilterKey::parse(text, EventSchema::EventGrid);
        let _ = FilterKey::parse(text, EventSchema::Custom);
        FilterKey::parse(text, EventSchema::CloudEvents)
    });
    "filter-number": |bytes| only_text(bytes, |text| DecimalNumber::parse(text).ok_or(Nothing));
    "retry-after": |bytes| only_text(bytes, |text| parse_retry_after(text, NOW).ok_or(Nothing));
    "allowed-rate": |bytes| only_text(bytes, AllowedRate::parse);
    "link-target": |bytes| text(
        bytes,
        // Its names are written in lower case.
        |text| LinkTarget::parse(text).map(|target| target.to_string()).ok_or(Nothing),
        String::clone
    );
    "status-range": |bytes| only_text(bytes, |text| StatusRange::parse(text).ok_or(Nothing));
    "log-cursor": |bytes| text(bytes, |text| RecordCursor::parse(text).ok_or(Nothing), ToString::to_string);
    "log-file-key": |bytes| text(
        bytes,
        |text| FileKey::parse(text).ok_or(Nothing),
        FileKey::render
    );
    "log-day-key": |bytes| text(bytes, |text| LogDay::parse(text).ok_or(Nothing), |day| day.summary_key());
    "log-place": |bytes| text(bytes, |text| LogPosition::parse(text).ok_or(Nothing), LogPosition::to_text);
    "idempotency-key": |bytes| IdempotencyKey::parse(bytes)
        .map_or_else(|error| word(&error), |_| "read".to_owned());
    "event-id": event_id;
    "object-key": object_key;
    "visible": shown_text;
};

/// The text of a value whose JSON is one.
fn json(value: impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).expect("a text");
    json.as_str().expect("a text").to_owned()
}

/// A URL that was read is one that is read as itself, with its link.
fn endpoint_url(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "no text".to_owned();
    };
    let _ = EndpointUrl::is_same(text, "https://a.example/");
    match EndpointUrl::parse(text) {
        Ok(url) => {
            let again = EndpointUrl::parse(url.as_str());
            assert_eq!(again.as_ref().ok(), Some(&url), "{text}");
            let link = url.link();
            let target = LinkTarget::parse(&link.to_string());
            assert_eq!(target.as_ref().map(LinkTarget::link), Some(&link), "{text}");
            let policy = AddressPolicy::default();
            let _ = PublishUrls::default().refuse_own_url(&url);
            format!(
                "{:?} {:?}",
                policy.check_link(&link),
                url.has_access_token()
            )
        }
        Err(error) => {
            let _ = EndpointUrl::parse_written(text);
            word(&error)
        }
    }
}

/// A token that nobody signed opens nothing.
fn sas_token(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "no text".to_owned();
    };
    let Some(token) = SasToken::parse(text) else {
        return "none".to_owned();
    };
    let key = Secret::new("a-key-that-signed-nothing");
    let topic = TopicName::parse("orders").expect("a name");
    assert!(!token.is_valid_for(&key, &topic, NOW), "{text}");
    assert!(!token.has_expired(&key, &topic, NOW), "{text}");
    "read".to_owned()
}

/// The id of an event comes back out of the URL that it was put into, as the log keeps it.
fn event_id(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "no text".to_owned();
    };
    let _ = (time_in_id(text), EventReference::from_text(text));
    let encoded = IdInUrl::always_encoded(text);
    let (_, value) = encoded
        .query_parameter()
        .expect("an encoded id is a parameter");
    let again = EncodedId::try_from(value.to_owned()).map(|id| id.0);
    assert_eq!(again.ok().as_deref(), Some(&*log_text(text)));
    let as_it_is = EncodedId::try_from(text.to_owned()).is_ok();
    format!(
        "{:?} {as_it_is}",
        IdInUrl::for_id(text).query_parameter().is_some()
    )
}

/// A name of an object, which may be another program's.
fn object_key(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return "no text".to_owned();
    };
    if let Some(other) = parked_instead(text, 30_000_000, NOW) {
        assert_eq!(
            parked_due_minute(&other),
            Some(30_000_000),
            "{text}: {other}"
        );
    }
    let found = (
        carried_of_key(text).is_some(),
        parked_folder(text).is_some(),
        held_folder(text).is_some(),
        held_expiry_minute(text).is_some(),
        dead_letter_owner(text).is_some(),
        payload_kept_until(text).is_some(),
        temporary_topic(text).is_some() || validating_topic(text).is_some(),
    );
    debug(&(found, is_object_key(text), is_key_text(text)))
}

/// A shown text has nothing hidden in it, and is shown as itself.
fn shown_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = visible_line(&text);
    assert!(!shown.chars().any(char::is_control), "{text:?}");
    let _ = (visible_text(&text).len(), escaped_json(&text).len());
    debug(&(shown == text))
}
