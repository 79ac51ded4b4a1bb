//! One attempt as a request: its headers, its body and its signature.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IntoHeaderName, ORIGIN,
    USER_AGENT,
};
use sha2::{Digest, Sha256};

use crate::events::output::{OutputBody, OutputError, binary_request, request_body};
use crate::model::{
    ContentMode, EventSchema, Hops, SenderHeaders, Subscription, Timestamp, WEBHOOK_ID_PREFIX,
    delivery_header, hex, signature, webhook_id_of,
};

/// Room for the twelve headers of a signed request. The map grows in doublings: with room for
/// thirteen it takes twice the memory.
const HEADERS_EXPECTED: usize = 12;

/// The names that every request has, parsed when this is compiled.
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
pub(crate) const WEBHOOK_REQUEST_ORIGIN: HeaderName =
    HeaderName::from_static("webhook-request-origin");

/// The counts of all but few attempts and hops.
const COMMON_COUNTS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// An event on its way into a request.
#[derive(Debug, Clone)]
pub struct OutgoingEvent<'a> {
    /// The key of the event towards this subscription, the same over all retries.
    pub key: &'a str,
    /// The `webhook-id` that the event keeps; `None` where its key makes one.
    pub webhook_id: Option<&'a str>,
    /// The event's JSON text.
    pub json: Bytes,
    /// The event's trace context.
    pub traceparent: Option<&'a str>,
}

impl OutgoingEvent<'_> {
    /// The key of the event's first delivery: an id that it keeps is made of that.
    fn first_key(&self) -> &str {
        let kept = self.webhook_id;
        kept.map_or(self.key, |id| {
            id.strip_prefix(WEBHOOK_ID_PREFIX).unwrap_or(id)
        })
    }
}

/// The data that all requests of one attempt share.
#[derive(Debug, Clone, Copy)]
pub struct AttemptContext<'a> {
    /// The subscription.
    pub subscription: &'a Subscription,
    /// The schema the events were accepted in, which is the one they are sent in.
    pub schema: EventSchema,
    /// The number of attempts before this one.
    pub attempts_before: u16,
    /// Whether the events are sent again.
    pub replayed: bool,
    /// The number of deliveries of posthaste that the events came through before they were
    /// accepted: the most of any.
    pub hops: Hops,
    /// The time of the attempt.
    pub at: Timestamp,
    /// The sender, for `WebHook-Request-Origin` and `Origin`: a name without a scheme.
    pub origin: &'a HeaderValue,
    /// The headers that say who sends, where the topic does not have its own.
    pub sender_headers: &'a SenderHeaders,
}

