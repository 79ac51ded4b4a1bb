//! The maker of requests that were sent before: from the record of an attempt, its event, and the
//! settings of today.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{EventRequestView, IsoTimestamp, TestRequest};
use posthaste_core::attempt::{AttemptContext, OutgoingEvent};
use posthaste_core::delivery_log::{
    DeliveryHistory, LogRecord, RecordLookup, choose_delivery, gather_by_delivery, log_text,
};
use posthaste_core::events::Event;
use posthaste_core::model::{EndpointUrl, Hops, Subscription, Timestamp};
use posthaste_ports::Ports;
use posthaste_services::kept_event::KeptEvent;
use posthaste_services::outbound::delivery_request;

use crate::answer::{ApiError, unusable_record};
use crate::event_log::EventLog;
use crate::extract::SubscriptionPath;
use crate::manage::{Manage, ManageSettings};
use crate::masked_request::masked_request;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;

/// The header whose value is not shown: whoever has it could send the request as if from here.
const SIGNATURE: &str = "webhook-signature";

/// The text in place of the signature.
const NOT_SHOWN: &str = "(not shown)";

/// The note of every answer.
const NOTE: &str = "The log keeps neither headers nor bodies. This is the request as today's settings make \
    it from the record and the event: its hops are those of an event that was published here, and its \
    webhook-timestamp may be a second off.";

/// Added to the note of a batch.
const BATCH_NOTE: &str = " The request carried other events too; it is shown with this event alone, under the batch's id.";

/// The problem of an event without a record of this delivery.
const NO_DELIVERY: &str = "the log has no such delivery of this event";

/// The problem of a delivery without this attempt.
const NO_ATTEMPT: &str = "the log has no such attempt of this delivery";

/// The problem of an event that was accepted for a former subscription, whose settings are gone.
const FORMER: &str = "the event was accepted for an earlier subscription or topic of this name";

/// The problem of an event whose payload is gone.
const NO_PAYLOAD: &str = "neither the delivery log nor a dead letter has the event any longer, so its request cannot be made again";

/// The attempt whose request is asked for.
#[derive(Debug)]
pub(super) struct AskedAttempt {
    pub(super) to: SubscriptionPath,
    pub(super) id: String,
    /// The key of the delivery; the newest one where there is none.
    pub(super) key: Option<String>,
    /// The number of the attempt; the last one where there is none.
    pub(super) attempt: Option<u16>,
}

/// The maker of requests that were sent before.
pub(crate) struct EventRequestMaker<P: Ports> {
    state: SharedPort<P, P::Store>,
    dead_letters: SharedPort<P, P::DeadLetters>,
    settings: SharedPort<P, ManageSettings>,
    records: TopicRecords<P>,
    events: EventLog<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for EventRequestMaker<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            settings: SharedPort::new(manage, |it| &it.settings),
            records: TopicRecords::from_ref(manage),
            events: EventLog::from_ref(manage),
        }
    }
}

impl<P: Ports> EventRequestMaker<P> {
    /// The request of this attempt.
    pub(super) async fn make_request(
        &self,
        asked: &AskedAttempt,
    ) -> Result<EventRequestView, ApiError> {
        let record = self.records.existing_record(&asked.to.topic).await?;
        let topic = record.compile().map_err(|_| unusable_record())?;
        let to = topic
            .find_subscription(&asked.to.name)
            .ok_or_else(|| asked.to.unknown_problem())?;
        let histories = self.load_histories(asked).await?;
        let history = find_delivery(&histories, asked.key.as_deref())?;
        let attempt = find_attempt(history, asked.attempt)?;
        let event = self.load_event(&histories, history, to, &asked.id).await?;
        let sent = SentAttempt::new(history, attempt, to);
        let request = sent.render(&event, &self.settings)?;
        let is_changed = record.updated_at > sent.began;
        let note = if sent.is_batch { BATCH_NOTE } else { "" };
        Ok(EventRequestView {
            subscription: to.name.clone(),
            key: history.key.clone(),
            attempt: attempt.attempt,
            at: IsoTimestamp(attempt.time),
            request,
            settings_changed_at: is_changed.then_some(IsoTimestamp(record.updated_at)),
            endpoint_then: sent.former_endpoint(),
            is_batch: sent.is_batch,
            note: format!("{NOTE}{note}"),
        })
    }

    /// The deliveries of the event to the subscription, the newest first.
    async fn load_histories(&self, asked: &AskedAttempt) -> Result<Vec<DeliveryHistory>, ApiError> {
        let look_up = RecordLookup {
            topic: Some(asked.to.topic.folded()),
            subscription: Some(asked.to.name.folded()),
            event_id: Some(log_text(&asked.id)),
            ..RecordLookup::default()
        };
        let found = self.events.look_up(look_up).await?;
        Ok(gather_by_delivery(found.records))
    }

