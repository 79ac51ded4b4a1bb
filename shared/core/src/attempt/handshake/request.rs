//! What an endpoint is asked: a request, but for its URL and its timeout.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, USER_AGENT};
use http::{HeaderMap, Method};
use serde_json::json;

use crate::api::{SecretText, Validation};
use crate::attempt::rate::Rate;
use crate::attempt::request::AGENT;
use crate::attempt::{delivery_header, signature};
use crate::events::output::EVENT_GRID_CONTENT_TYPE;
use crate::model::{Subscription, Timestamp};

const REQUEST_ORIGIN: HeaderName = HeaderName::from_static("webhook-request-origin");
const REQUEST_CALLBACK: HeaderName = HeaderName::from_static("webhook-request-callback");
const REQUEST_RATE: HeaderName = HeaderName::from_static("webhook-request-rate");
const AEG_EVENT_TYPE: HeaderName = HeaderName::from_static("aeg-event-type");
const AEG_SUBSCRIPTION_NAME: HeaderName = HeaderName::from_static("aeg-subscription-name");
const AEG_DELIVERY_COUNT: HeaderName = HeaderName::from_static("aeg-delivery-count");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const SUBSCRIPTION_VALIDATION: HeaderValue = HeaderValue::from_static("SubscriptionValidation");

/// The type of the event that asks.
const VALIDATION_EVENT_TYPE: &str = "Microsoft.EventGrid.SubscriptionValidationEvent";

/// What an endpoint is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The subscription.
    pub subscription: &'a Subscription,
    /// How.
    pub validation: Validation,
    /// Who asks, as with every delivery.
    pub origin: &'a HeaderValue,
    /// The most requests that the subscription asks for.
    pub rate: Option<Rate>,
    /// Where the endpoint may consent later.
    pub callback: Option<&'a str>,
    /// What Event Grid's way wants back.
    pub code: &'a SecretText,
    /// The id of the request. A UUID.
    pub id: &'a str,
    /// When it is asked.
    pub at: Timestamp,
}

/// The request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its method.
    pub method: Method,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<Bytes>,
}

/// The request that asks. A validation event is signed as deliveries are and carries the subscription's own
/// headers, so that a receiver that checks every signature, or wants a token, lets it in. `OPTIONS` is no
/// delivery and asks for nothing but permission, so that it needs neither.
pub fn question(ask: &Ask<'_>) -> Question {
    let mut headers = HeaderMap::new();
    headers.insert(REQUEST_ORIGIN, ask.origin.clone());
    headers.insert(ORIGIN, ask.origin.clone());
    headers.insert(USER_AGENT, AGENT);
    if ask.validation == Validation::EventGrid {
        event_grid(ask, headers)
    } else {
        cloud_events(ask, headers)
    }
}

fn cloud_events(ask: &Ask<'_>, mut headers: HeaderMap) -> Question {
    if let Some(callback) = ask.callback {
        put(&mut headers, REQUEST_CALLBACK, callback);
    }
    if let Some(rate) = ask.rate {
        headers.insert(REQUEST_RATE, rate.requests_per_minute().into());
    }
    Question { method: Method::OPTIONS, headers, body: Vec::new() }
}

fn event_grid(ask: &Ask<'_>, mut headers: HeaderMap) -> Question {
    let Subscription { topic, name, signing, .. } = ask.subscription;
    let mut data = json!({ "validationCode": ask.code.expose() });
    if let Some(callback) = ask.callback {
        data["validationUrl"] = callback.into();
    }
    let events = json!([{
        "id": ask.id, "topic": format!("/topics/{topic}"), "subject": "", "data": data, "eventType": VALIDATION_EVENT_TYPE,
        "eventTime": ask.at.to_string(), "metadataVersion": "1", "dataVersion": "2",
    }]);
    let body = vec![Bytes::from(events.to_string())];
    // Of what deliveries take from their event, this one has nothing.
    delivery_header::set(&mut headers, &ask.subscription.delivery_headers, &[]);
    let id = format!("msg_{}", ask.id);
    let signed = signature::header(signing, &id, ask.at, &body);
    headers.insert(CONTENT_TYPE, EVENT_GRID_CONTENT_TYPE);
    headers.insert(AEG_EVENT_TYPE, SUBSCRIPTION_VALIDATION);
    put(&mut headers, AEG_SUBSCRIPTION_NAME, name.as_str());
    headers.insert(AEG_DELIVERY_COUNT, 0.into());
    put(&mut headers, WEBHOOK_ID, &id);
    headers.insert(WEBHOOK_TIMESTAMP, ask.at.as_secs().into());
    if !signed.is_empty() {
        put(&mut headers, WEBHOOK_SIGNATURE, &signed);
    }
    Question { method: Method::POST, headers, body }
}

/// Sets a header to a text that cannot be refused: a URL, a name, a UUID or base64.
fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{SubscriptionSettings, compile_subscription};
    use crate::model::{Schema, SubscriptionName, TopicName};

    fn wire(validation: Validation, callback: Option<&str>, rate: Option<Rate>) -> String {
        let settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
            "deliveryHeaders": [
                { "name": "Authorization", "value": "Bearer token" },
                { "name": "X-Order", "fromEvent": "/id" },
            ],
        });
        let settings: SubscriptionSettings = serde_json::from_value(settings).unwrap();
        let (topic, name) =
            (TopicName::parse("Orders").unwrap(), SubscriptionName::parse("Billing").unwrap());
        let subscription = compile_subscription(&topic, Schema::CloudEvents, &name, &settings).unwrap();
        let ask = Ask {
            subscription: &subscription,
            validation,
            origin: &HeaderValue::from_static("posthaste.example"),
            rate,
            callback,
            code: &SecretText::new("512d38b6"),
            id: "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
            at: Timestamp::from_millis(1_614_265_330_123),
        };
        let Question { method, headers, body } = question(&ask);
        let header =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut lines: Vec<_> = headers.iter().map(header).collect();
        lines.sort();
        format!("{method}\n{}\n\n{}", lines.join("\n"), String::from_utf8(body.concat()).unwrap())
    }

    const CALLBACK: Option<&str> = Some("https://posthaste.example/validate/orders/billing/512d38b6");

    #[test]
    fn cloud_events_are_asked_for_with_options() {
        insta::assert_snapshot!(wire(Validation::CloudEvents, CALLBACK, Rate::per_minute(120)));
    }

    #[test]
    fn without_a_rate_or_an_address_nothing_is_said_of_them() {
        insta::assert_snapshot!(wire(Validation::CloudEvents, None, None));
    }

    #[test]
    fn event_grid_is_asked_for_with_a_validation_event() {
        insta::assert_snapshot!(wire(Validation::EventGrid, CALLBACK, None));
    }

    #[test]
    fn a_validation_event_without_an_address_has_no_validation_url() {
        assert!(!wire(Validation::EventGrid, None, None).contains("validationUrl"));
    }
}
