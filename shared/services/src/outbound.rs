//! Requests to endpoints, all made here: rendered, signed and sent, and their responses read.
//! Deliveries, test events and handshakes go out here.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method};
use posthaste_core::api::handshake::handshake_request;
use posthaste_core::api::{HandshakeContext, HandshakeRequest};
use posthaste_core::attempt::request::build_request;
use posthaste_core::attempt::retry::parse_retry_after;
use posthaste_core::attempt::{
    AnswerBody, AttemptContext, BatchAcknowledgement, BatchEvent, OutgoingEvent, partial,
};
use posthaste_core::events::output::OutputError;
use posthaste_core::model::{AttemptOutcome, EndpointUrl, SendFailure, Subscription, Timestamp};
use posthaste_ports::{
    AlwaysBegin, Clock, LastLook, LateAnswer, WebhookClient, WebhookRequest, WebhookResponse,
};

/// The way to endpoints.
#[derive(Debug)]
pub struct OutboundSender<'a, W, C> {
    /// Sends the requests.
    pub webhook: &'a W,
    /// The time at which a response came: its `Retry-After` may be a date.
    pub clock: &'a C,
}

/// A request that was made, and its response.
#[derive(Debug)]
pub struct SentRequest {
    /// The result, as the rules of retries know it.
    pub outcome: AttemptOutcome,
    /// The response, or the reason for which there was none.
    pub result: Result<WebhookResponse, SendFailure>,
    /// The failure in a sentence that says more than its kind.
    pub failure_text: Option<Box<str>>,
    /// From the start of the request to its end.
    pub took: Duration,
    /// The request itself, if it was sent and timed out before a response came.
    pub late: Option<LateAnswer>,
}

/// The signed request that carries `events`, at least one, to the subscription's endpoint or its
/// fallback. It times out `timeout` after its start. Fails only if an event cannot be sent in
/// binary mode.
pub fn delivery_request(
    context: AttemptContext<'_>,
    endpoint: &EndpointUrl,
    timeout: Duration,
    events: &[OutgoingEvent<'_>],
) -> Result<WebhookRequest, OutputError> {
    // The body names the events that failed.
    let needs_body = context.subscription.batching.partial_acknowledgement;
    let (headers, body) = build_request(context, events)?;
    Ok(WebhookRequest {
        method: Method::POST,
        url: endpoint.clone(),
        headers,
        body,
        needs_new_connection: false,
        needs_body,
        timeout,
    })
}

impl<W: WebhookClient, C: Clock> OutboundSender<'_, W, C> {
    /// Asks the endpoint of a subscription whether it wants events.
    pub async fn ask_consent(&self, ask: &HandshakeContext<'_>, timeout: Duration) -> SentRequest {
        let HandshakeRequest {
            method,
            headers,
            body,
        } = handshake_request(ask);
        let url = ask.subscription.endpoint.clone();
        self.send(WebhookRequest {
            method,
            url,
            headers,
            body,
            // A kept connection may be dead, and the subscription would wait for its consent.
            needs_new_connection: true,
            // It may hold the code of the handshake.
            needs_body: true,
            timeout,
        })
        .await
    }

    /// Sends one request, once.
    pub async fn send(&self, request: WebhookRequest) -> SentRequest {
        self.send_if(request, &AlwaysBegin).await
    }

    /// Sends one request, once, if it may still begin when it has its connection.
    pub async fn send_if(&self, request: WebhookRequest, look: &impl LastLook) -> SentRequest {
        let answer = self.webhook.send_if(request, look).await;
        let outcome = match &answer.result {
            Ok(response) => {
                let retry_after = retry_after(&response.headers, self.clock.now());
                AttemptOutcome::Answered {
                    status: response.status.as_u16(),
                    retry_after,
                }
            }
            Err(failure) => AttemptOutcome::Failed(*failure),
        };
        SentRequest {
            outcome,
            result: answer.result,
            failure_text: answer.failure_text,
            took: answer.took,
            late: answer.late,
        }
    }
}