/// The headers and the body of a request that carries `events`, at least one.
///
/// Fails only if an event cannot be sent in binary mode.
pub fn build_request(
    context: AttemptContext<'_>,
    events: &[OutgoingEvent<'_>],
) -> Result<(HeaderMap, Vec<Bytes>), OutputError> {
    let subscription = context.subscription;
    let (mut headers, body) = match (subscription.content_mode, events) {
        (ContentMode::Binary, [event]) if context.schema == EventSchema::CloudEvents => {
            match binary_request(&event.json)? {
                Some(binary) => (binary.headers, vec![binary.body]),
                None => structured_request(context, events),
            }
        }
        _ => structured_request(context, events),
    };
    let texts: Vec<&[u8]> = events.iter().map(|event| &*event.json).collect();
    delivery_header::add_to_request(&mut headers, &subscription.delivery_headers, &texts);
    set_webhook_headers(
        &mut headers,
        subscription,
        &webhook_id(events),
        context.at,
        &body,
    );
    let names = subscription.sender_headers(context.sender_headers);
    set_sender(&mut headers, names, context.origin);
    set_event_grid(
        &mut headers,
        names,
        "Notification",
        subscription,
        context.attempts_before,
    );
    if subscription.endpoint.has_access_token() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    headers.insert(&names.hops, count_value(context.hops.next().get().into()));
    if let Some(name) = &names.attempt {
        headers.insert(name, count_value(context.attempts_before.saturating_add(1)));
    }
    if let Some(name) = names.replayed.as_ref().filter(|_| context.replayed) {
        headers.insert(name, HeaderValue::from_static("true"));
    }
    if let [
        OutgoingEvent {
            traceparent: Some(traceparent),
            ..
        },
    ] = events
    {
        insert_text(&mut headers, "traceparent", traceparent);
    }
    Ok((headers, body))
}

/// The id of a request, the same for the same events on every path: of one event its own, of
/// several a digest of theirs.
pub fn webhook_id(events: &[OutgoingEvent<'_>]) -> String {
    if let [event] = events {
        return event
            .webhook_id
            .map_or_else(|| webhook_id_of(event.key), str::to_owned);
    }
    let mut digest = Sha256::new();
    for event in events {
        digest.update(event.first_key().as_bytes());
        digest.update(b"\n");
    }
    format!("msg_{}", hex::encode(&digest.finalize()[..16]))
}

fn structured_request(
    context: AttemptContext<'_>,
    events: &[OutgoingEvent<'_>],
) -> (HeaderMap, Vec<Bytes>) {
    let texts: Vec<Bytes> = events.iter().map(|event| event.json.clone()).collect();
    let OutputBody {
        content_type,
        slices,
    } = request_body(
        &texts,
        context.schema,
        context.subscription.batching.enabled,
    );
    let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
    headers.insert(CONTENT_TYPE, content_type);
    (headers, slices)
}

/// Sets the headers of Standard Webhooks: the id, the time, and the signatures of the secrets that
/// are live then.
pub(crate) fn set_webhook_headers(
    headers: &mut HeaderMap,
    own: &Subscription,
    id: &str,
    at: Timestamp,
    body: &[Bytes],
) {
    let signatures = signature::header_value(&own.signing, id, at, body);
    insert_text(headers, WEBHOOK_ID, id);
    headers.insert(WEBHOOK_TIMESTAMP, at.as_secs().into());
    if !signatures.is_empty() {
        insert_text(headers, WEBHOOK_SIGNATURE, &signatures);
    }
}

/// Sets the headers that say who sends the request.
pub(crate) fn set_sender(headers: &mut HeaderMap, names: &SenderHeaders, origin: &HeaderValue) {
    if names.has_origin {
        headers.insert(WEBHOOK_REQUEST_ORIGIN, origin.clone());
        headers.insert(ORIGIN, origin.clone());
    }
    if let Some(agent) = &names.agent {
        headers.insert(USER_AGENT, agent.clone());
    }
}

/// Sets Event Grid's headers: the type of the request, its subscription, and the attempts made
/// before it.
pub(crate) fn set_event_grid(
    headers: &mut HeaderMap,
    names: &SenderHeaders,
    kind: &'static str,
    subscription: &Subscription,
    attempts_before: u16,
) {
    if let Some(name) = &names.event_type {
        headers.insert(name, HeaderValue::from_static(kind));
    }
    if let Some(name) = &names.subscription_name {
        insert_text(headers, name, subscription.name.as_str());
    }
    if let Some(name) = &names.delivery_count {
        headers.insert(name, count_value(attempts_before));
    }
}

/// The value of a header that counts. Common counts are shared by all requests: one that is made
/// costs each request three allocations.
fn count_value(count: u16) -> HeaderValue {
    match COMMON_COUNTS.get(usize::from(count)) {
        Some(text) => HeaderValue::from_static(text),
        None => count.into(),
    }
}

/// Sets a header to a text that cannot be refused: a URL, a name, a UUID, a key of ours, base64, or
/// a checked trace context. If it is still refused, the request goes without the header.
pub(crate) fn insert_text(headers: &mut HeaderMap, name: impl IntoHeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{SubscriptionSettings, compile_subscription};
    use crate::model::{DELIVERY_ATTEMPTS_MAX, SubscriptionName, TopicName};
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
    fn subscription(schema: EventSchema, more: serde_json::Value) -> Subscription {
        let mut settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
        });
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let settings: SubscriptionSettings = serde_json::from_value(settings).unwrap();
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("billing").unwrap();
        compile_subscription(&topic, schema, &name, &settings).unwrap()
    }

    fn event(key: &str) -> OutgoingEvent<'_> {
        let json = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"n":1}}"#;
        OutgoingEvent {
            key,
            webhook_id: None,
            json: Bytes::from_static(json.as_bytes()),
            traceparent: None,
        }
    }

    fn wire(subscription: &Subscription, events: &[OutgoingEvent<'_>]) -> String {
        let context = AttemptContext {
            subscription,
            schema: subscription.delivery_schema,
            attempts_before: 2,
            replayed: false,
            hops: Hops::default(),
            at: Timestamp::from_millis(1_614_265_330_123),
            origin: &HeaderValue::from_static("posthaste.example"),
            sender_headers: &SenderHeaders::default(),
        };
        let (headers, body) = build_request(context, events).unwrap();
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        format!(
            "{}\n\n{}",
            lines.join("\n"),
            String::from_utf8(body.concat()).unwrap()
        )
    }

    #[test]
    fn counted_header_says_the_count_in_decimal_digits() {
        for count in (0..=DELIVERY_ATTEMPTS_MAX + 1).chain([u16::MAX]) {
            assert_eq!(count_value(count), count.to_string());
        }
    }

    #[test]
    fn single_structured_cloud_event() {
        insta::assert_snapshot!(wire(
            &subscription(EventSchema::CloudEvents, json!({})),
            &[event("a-0")]
        ));
    }

    #[test]
    fn single_binary_cloud_event() {
        let binary = subscription(EventSchema::CloudEvents, json!({ "contentMode": "binary" }));
        let traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        insta::assert_snapshot!(wire(
            &binary,
            &[OutgoingEvent {
                traceparent,
                ..event("a-0")
            }]
        ));
    }

    #[test]
    fn a_batch_of_cloud_events() {
        let batched = subscription(
            EventSchema::CloudEvents,
            json!({ "batching": { "maxEventsPerBatch": 10 } }),
        );
        insta::assert_snapshot!(wire(&batched, &[event("a-0"), event("a-1")]));
    }

    #[test]
    fn single_event_grid_event_is_an_array() {
        insta::assert_snapshot!(wire(
            &subscription(EventSchema::EventGrid, json!({})),
            &[event("a-0")]
        ));
    }

    #[test]
    fn single_event_with_custom_headers_and_both_signature_kinds() {
        let headers = json!([
            { "name": "X-Tenant", "value": "acme" },
            { "name": "Authorization", "value": "Bearer s3cret", "isSecret": true },
            { "name": "X-Number", "fromEvent": "/data/n" },
            { "name": "X-Type", "fromEvent": "/type" },
            { "name": "X-Nothing", "fromEvent": "/data/nothing" },
        ]);
        let secrets = [
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=",
        ];
        for content_mode in ["structured", "binary"] {
            let signing = json!({ "secrets": secrets });
            let more = json!({ "deliveryHeaders": headers, "signing": signing, "contentMode": content_mode });
            let name = format!("custom_headers_{content_mode}");
            insta::assert_snapshot!(
                name,
                wire(
                    &subscription(EventSchema::CloudEvents, more),
                    &[event("a-0")]
                )
            );
        }
    }

    #[test]
    fn a_secret_header_is_marked_so_that_nobody_logs_it() {
        let headers =
            json!([{ "name": "Authorization", "value": "Bearer s3cret", "isSecret": true }]);
        let subscription = subscription(
            EventSchema::CloudEvents,
            json!({ "deliveryHeaders": headers }),
        );
        let context = AttemptContext {
            subscription: &subscription,
            schema: EventSchema::CloudEvents,
            attempts_before: 0,
            replayed: false,
            hops: Hops::default(),
            at: Timestamp::EPOCH,
            origin: &HeaderValue::from_static("posthaste.example"),
            sender_headers: &SenderHeaders::default(),
        };
        let (headers, _) = build_request(context, &[event("a-0")]).unwrap();
        assert!(headers["authorization"].is_sensitive());
        assert!(!format!("{headers:?} {subscription:?}").contains("s3cret"));
    }

    #[test]
    fn a_replayed_event_says_so() {
        let check = |replayed, expected: Option<&str>| {
            let context = AttemptContext {
                subscription: &subscription(EventSchema::CloudEvents, json!({})),
                schema: EventSchema::CloudEvents,
                attempts_before: 0,
                replayed,
                hops: Hops::default(),
                at: Timestamp::EPOCH,
                origin: &HeaderValue::from_static("posthaste.example"),
                sender_headers: &SenderHeaders::default(),
            };
            let (headers, _) = build_request(context, &[event("a-0")]).unwrap();
            assert_eq!(
                headers
                    .get("posthaste-replayed")
                    .map(|value| value.to_str().unwrap()),
                expected
            );
        };
        check(true, Some("true"));
        check(false, None);
    }

    #[test]
    fn the_id_of_a_batch_is_the_same_for_the_same_events_only() {
        let id = |keys: &[&str]| webhook_id(&keys.iter().map(|key| event(key)).collect::<Vec<_>>());
        assert_eq!(id(&["a-0", "a-1"]), id(&["a-0", "a-1"]));
        assert_ne!(id(&["a-0", "a-1"]), id(&["a-0", "a-2"]));
        assert_ne!(id(&["a-0", "a-1"]), id(&["a-0a-", "1"]));
        assert_eq!(id(&["a-0"]), "msg_a-0");
    }

    #[test]
    fn an_event_keeps_the_id_that_it_has_alone_and_in_a_batch() {
        let kept = OutgoingEvent {
            webhook_id: Some("msg_b-3"),
            ..event("a-0")
        };
        assert_eq!(webhook_id(std::slice::from_ref(&kept)), "msg_b-3");
        assert_eq!(
            webhook_id(&[kept, event("a-1")]),
            webhook_id(&[event("b-3"), event("a-1")])
        );
    }
}
