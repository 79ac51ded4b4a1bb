//! The attempt of a test event: rendered as a delivery, sent once, and shown without secrets.

use std::error::Error;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use bytes::Bytes;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, SubscriptionSettings, TestAttempt};
use posthaste_core::attempt::{AttemptContext, BatchAcknowledgement, BatchEvent, OutgoingEvent};
use posthaste_core::events::test_event::{TestEventError, check_given_event, sample_event};
use posthaste_core::model::time::log_millis;
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{AttemptOutcome, Hops, Subscription, Topic};
use posthaste_ports::{Clock, Entropy, Ports, WebhookRequest};
use posthaste_services::outbound::delivery_request;
use posthaste_services::{OutboundSender, SentRequest};

use crate::answer::ApiError;
use crate::audit::AuditTrail;
use crate::extract::SubscriptionPath;
use crate::manage::{Manage, ManageSettings};
use crate::masked_request::{MaskedSecrets, masked_request};
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
        let shown = masked_request(&request);
        let secrets = MaskedSecrets::from_request(&request.headers, &request.url, settings);
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
                .map(|response| secrets.masked_response(response)),
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