    /// The event of a delivery, from it or from a copy of it.
    async fn load_event(
        &self,
        histories: &[DeliveryHistory],
        history: &DeliveryHistory,
        to: &Subscription,
        id: &str,
    ) -> Result<Event, ApiError> {
        let chosen = choose_delivery(histories, &to.created, Some(&history.key))
            .map_err(|_| not_found(FORMER))?;
        let kept = KeptEvent {
            state: &*self.state,
            dead_letters: &*self.dead_letters,
            to,
            id,
            include_former: false,
        };
        for copy in chosen.with_payload {
            if let Some(event) = kept.find_event(copy).await? {
                return Ok(event);
            }
        }
        Err(ApiProblem::new(ProblemKind::PayloadGone)
            .detail(NO_PAYLOAD)
            .into())
    }
}

/// An attempt, as far as its record says what was sent.
struct SentAttempt<'a> {
    history: &'a DeliveryHistory,
    attempt: &'a LogRecord,
    to: &'a Subscription,
    began: Timestamp,
    /// Whether its request carried other events too: its id is not the event's own.
    is_batch: bool,
}

impl<'a> SentAttempt<'a> {
    fn new(history: &'a DeliveryHistory, attempt: &'a LogRecord, to: &'a Subscription) -> Self {
        let own_id = history.webhook_id();
        let sent_id = attempt.webhook_id.as_ref();
        Self {
            history,
            attempt,
            to,
            began: attempt_began_at(attempt),
            is_batch: sent_id.is_some_and(|sent| *sent != own_id),
        }
    }

    /// The endpoint of today that the attempt went to, or else the first one.
    fn endpoint(&self) -> &EndpointUrl {
        self.known_endpoint().unwrap_or(&self.to.endpoint)
    }

    fn known_endpoint(&self) -> Option<&EndpointUrl> {
        let logged = self.attempt.endpoint.as_deref()?;
        let mut today = std::iter::once(&self.to.endpoint).chain(&self.to.fallback);
        today.find(|url| url.without_query() == logged)
    }

    /// The endpoint that the attempt went to, where the subscription does not have it any longer.
    fn former_endpoint(&self) -> Option<String> {
        let is_known = self.known_endpoint().is_some();
        self.attempt.endpoint.clone().filter(|_| !is_known)
    }

    /// The request with this event alone, without its secrets and its signature.
    fn render(&self, event: &Event, settings: &ManageSettings) -> Result<TestRequest, ApiProblem> {
        let context = AttemptContext {
            subscription: self.to,
            schema: self.to.delivery_schema,
            attempts_before: self.attempt.attempt.saturating_sub(1),
            replayed: self.attempt.origin.is_sent_again(),
            hops: Hops::default(),
            at: self.began,
            origin: &settings.origin,
            sender_headers: &settings.sender_headers,
        };
        let own_id = self.history.webhook_id();
        let sent_id = self.attempt.webhook_id.as_deref();
        let traceparent = self.attempt.traceparent.as_deref();
        let outgoing = OutgoingEvent {
            key: &self.history.key,
            webhook_id: Some(sent_id.unwrap_or(&own_id)),
            json: event.json().clone(),
            traceparent: traceparent.filter(|_| !self.is_batch),
        };
        let rendered = delivery_request(context, self.endpoint(), self.to.timeout, &[outgoing]);
        let request = rendered
            .map_err(|error| ApiProblem::new(ProblemKind::BadEvent).detail(error.to_string()))?;
        let mut shown = masked_request(&request);
        if let Some(signature) = shown.headers.get_mut(SIGNATURE) {
            NOT_SHOWN.clone_into(signature);
        }
        Ok(shown)
    }
}

/// The time at which an attempt began: its record has that of its end.
fn attempt_began_at(attempt: &LogRecord) -> Timestamp {
    let took_ms = u64::from(attempt.duration_ms.unwrap_or_default());
    Timestamp::from_millis(attempt.time.as_millis().saturating_sub(took_ms))
}

/// The delivery of this key, or the newest.
fn find_delivery<'a>(
    histories: &'a [DeliveryHistory],
    key: Option<&str>,
) -> Result<&'a DeliveryHistory, ApiProblem> {
    let mut asked = histories
        .iter()
        .filter(|history| key.is_none_or(|key| history.key == key));
    asked.next().ok_or_else(|| not_found(NO_DELIVERY))
}

/// The last attempt of this number, or the last of all.
fn find_attempt(history: &DeliveryHistory, number: Option<u16>) -> Result<&LogRecord, ApiProblem> {
    let attempts = history.attempts();
    let asked = attempts.filter(|record| number.is_none_or(|number| record.attempt == number));
    asked.last().ok_or_else(|| not_found(NO_ATTEMPT))
}

fn not_found(detail: &str) -> ApiProblem {
    ApiProblem::new(ProblemKind::NotFound).detail(detail)
}
