//! The attempt of a test event: rendered as a delivery, sent once, and shown without secrets.

use std::collections::BTreeMap;
use std::error::Error;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use axum::http::HeaderMap;
use bytes::Bytes;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AuditAction, AuditCaller, MASKED, SubscriptionSettings, TestAttempt, TestRequest, TestResponse,
};
use posthaste_core::attempt::echo::{TextExtent, mask_secrets};
use posthaste_core::attempt::{
    AttemptContext, BatchAcknowledgement, BatchEvent, OutgoingEvent, readable_text,
};
use posthaste_core::events::test_event::{TestEventError, check_given_event, sample_event};
use posthaste_core::model::time::log_millis;
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{AttemptOutcome, Hops, RESPONSE_BODY_BYTES_MAX, Subscription, Topic};
use posthaste_ports::{Clock, Entropy, Ports, WebhookRequest, WebhookResponse};
use posthaste_services::outbound::delivery_request;
use posthaste_services::{OutboundSender, SentRequest};

use crate::answer::ApiError;
use crate::audit::AuditTrail;
use crate::extract::SubscriptionPath;
use crate::manage::{Manage, ManageSettings};
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// Longest time for the endpoint, so that its answer still fits into the request's time limit.
const TIMEOUT_MAX: Duration = Duration::from_secs(20);

/// The problem of a subscription whose endpoint must consent and has not: it does not even get a
/// test event.
const NOT_CONSENTED: &str = "its endpoint has not consented to events; validate asks it again";

/// An event that is to be sent, and its request.
struct TestDelivery {
    json: Bytes,
    request: WebhookRequest,
}

/// The sender of test events.
pub(crate) struct TestSender<P: Ports> {
    webhooks: SharedPort<P, P::Webhook>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    settings: SharedPort<P, ManageSettings>,
    records: TopicRecords<P>,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for TestSender<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            webhooks: SharedPort::new(manage, |it| &it.webhooks),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            settings: SharedPort::new(manage, |it| &it.settings),
            records: TopicRecords::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> TestSender<P> {
    /// Makes one attempt with this event, or with a sample where it is empty.
    pub(crate) async fn send_test(
        &self,
        caller: AuditCaller,
        path: &SubscriptionPath,
        body: &Bytes,
    ) -> Result<TestAttempt, ApiError> {
        let record = self.records.existing_record(&path.topic).await?;
        let topic = record.compile().map_err(|error| {
            tracing::error!(topic = %path.topic, error = &error as &dyn Error, "a topic record cannot be used");
            ApiProblem::new(ProblemKind::Internal).detail("the record cannot be read")
        })?;
        let subscription = topic
            .find_subscription(&path.name)
            .ok_or_else(|| path.unknown_problem())?;
        let settings = record.settings.subscriptions.get(&subscription.name);
        if !settings.is_some_and(SubscriptionSettings::may_be_sent_to) {
            return Err(ApiProblem::new(ProblemKind::WrongState)
                .detail(NOT_CONSENTED)
                .into());
        }
        let TestDelivery { json, request } = self.render_test(&topic, subscription, body)?;
        let shown = shown_request(&request);
        let secrets = MaskedSecrets::from_headers(&request.headers, settings);
        let entry = self.audit.new_entry(caller, AuditAction::Test);
        let entry = entry.of_subscription(&topic.name, &subscription.name);
        let attempt = async { Ok(self.send(request).await) };
        let sent = self
            .audit
            .run_audited(entry, attempt, |entry, _| entry)
            .await?;
        let (outcome, failure) = judge_attempt(subscription, &json, &sent);
        let attempt = TestAttempt {
            delivered: outcome.is_success(),
            outcome: outcome
                .name()
                .map_or("Delivered".to_owned(), |name| name.to_string()),
            failure,
            took_ms: whole_millis(sent.took),
            request: shown,
            response: sent
                .result
                .as_ref()
                .ok()
                .map(|response| shown_response(response, &secrets)),
        };
        tracing::info!(
            topic = %topic.name, subscription = %subscription.name, link = %subscription.endpoint.link(),
            status = outcome.status(), outcome = attempt.outcome, took_ms = log_millis(sent.took),
            "a test event was sent"
        );
        Ok(attempt)
    }

    /// The request that delivers this event, or a sample.
    fn render_test(
        &self,
        topic: &Topic,
        subscription: &Subscription,
        body: &Bytes,
    ) -> Result<TestDelivery, ApiError> {
        let schema = subscription.delivery_schema;
        let now = self.clock.now();
        let id = self.entropy.uuid_at(now);
        let json = if body.is_empty() {
            sample_event(schema, &topic.name, &id.to_string(), now)
        } else {
            check_given_event(schema, body).map_err(|error| bad_event(&error))?
        };
        let key = format!("{}-0", id.simple());
        let context = AttemptContext {
            subscription,
            schema,
            attempts_before: 0,
            replayed: false,
            hops: Hops::default(),
            at: now,
            origin: &self.settings.origin,
            sender_headers: &self.settings.sender_headers,
        };
        let event = OutgoingEvent {
            key: &key,
            webhook_id: None,
            json: json.clone(),
            traceparent: None,
        };
        let timeout = subscription.timeout.min(TIMEOUT_MAX);
        let rendered = delivery_request(context, &subscription.endpoint, timeout, &[event]);
        let mut request = rendered
            .map_err(|error| ApiProblem::new(ProblemKind::BadEvent).detail(error.to_string()))?;
        // The silence of a kept connection says nothing about the endpoint.
        request.needs_new_connection = true;
        Ok(TestDelivery { json, request })
    }

    async fn send(&self, request: WebhookRequest) -> SentRequest {
        let outbound = OutboundSender {
            webhook: &*self.webhooks,
            clock: &self.clock,
        };
        outbound.send(request).await
    }
}

fn bad_event(error: &TestEventError) -> ApiProblem {
    let cause = error
        .source()
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    let is_too_large = matches!(error, TestEventError::TooLarge);
    let kind = if is_too_large {
        ProblemKind::TooLarge
    } else {
        ProblemKind::BadEvent
    };
    ApiProblem::new(kind).detail(format!("{error}{cause}"))
}

fn shown_request(request: &WebhookRequest) -> TestRequest {
    TestRequest {
        method: request.method.to_string(),
        url: request.url.as_str().to_owned(),
        headers: shown_headers(&request.headers),
        body: String::from_utf8_lossy(&request.body.concat()).into_owned(),
    }
}

/// The outcome of the attempt, and the reason if the status alone does not give it.
fn judge_attempt(
    subscription: &Subscription,
    event: &[u8],
    sent: &SentRequest,
) -> (AttemptOutcome, Option<String>) {
    let status = match &sent.result {
        Ok(response) => response.status.as_u16(),
        Err(_) => return (sent.outcome, sent.failure_words()),
    };
    let event = BatchEvent {
        text: event,
        envelope_id: None,
    };
    let reported = match sent.acknowledged_events(subscription, iter::once(event)) {
        BatchAcknowledgement::All => return (sent.outcome, None),
        BatchAcknowledgement::AllBut(_) => "the answer reports the event as failed".to_owned(),
        BatchAcknowledgement::Nothing(error) => error.to_string(),
    };
    (AttemptOutcome::Unacknowledged { status }, Some(reported))
}

fn shown_response(response: &WebhookResponse, secrets: &MaskedSecrets) -> TestResponse {
    let headers = shown_headers(&response.headers).into_iter();
    let extent = if response.body_is_whole {
        TextExtent::Whole
    } else {
        TextExtent::Cut
    };
    TestResponse {
        status: response.status.as_u16(),
        headers: headers
            .map(|(name, value)| (name, secrets.mask_secrets(&value, TextExtent::Whole)))
            .collect(),
        body: secrets.mask_secrets(
            &readable_text(&response.headers, &response.body, RESPONSE_BODY_BYTES_MAX),
            extent,
        ),
        body_is_whole: response.body_is_whole,
    }
}

/// Headers as text; the value of a secret one is masked.
fn shown_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let text = if value.is_sensitive() {
            MASKED.to_owned()
        } else {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        };
        let known = shown.entry(name.to_string()).or_default();
        if !known.is_empty() {
            known.push_str(", ");
        }
        known.push_str(&text);
    }
    shown
}

