//! The names of the headers that requests of a subscription have.

use http::header::HeaderName;

use super::SubscriptionSettings;
use crate::model::{ContentMode, EndpointUrl, EventSchema, SenderHeaders, Timestamp};

/// A header of a subscription's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// The name of the header, in lower case.
    pub name: String,
    /// The requests that have it; `None` if all have.
    pub condition: Option<&'static str>,
}

impl SubscriptionSettings {
    /// The headers that requests with events have at `now`, besides those of HTTP itself. `input`
    /// is the schema of the topic, and `sender` are the headers that identify the sender.
    pub fn request_headers(
        &self,
        input: EventSchema,
        sender: &SenderHeaders,
        now: Timestamp,
    ) -> Vec<RequestHeader> {
        let mut headers = HeaderList::default();
        headers.add_always("content-type");
        if self.content_mode == ContentMode::Binary
            && self.delivery_schema.unwrap_or(input) == EventSchema::CloudEvents
        {
            headers.add_conditional("ce-*", "one for each attribute of an event with data");
        }
        self.add_custom(&mut headers);
        headers.add_all(&["webhook-id", "webhook-timestamp"]);
        if self
            .signing
            .live_at(now)
            .secrets
            .is_some_and(|secrets| !secrets.is_empty())
        {
            headers.add_always("webhook-signature");
        }
        headers.add_sender(sender);
        if EndpointUrl::parse(&self.endpoint.url).is_ok_and(|url| url.has_access_token()) {
            headers.add_always("cache-control");
        }
        headers.add_always(sender.hops.as_str());
        headers.add_named(sender.attempt.as_ref());
        if let Some(name) = &sender.replayed {
            headers.add_conditional(name.as_str(), "only for events that are sent again");
        }
        headers.add_conditional(
            "traceparent",
            "only for an event that was published with one",
        );
        headers.0
    }

    fn add_custom(&self, headers: &mut HeaderList) {
        for header in &self.delivery_headers {
            let name = header.name.to_ascii_lowercase();
            let condition = header
                .from_event
                .as_ref()
                .map(|_| "only for an event that has the value");
            headers.0.push(RequestHeader { name, condition });
        }
    }
}

#[derive(Default)]
struct HeaderList(Vec<RequestHeader>);

impl HeaderList {
    fn add_always(&mut self, name: &str) {
        self.0.push(RequestHeader {
            name: name.to_owned(),
            condition: None,
        });
    }

    fn add_named(&mut self, name: Option<&HeaderName>) {
        if let Some(name) = name {
            self.add_always(name.as_str());
        }
    }

    fn add_sender(&mut self, sender: &SenderHeaders) {
        if sender.has_origin {
            self.add_all(&["webhook-request-origin", "origin"]);
        }
        if sender.agent.is_some() {
            self.add_always("user-agent");
        }
        self.add_named(sender.event_type.as_ref());
        self.add_named(sender.subscription_name.as_ref());
        self.add_named(sender.delivery_count.as_ref());
    }

    fn add_all(&mut self, names: &[&str]) {
        for name in names {
            self.add_always(name);
        }
    }

    fn add_conditional(&mut self, name: &str, condition: &'static str) {
        self.0.push(RequestHeader {
            name: name.to_owned(),
            condition: Some(condition),
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::compile_subscription;
    use crate::attempt::request::{AttemptContext, OutgoingEvent, build_request};
    use crate::model::{Hops, SubscriptionName, TopicName};

    const NOW: Timestamp = Timestamp::from_millis(1_614_265_330_123);

    fn settings(more: &Value) -> SubscriptionSettings {
        let mut settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
        });
        settings
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(settings).unwrap()
    }

    /// The names of a real request.
    fn sent(
        settings: &SubscriptionSettings,
        sender_headers: &SenderHeaders,
        replayed: bool,
        traceparent: Option<&str>,
    ) -> Vec<String> {
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("b").unwrap();
        let subscription =
            compile_subscription(&topic, EventSchema::CloudEvents, &name, settings).unwrap();
        let json = Bytes::from_static(
            br#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":1}"#,
        );
        let context = AttemptContext {
            subscription: &subscription,
            schema: subscription.delivery_schema,
            attempts_before: 0,
            replayed,
            hops: Hops::default(),
            at: NOW,
            origin: &HeaderValue::from_static("posthaste.example"),
            sender_headers,
        };
        let event = OutgoingEvent {
            key: "a-0",
            webhook_id: None,
            json,
            traceparent,
        };
        let (headers, _) = build_request(context, &[event]).unwrap();
        headers
            .keys()
            .map(|name| name.as_str().to_owned())
            .collect()
    }

    /// Checks the names against those of real requests.
    fn check(more: Value) {
        check_from(&SenderHeaders::default(), more);
    }

    #[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
    fn check_from(sender: &SenderHeaders, more: Value) {
        let settings = settings(&more);
        let said = settings.request_headers(EventSchema::CloudEvents, sender, NOW);
        let plain = sent(&settings, sender, false, None);
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for name in sent(&settings, sender, true, Some(trace)) {
            let is_said = said
                .iter()
                .any(|header| match header.name.strip_suffix('*') {
                    Some(family) => name.starts_with(family),
                    None => header.name == name,
                });
            assert!(is_said, "{name} is sent and not said, with {more}");
        }
        for header in said {
            let is_sent = plain.contains(&header.name);
            assert_eq!(
                is_sent,
                header.condition.is_none(),
                "{} with {more}",
                header.name
            );
        }
    }

    /// Header names use the sender's prefix and leave out what the sender omits.
    #[test]
    fn sender_prefix_and_omissions_show_in_header_names() {
        use crate::model::SenderHeader::{Attempt, EventGrid, Origin, SubscriptionName, UserAgent};
        let all = [EventGrid, SubscriptionName, Origin, UserAgent, Attempt];
        let named = |omitted| SenderHeaders::new(Some("acme"), omitted).unwrap();
        check_from(&named(&[]), json!({}));
        check_from(&named(&all), json!({}));
        for one in all {
            check_from(&SenderHeaders::new(None, &[one]).unwrap(), json!({}));
        }
        let plain = sent(&settings(&json!({})), &named(&all), true, None);
        let expected = [
            "content-type",
            "webhook-id",
            "webhook-timestamp",
            "webhook-signature",
            "webhook-hops",
        ];
        assert_eq!(plain, expected);
        for name in sent(&settings(&json!({})), &named(&[]), true, None) {
            assert!(
                !name.contains("posthaste") && !name.contains("aeg"),
                "{name}"
            );
        }
    }

    #[test]
    fn the_headers_are_those_of_real_requests() {
        check(json!({}));
        check(json!({ "contentMode": "binary" }));
        check(json!({ "deliverySchema": "CloudEvents", "batching": { "maxEventsPerBatch": 10 } }));
        check(json!({ "batching": { "maxEventsPerBatch": 10, "partialAcknowledgement": true } }));
        check(json!({ "endpoint": { "url": "https://billing.example.com/?access_token=t" } }));
        check(json!({ "signing": { "secrets": [] } }));
        check(
            json!({ "deliveryHeaders": [{ "name": "X-Tenant", "value": "acme", "isSecret": true },
            { "name": "x-event", "fromEvent": "/data/nothing" }] }),
        );
    }
}