impl SentRequest {
    /// The failure in the words that say most of it; `None` after a response.
    pub fn failure_words(&self) -> Option<String> {
        let failure = self.result.as_ref().err()?;
        let text = self.failure_text.as_deref().map(str::to_owned);
        Some(text.unwrap_or_else(|| failure.to_string()))
    }

    /// The events that arrived, of the request's events in their order. The response is read only
    /// if it is a success and the subscription allows partial acknowledgement.
    pub fn acknowledged_events<'e>(
        &self,
        subscription: &Subscription,
        events: impl Iterator<Item = BatchEvent<'e>>,
    ) -> BatchAcknowledgement {
        match &self.result {
            Ok(response) if self.outcome.is_success() => {
                acknowledged_by_response(subscription, response, events)
            }
            Ok(_) | Err(_) => BatchAcknowledgement::All,
        }
    }
}

/// The events that arrived by this response of success, of the request's events in their order. The
/// response is read only if the subscription allows partial acknowledgement.
pub fn acknowledged_by_response<'e>(
    subscription: &Subscription,
    response: &WebhookResponse,
    events: impl Iterator<Item = BatchEvent<'e>>,
) -> BatchAcknowledgement {
    if !subscription.batching.partial_acknowledgement {
        return BatchAcknowledgement::All;
    }
    let body = AnswerBody::new(&response.headers, &response.body, response.body_is_whole);
    partial::read_acknowledgement(body, &events.collect::<Vec<_>>())
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;
    use posthaste_core::api::{
        EndpointValidation, SecretText, SubscriptionSettings, compile_subscription,
    };
    use posthaste_core::model::{EventSchema, Hops, SenderHeaders, SubscriptionName, TopicName};
    use posthaste_testkit::ManualClock;
    use posthaste_testkit::endpoint::{EndpointResult, MemoryEndpoint, answered};
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_614_265_330_000);
    const EVENT: &[u8] = br#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

    #[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
    fn subscription(batching: serde_json::Value) -> Subscription {
        let settings = json!({
            "endpoint": { "url": "https://billing.example.com/hooks" },
            "signing": { "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] },
            "batching": batching,
        });
        let settings: SubscriptionSettings = serde_json::from_value(settings).unwrap();
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("billing").unwrap();
        compile_subscription(&topic, EventSchema::CloudEvents, &name, &settings).unwrap()
    }

    const ORIGIN: HeaderValue = HeaderValue::from_static("posthaste.example");

    fn request_of(subscription: &Subscription) -> WebhookRequest {
        let context = AttemptContext {
            subscription,
            schema: EventSchema::CloudEvents,
            attempts_before: 2,
            replayed: false,
            hops: Hops::default(),
            at: NOW,
            origin: &ORIGIN,
            sender_headers: &SenderHeaders::default(),
        };
        let event = OutgoingEvent {
            key: "e-0",
            webhook_id: None,
            json: Bytes::from_static(EVENT),
            traceparent: None,
        };
        delivery_request(
            context,
            &subscription.endpoint,
            Duration::from_secs(7),
            &[event],
        )
        .unwrap()
    }

    /// A request to an endpoint that responds like this.
    async fn sent(
        subscription: &Subscription,
        answer: fn() -> EndpointResult,
    ) -> (SentRequest, WebhookRequest) {
        let endpoint = MemoryEndpoint::default();
        let clock = ManualClock::new(NOW);
        endpoint.answer(move |_| answer());
        let outbound = OutboundSender {
            webhook: &endpoint,
            clock: &clock,
        };
        let sent = outbound.send(request_of(subscription)).await;
        (sent, endpoint.take().remove(0))
    }

    #[tokio::test]
    async fn a_delivery_is_signed_at_the_time_it_is_made() {
        let (sent, request) = sent(&subscription(json!({})), || answered(204, &[], "")).await;
        assert!(sent.outcome.is_success());
        assert_eq!(
            (request.method, request.url.as_str(), request.timeout),
            (
                Method::POST,
                "https://billing.example.com/hooks",
                Duration::from_secs(7)
            )
        );
        let header = |name: &str| request.headers[name].to_str().unwrap();
        assert_eq!(
            (header("webhook-id"), header("webhook-timestamp")),
            ("msg_e-0", "1614265330")
        );
        assert!(header("webhook-signature").starts_with("v1,"));
        assert_eq!(
            (header("origin"), header("aeg-delivery-count")),
            ("posthaste.example", "2")
        );
    }

    #[tokio::test]
    async fn an_answer_becomes_an_outcome() {
        let check = async |answer: fn() -> EndpointResult, expected| {
            let (sent, _) = sent(&subscription(json!({})), answer).await;
            assert_eq!(sent.outcome, expected);
        };
        let after = |secs| Some(Duration::from_secs(secs));
        check(
            || answered(503, &[("retry-after", "30")], ""),
            AttemptOutcome::Answered {
                status: 503,
                retry_after: after(30),
            },
        )
        .await;
        check(
            || answered(429, &[("retry-after", "Thu, 25 Feb 2021 15:03:00 GMT")], ""),
            AttemptOutcome::Answered {
                status: 429,
                retry_after: after(50),
            },
        )
        .await;
        check(
            || answered(503, &[("retry-after", "soon")], ""),
            AttemptOutcome::Answered {
                status: 503,
                retry_after: None,
            },
        )
        .await;
        check(
            || Err(SendFailure::Tls),
            AttemptOutcome::Failed(SendFailure::Tls),
        )
        .await;
    }

    /// A report of failed events counts only where it is allowed and the response is a success.
    #[tokio::test]
    async fn failure_report_counts_only_if_allowed_and_in_a_success() {
        const REPORT: &str = r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#;
        let check = async |allowed: bool, answer: fn() -> EndpointResult, expected| {
            let batching = json!({ "maxEventsPerBatch": 10, "partialAcknowledgement": allowed });
            let subscription = subscription(batching);
            let (sent, _) = sent(&subscription, answer).await;
            let event = BatchEvent {
                text: EVENT,
                envelope_id: None,
            };
            assert_eq!(
                sent.acknowledged_events(&subscription, [event].into_iter()),
                expected
            );
        };
        check(
            true,
            || answered(200, &[], REPORT),
            BatchAcknowledgement::AllBut([0].into()),
        )
        .await;
        check(
            true,
            || answered(500, &[], REPORT),
            BatchAcknowledgement::All,
        )
        .await;
        check(true, || Err(SendFailure::Socket), BatchAcknowledgement::All).await;
        check(
            false,
            || answered(200, &[], REPORT),
            BatchAcknowledgement::All,
        )
        .await;
    }

    #[tokio::test]
    async fn a_handshake_asks_the_subscription_s_own_endpoint() {
        let endpoint = MemoryEndpoint::default();
        let clock = ManualClock::new(NOW);
        let outbound = OutboundSender {
            webhook: &endpoint,
            clock: &clock,
        };
        let ask = HandshakeContext {
            subscription: &subscription(json!({})),
            validation: EndpointValidation::CloudEvents,
            origin: &ORIGIN,
            sender_headers: &SenderHeaders::default(),
            rate: None,
            callback: None,
            code: &SecretText::new("512d38b6"),
            id: "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
            at: NOW,
        };
        let sent = outbound.ask_consent(&ask, Duration::from_secs(3)).await;
        let request = endpoint.take().remove(0);
        assert_eq!(
            (sent.outcome.status(), request.method),
            (Some(204), Method::OPTIONS)
        );
        assert_eq!(request.url.as_str(), "https://billing.example.com/hooks");
        assert_eq!(request.timeout, Duration::from_secs(3));
    }
}