/// A subscription's secrets. An endpoint may echo its request, so its answer is shown with masks in
/// place of them.
struct MaskedSecrets(Vec<String>);

impl MaskedSecrets {
    /// The secrets in the request's headers, and those that sign it.
    fn from_headers(sent: &HeaderMap, settings: Option<&SubscriptionSettings>) -> Self {
        let sensitive = sent.values().filter(|value| value.is_sensitive());
        let headers = sensitive
            .filter_map(|value| value.to_str().ok())
            .flat_map(header_forms);
        let signing = settings
            .into_iter()
            .flat_map(|settings| settings.signing.timed_secrets());
        let mut all: Vec<String> = headers.map(str::to_owned).collect();
        all.extend(signing.map(|(secret, _)| secret.expose().to_owned()));
        Self(all)
    }

    /// The text with a mask in place of every secret.
    fn mask_secrets(&self, text: &str, extent: TextExtent) -> String {
        let secrets: Vec<&str> = self.0.iter().map(String::as_str).collect();
        mask_secrets(text, &secrets, extent, MASKED)
    }
}

/// A value, and the part after its scheme if it has one, as `Authorization` does.
fn header_forms(value: &str) -> impl Iterator<Item = &str> {
    let credentials = value.split_once(' ').map(|(_, rest)| rest.trim_start());
    iter::once(value).chain(credentials.filter(|rest| !rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use axum::http::header::AUTHORIZATION;

    fn check(secret: &str, answer: &str, expected: &str) {
        let mut value = HeaderValue::from_str(secret).unwrap();
        value.set_sensitive(true);
        let mut sent = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        sent.insert("x-tenant", HeaderValue::from_static("acme"));
        let shown =
            MaskedSecrets::from_headers(&sent, None).mask_secrets(answer, TextExtent::Whole);
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_secret_is_masked_however_it_is_echoed() {
        check(
            "Bearer s3cret",
            r#"{"a":"Bearer s3cret"}"#,
            r#"{"a":"(masked)"}"#,
        );
        check(
            "Bearer s3cret",
            "token=s3cret, s3cret; acme",
            "token=(masked), (masked); acme",
        );
        check(
            r#"a"b\c/d"#,
            r#"a\"b\\c/d a\"b\\c\/d a"b\c/d"#,
            "(masked) (masked) (masked)",
        );
        check(
            "Bearer a+b/c=",
            r"a\u002Bb\/c\u003d a%2bb%2fc%3D a&#43;b&#x2F;c=",
            "(masked) (masked) (masked)",
        );
        check("s3cret", "nothing of it", "nothing of it");
    }
}
