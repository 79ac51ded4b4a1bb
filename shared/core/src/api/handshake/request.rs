//! The request that asks an endpoint, without its URL and its timeout.

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;

use crate::api::{EndpointValidation, SecretText};
use crate::attempt::request::{
    WEBHOOK_REQUEST_ORIGIN, insert_text, set_event_grid, set_sender, set_webhook_headers,
};
use crate::events::output::EVENT_GRID_CONTENT_TYPE;
use crate::model::{RequestRate, SenderHeaders, Subscription, Timestamp, delivery_header};

/// The type of the event that asks.
const VALIDATION_EVENT_TYPE: &str = "Microsoft.EventGrid.SubscriptionValidationEvent";

/// The contents of a question to an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct HandshakeContext<'a> {
    /// The subscription.
    pub subscription: &'a Subscription,
    /// How.
    pub validation: EndpointValidation,
    /// The sender, as with every delivery.
    pub origin: &'a HeaderValue,
    /// The headers that say who sends, where the topic does not have its own.
    pub sender_headers: &'a SenderHeaders,
    /// The most requests that the subscription asks for.
    pub rate: Option<RequestRate>,
    /// The URL under which the endpoint may consent later.
    pub callback: Option<&'a str>,
    /// The code that Event Grid's way wants back.
    pub code: &'a SecretText,
    /// The id of the request. A UUID.
    pub id: &'a str,
    /// The time of the request.
    pub at: Timestamp,
}

/// The request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeRequest {
    /// The method.
    pub method: Method,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<Bytes>,
}

/// The request that asks. A validation event is signed as deliveries are and carries the
/// subscription's own headers, so that a receiver that checks every signature, or wants a token,
/// lets it in. `OPTIONS` is no delivery and asks for nothing but permission, so that it needs
/// neither.
pub fn handshake_request(ask: &HandshakeContext<'_>) -> HandshakeRequest {
    let mut headers = HeaderMap::new();
    let names = ask.subscription.sender_headers(ask.sender_headers);
    set_sender(&mut headers, names, ask.origin);
    if ask.validation == EndpointValidation::EventGrid {
        event_grid(ask, names, headers)
    } else {
        cloud_events(ask, headers)
    }
}

fn cloud_events(ask: &HandshakeContext<'_>, mut headers: HeaderMap) -> HandshakeRequest {
    // What asks is no request of this way without it.
    headers.insert(WEBHOOK_REQUEST_ORIGIN, ask.origin.clone());
    if let Some(callback) = ask.callback {
        insert_text(&mut headers, "webhook-request-callback", callback);
    }
    if let Some(rate) = ask.rate {
        headers.insert("webhook-request-rate", rate.requests_per_minute().into());
    }
    HandshakeRequest {
        method: Method::OPTIONS,
        headers,
        body: Vec::new(),
    }
}

fn event_grid(
    ask: &HandshakeContext<'_>,
    names: &SenderHeaders,
    mut headers: HeaderMap,
) -> HandshakeRequest {
    let mut data = json!({ "validationCode": ask.code.expose() });
    if let Some(callback) = ask.callback {
        data["validationUrl"] = callback.into();
    }
    let events = json!([{
        "id": ask.id, "topic": format!("/topics/{}", ask.subscription.topic), "subject": "", "data": data,
        "eventType": VALIDATION_EVENT_TYPE, "eventTime": ask.at.to_string(), "metadataVersion": "1",
        "dataVersion": "2",
    }]);
    let body = vec![Bytes::from(events.to_string())];
    // Of what deliveries take from their event, this one has nothing.
    delivery_header::add_to_request(&mut headers, &ask.subscription.delivery_headers, &[]);
    headers.insert(CONTENT_TYPE, EVENT_GRID_CONTENT_TYPE);
    let kind = "SubscriptionValidation";
    set_event_grid(&mut headers, names, kind, ask.subscription, 0);
    set_webhook_headers(
        &mut headers,
        ask.subscription,
        &format!("msg_{}", ask.id),
        ask.at,
        &body,
    );
    HandshakeRequest {
        method: Method::POST,
        headers,
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{SubscriptionSettings, compile_subscription};
    use crate::model::{EventSchema, SubscriptionName, TopicName};
    use http::HeaderName;

    fn wire(
        validation: EndpointValidation,
        callback: Option<&str>,
        rate: Option<RequestRate>,
    ) -> String {
        let settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
            "deliveryHeaders": [
                { "name": "Authorization", "value": "Bearer token" },
                { "name": "X-Order", "fromEvent": "/id" },
            ],
        });
        let settings: SubscriptionSettings = serde_json::from_value(settings).unwrap();
        let topic = TopicName::parse("Orders").unwrap();
        let name = SubscriptionName::parse("Billing").unwrap();
        let subscription =
            compile_subscription(&topic, EventSchema::CloudEvents, &name, &settings).unwrap();
        let ask = HandshakeContext {
            subscription: &subscription,
            validation,
            origin: &HeaderValue::from_static("posthaste.example"),
            sender_headers: &SenderHeaders::default(),
            rate,
            callback,
            code: &SecretText::new("512d38b6"),
            id: "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
            at: Timestamp::from_millis(1_614_265_330_123),
        };
        let HandshakeRequest {
            method,
            headers,
            body,
        } = handshake_request(&ask);
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        let mut lines: Vec<_> = headers.iter().map(header).collect();
        lines.sort();
        format!(
            "{method}\n{}\n\n{}",
            lines.join("\n"),
            String::from_utf8(body.concat()).unwrap()
        )
    }

    const CALLBACK: Option<&str> =
        Some("https://posthaste.example/validate/orders/billing/512d38b6");

    #[test]
    fn cloud_events_are_asked_for_with_options() {
        insta::assert_snapshot!(wire(
            EndpointValidation::CloudEvents,
            CALLBACK,
            RequestRate::per_minute(120)
        ));
    }

    #[test]
    fn without_a_rate_or_an_address_nothing_is_said_of_them() {
        insta::assert_snapshot!(wire(EndpointValidation::CloudEvents, None, None));
    }

    #[test]
    fn event_grid_is_asked_for_with_a_validation_event() {
        insta::assert_snapshot!(wire(EndpointValidation::EventGrid, CALLBACK, None));
    }

    #[test]
    fn a_validation_event_without_an_address_has_no_validation_url() {
        assert!(!wire(EndpointValidation::EventGrid, None, None).contains("validationUrl"));
    }
}
