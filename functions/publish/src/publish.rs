//! The steps of a request, in their order.

use std::error::Error;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request};
use posthaste_core::api::PublishResponse;
use posthaste_core::events::{Event, GeneratedValues, PublishRequest, TopicInput, parse_request};
use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::{
    ACCEPTANCE_WAIT_MIN, DeliveryLogMode, EventSchema, Hops, Timestamp, Topic, TopicName,
};
use posthaste_core::release::rest::REST_MAX;
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::busy::run_off_worker_if_large;
use posthaste_services::{
    AcceptanceLogging, ActivityNotes, CompletingWork, EventOrigin, EventSchedule, EventTraces,
    FanOut, InlineEvents, PressureReader, SlowGroups, SlowLane, TopicRegistry, WrongKeyAnswer,
    WrongKeys, client, signal_wake, timeout,
};
use tokio::sync::OwnedSemaphorePermit;

use crate::admission::{AdmissionGate, AdmittedRequest, TarpitTurns};
use crate::authorize::{authorize, declared_tier, shows_key};
use crate::body::{self, BodyBudget};
use crate::error::PublishError;
use crate::idempotency::{self, IdempotencyClaims, RequestClaim, RequestName};
use crate::meter;
use crate::not_before::{event_schedule, not_before};
use crate::settings::PublishSettings;
use crate::spans::{self, AcceptedEvents};
use crate::time_to_live::time_to_live;

/// The time for which a look at the topic stands: what is written later is decided by a new one.
const LOOK_STANDS: Duration = Duration::from_secs(1);

/// The longest time for looking up which targets are slow.
const LANES_LOOKED_UP_WITHIN: Duration = Duration::from_secs(1);

/// The time in which wake has begun a run that sees what was parked, after a rest.
const LOOKED_FOR_WITHIN: Duration = Duration::from_mins(2);

/// The publish function over its ports.
#[derive(Debug)]
pub struct Publish<P: Ports> {
    /// The delivery queue.
    pub deliveries: P::Queue,
    /// The slow lane, where there is one.
    pub slow_lane: Option<SlowLane<P::Queue, P::Store, P::Clock>>,
    /// The queue of the delivery log's records. `None` for a moment of an update on AWS, when the
    /// program is new and its settings are not: then no acceptance is recorded.
    pub records: Option<P::Queue>,
    /// Looks topics up.
    pub registry: TopicRegistry<P::Store, P::Clock>,
    /// The state bucket, for payloads that are stored once.
    pub payloads: P::Store,
    /// The pressure that the monitor wrote.
    pub pressure: PressureReader<P::Store, P::Clock>,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
    /// The last use of topics.
    pub activity: ActivityNotes,
    /// The memory for bodies.
    pub bodies: BodyBudget,
    /// The turns of topics where the tarpit advises.
    pub advice: TarpitTurns,
    /// Keys that were shown and opened nothing.
    pub wrong_keys: WrongKeys,
    /// The traces of events.
    pub traces: EventTraces,
    /// The treatment of producers.
    pub settings: PublishSettings,
}

/// A request that was published: every matching subscription's delivery is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedRequest {
    /// The events that were accepted, and the subscriptions that matched.
    pub answer: PublishResponse,
    /// The value of the header `Posthaste-Pressure`, if there is pressure.
    pub pressure: Option<String>,
}

/// A request as it arrived.
struct IncomingRequest {
    headers: HeaderMap,
    body: Bytes,
    /// The time by which its token is judged: the wait after it is ours.
    arrived_at: Timestamp,
}

/// A topic that a request may be published to.
struct OpenTopic {
    topic: Arc<Topic>,
    /// The time of the look, by the clock's `monotonic`.
    seen_at: Duration,
}

/// The events of a request that was admitted, with the room its body takes.
struct AdmittedEvents {
    request: IncomingRequest,
    events: Vec<Event>,
    /// The name that the producer gave the request, if any.
    name: Option<RequestName>,
    /// The number of deliveries of posthaste that they came through.
    hops: Hops,
    pressure: Option<String>,
    dehydrate: bool,
    /// Whether the pressure shows that first attempts wait.
    first_attempts_wait: bool,
    /// Longest life of the events, where the producer gives it.
    time_to_live: Option<Duration>,
    /// The time before which they are not sent, where the producer gives one for all.
    not_before: Option<Timestamp>,
    /// The times before which each of them is not sent.
    schedule: EventSchedule,
    room: OwnedSemaphorePermit,
}

impl<P: Ports> Publish<P> {
    /// Publishes one request to the topic of this name. `Ok` means that every matching
    /// subscription's delivery is durable. A future that is dropped before its wait is over has
    /// published nothing. One that is dropped later is published to the end all the same, so
    /// that no half of a request and no unsettled name is left behind.
    ///
    /// Every outcome is logged and counted here.
    pub async fn publish(
        self: &Arc<Self>,
        topic: &str,
        request: Request<Body>,
    ) -> Result<PublishedRequest, PublishError> {
        let (head, body) = request.into_parts();
        let started = self.clock.monotonic();
        let topic = match self.find_topic_with_key(topic, &head.headers).await {
            Ok(topic) => topic,
            Err(error) => {
                log_error(topic, &error);
                return Err(self.slow_guess(error).await);
            }
        };
        let (open, received) = match self.receive_events(&topic, head.headers, body).await {
            Ok(received) => received,
            Err(error) => return Err(self.slow_guess(note_failure(&topic.name, 1, error)).await),
        };
        let this = Arc::clone(self);
        CompletingWork::new(async move { this.write_deliveries(open, received, started).await })
            .await
    }

    /// Claims the request's name, writes its deliveries and settles the name.
    async fn write_deliveries(
        &self,
        mut open: OpenTopic,
        mut received: AdmittedEvents,
        started: Duration,
    ) -> Result<PublishedRequest, PublishError> {
        let name = &open.topic.name.clone();
        let events = received.events.len();
        let Self {
            deliveries,
            payloads,
            clock,
            entropy,
            ..
        } = self;
        let idempotency = IdempotencyClaims::<P> {
            store: payloads,
            clock,
            entropy,
        };
        let claim = idempotency.claim_name(received.name.as_ref()).await;
        let claim = claim.map_err(|error| note_failure(name, events, error))?;
        if let RequestClaim::Published { matched } = claim {
            tracing::debug!(topic = %name, events, "published before");
            let answer = PublishResponse::new(events, matched);
            return Ok(PublishedRequest {
                answer,
                pressure: received.pressure,
            });
        }
        // First, so that the topic does not count as idle while its events are being written, nor
        // before they are due.
        let now = clock.now();
        let used_at = received.schedule.last_after(now).map_or(now, wait_noted_at);
        let noted = self
            .activity
            .note_topic(&self.payloads, &open.topic, used_at);
        noted.await;
        if let Err(error) = self.refresh_topic(&mut open, &mut received).await {
            idempotency.settle_claim(claim, None).await;
            return Err(note_failure(name, events, error));
        }
        let topic = &*open.topic;
        let now = clock.now();
        let schedule = take(&mut received.schedule);
        if let Some(length) = received.time_to_live {
            for (index, event) in received.events.iter_mut().enumerate() {
                let begins_at = schedule.later_than(now, index).unwrap_or(now);
                event.expire_by(begins_at + length);
            }
        }
        self.signal_wake(&schedule, now).await;
        let slow_groups = Box::pin(self.slow_groups(topic)).await;
        let slow = self.slow_lane.as_ref().zip(slow_groups.as_ref());
        let slow = slow.map(|(lane, groups)| (&lane.queue, groups));
        let fan_out = FanOut {
            deliveries,
            slow,
            payloads,
            clock,
            entropy,
        };
        let request_id = self.request_id(&claim, now);
        let origin = EventOrigin {
            hops: received.hops,
            request_id: request_id.clone(),
            schedule,
            ..EventOrigin::default()
        };
        let inline = self.inline_mode(topic, received.dehydrate);
        let is_recorded = self.log_mode(topic).keeps_attempts();
        let records = self.records.as_ref().filter(|_| is_recorded);
        let acceptance = records.map(|records| AcceptanceLogging {
            records,
            first_attempts_wait: received.first_attempts_wait,
        });
        let accepted = fan_out.accept_events(topic, &received.events, inline, origin, acceptance);
        let written = accepted.await;
        idempotency
            .settle_claim(claim, written.as_ref().ok().map(|written| written.matched))
            .await;
        let written =
            written.map_err(|error| note_failure(name, events, PublishError::Write(error)))?;
        let matched = written.matched;
        let took = self.clock.monotonic().saturating_sub(started);
        meter::count_published(name, events, matched.events, took);
        self.take_spans(name, &received, request_id.as_deref(), took);
        tracing::debug!(
            topic = %name,
            events,
            matched_events = matched.events,
            matched_subscriptions = matched.subscriptions,
            messages = written.messages,
            "published"
        );
        Ok(PublishedRequest {
            answer: PublishResponse::new(events, Some(matched)),
            pressure: received.pressure,
        })
    }

    /// The id from which the events of the request have theirs, where it is known before they are
    /// written: the ids of their spans are made of it, too.
    fn request_id(&self, claim: &RequestClaim, now: Timestamp) -> Option<String> {
        let given = claim.request_id();
        given.or_else(|| {
            let is_traced = self.traces.is_on();
            is_traced.then(|| self.entropy.uuid_at(now).simple().to_string())
        })
    }

    /// Takes the spans of events that were accepted.
    fn take_spans(
        &self,
        topic: &TopicName,
        received: &AdmittedEvents,
        request_id: Option<&str>,
        took: Duration,
    ) {
        let AdmittedEvents {
            request, events, ..
        } = received;
        let accepted = AcceptedEvents {
            topic,
            events,
            request_id,
            headers: &request.headers,
            arrived_at: request.arrived_at,
            took,
        };
        spans::take_event_spans(&self.traces, &accepted);
    }

    /// Tells wake of events that are due before it would look by itself.
    async fn signal_wake(&self, schedule: &EventSchedule, now: Timestamp) {
        let near_end = now + REST_MAX + LOOKED_FOR_WITHIN;
        if schedule.first_after(now).is_none_or(|time| time > near_end) {
            return;
        }
        if let Err(error) = signal_wake(&self.payloads, now).await {
            let error = &error as &dyn Error;
            tracing::warn!(
                error,
                "wake not signalled, scheduled events may go out minutes late"
            );
        }
    }

    /// The groups whose messages take the slow lane. Which targets are slow is looked up only where
    /// the pressure, which every request knows, says that some are.
    async fn slow_groups(&self, topic: &Topic) -> Option<SlowGroups> {
        let lane = self.slow_lane.as_ref()?;
        let pressure = self.pressure.state().await?;
        if !pressure.has_slow_targets() {
            return None;
        }
        // Without an answer they take the quick lane, as they would without a look.
        timeout(&self.clock, LANES_LOOKED_UP_WITHIN, lane.slow_groups(topic)).await
    }

    /// The events that travel in their messages. A larger one is stored once, and then it can also
    /// be sent again by its record of the delivery log.
    fn inline_mode(&self, topic: &Topic, dehydrate: bool) -> InlineEvents {
        let stores_for_log = self.settings.stores_for_log;
        let log = self.log_mode(topic);
        match (dehydrate, stores_for_log && log.keeps_payloads()) {
            (true, _) => InlineEvents::Tiny,
            (false, true) => InlineEvents::Logged,
            (false, false) => InlineEvents::Fitting,
        }
    }

    fn log_mode(&self, topic: &Topic) -> DeliveryLogMode {
        topic.delivery_log.unwrap_or(self.settings.delivery_log)
    }

    /// Waits before the answer to a wrong key. A topic that does not exist has none, and is answered
    /// in the same way, so that nobody learns which topics there are.
    async fn slow_guess(&self, error: PublishError) -> PublishError {
        if !error.is_guess() {
            return error;
        }
        match self.wrong_keys.refuse("publish", &self.clock).await {
            WrongKeyAnswer::Wrong => error,
            WrongKeyAnswer::TooMany => PublishError::TooManyKeys,
        }
    }

    /// The topic of this name, which is looked up for those who show a key alone.
    async fn find_topic_with_key(
        &self,
        name: &str,
        headers: &HeaderMap,
    ) -> Result<Arc<Topic>, PublishError> {
        if !shows_key(headers) {
            return Err(PublishError::NoKey);
        }
        let name = TopicName::parse(name).map_err(|_| PublishError::UnknownTopic)?;
        self.find_topic(&name).await
    }

    async fn find_topic(&self, name: &TopicName) -> Result<Arc<Topic>, PublishError> {
        let found = self.registry.topic(name).await;
        found
            .map_err(PublishError::Registry)?
            .ok_or(PublishError::UnknownTopic)
    }

    /// The topic as it is after a wait, if the request may still be published to it: meanwhile it
    /// may have been deleted, and the key revoked.
    async fn open_topic(
        &self,
        known: &Topic,
        request: &IncomingRequest,
    ) -> Result<OpenTopic, PublishError> {
        let topic = self.find_topic(&known.name).await;
        let topic = topic.map_err(|error| match error {
            PublishError::UnknownTopic => PublishError::DeletedTopic,
            error => error,
        })?;
        if !std::ptr::eq(known, &raw const *topic) {
            authorize(&topic, &request.headers, request.arrived_at)?;
        }
        let seen_at = self.clock.monotonic();
        Ok(OpenTopic { topic, seen_at })
    }

    /// Looks at the topic again if claiming the name took long. Events are parsed again where the
    /// topic has changed.
    async fn refresh_topic(
        &self,
        open: &mut OpenTopic,
        received: &mut AdmittedEvents,
    ) -> Result<(), PublishError> {
        if self.clock.monotonic().saturating_sub(open.seen_at) < LOOK_STANDS {
            return Ok(());
        }
        let now = self.open_topic(&open.topic, &received.request).await?;
        if !Arc::ptr_eq(&now.topic, &open.topic) {
            received.events =
                self.parse_events(&now.topic, &received.request, &mut received.room)?;
            received.schedule = received.schedule_by(&now.topic)?;
        }
        *open = now;
        Ok(())
    }

    /// The events of a request, as the topic takes them.
    fn parse_events(
        &self,
        topic: &Topic,
        request: &IncomingRequest,
        room: &mut OwnedSemaphorePermit,
    ) -> Result<Vec<Event>, PublishError> {
        let request = PublishRequest {
            topic: &topic.name,
            input: self.topic_input(topic),
            headers: &request.headers,
            body: &request.body,
        };
        let parsed = run_off_worker_if_large(request.body.len(), || parse_request(&request));
        let events = parsed.map_err(PublishError::Input)?;
        let envelopes = events
            .iter()
            .filter_map(Event::envelope)
            .map(|envelope| envelope.byte_len())
            .sum::<usize>();
        self.bodies
            .grow_to(room, request.body.len() + envelopes)
            .map_err(PublishError::Body)?;
        Ok(events)
    }

    /// The key, back pressure, the body, the wait, the topic again, the events. The body is read
    /// before the wait, because only a connection that has nothing left to read shows that its
    /// client is gone; it is looked at after the wait. So is the topic. A client that closed its side
    /// may be gone or not: it is answered, and nothing is published.
    async fn receive_events(
        &self,
        topic: &Topic,
        mut headers: HeaderMap,
        mut body: Body,
    ) -> Result<(OpenTopic, AdmittedEvents), PublishError> {
        let arrived_at = self.clock.now();
        let tier =
            authorize(topic, &headers, arrived_at)?.stepping_back_to(declared_tier(&headers)?);
        let hops = Hops::from_request(&headers).map_err(PublishError::Hops)?;
        let key = idempotency::key_from_headers(&headers).map_err(PublishError::Key)?;
        let time_to_live = time_to_live(&headers).map_err(PublishError::TimeToLive)?;
        let not_before = not_before(&headers, arrived_at).map_err(PublishError::NotBefore)?;
        let admitted = self.pressure.admit_to(&topic.name, tier).await;
        let AdmittedRequest {
            wait,
            pressure,
            dehydrate,
            drain,
            mut room,
            place,
        } = self
            .admission_gate()
            .admit_request(topic, tier, admitted, &body)?;
        let body = body::read_body(&mut body, &self.clock, self.settings.body_timeout);
        let body = body.await.map_err(PublishError::Body)?;
        if wait > Duration::ZERO {
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                // It may be gone, and nothing is published for one that is.
                () = client::wait_until_closed() => return Err(PublishError::Closed),
            }
        }
        let body = body::unpack_if_gzip(&mut headers, body, &self.bodies, &mut room);
        let request = IncomingRequest {
            headers,
            body: body.map_err(PublishError::Body)?,
            arrived_at,
        };
        let open = self.open_topic(topic, &request).await?;
        let topic = &*open.topic;
        let events = self.parse_events(topic, &request, &mut room)?;
        let name = key.map(|key| {
            let IncomingRequest { headers, body, .. } = &request;
            run_off_worker_if_large(body.len(), || {
                RequestName::new(key.record_key(topic), headers, body)
            })
        });
        if let Some(place) = place {
            place.keep();
        }
        let mut received = AdmittedEvents {
            request,
            events,
            name,
            hops,
            pressure,
            dehydrate,
            first_attempts_wait: drain >= ACCEPTANCE_WAIT_MIN,
            time_to_live,
            not_before,
            schedule: EventSchedule::default(),
            room,
        };
        received.schedule = received.schedule_by(topic)?;
        Ok((open, received))
    }

    /// The door of this function at this moment.
    fn admission_gate(&self) -> AdmissionGate<'_> {
        let Self {
            bodies,
            advice,
            settings,
            clock,
            ..
        } = self;
        AdmissionGate {
            bodies,
            advice,
            tarpit: settings.tarpit,
            now: clock.monotonic(),
        }
    }

    /// The input that the topic accepts. Chance is drawn only where something is made of it.
    fn topic_input<'t>(&self, topic: &'t Topic) -> TopicInput<'t> {
        match topic.input_schema {
            EventSchema::CloudEvents => TopicInput::CloudEvents,
            EventSchema::EventGrid => TopicInput::EventGrid,
            EventSchema::Custom => {
                let made = GeneratedValues {
                    at: self.clock.now(),
                    seed: self.entropy.uuid().into_bytes(),
                };
                TopicInput::Custom {
                    mapping: &topic.input_mapping,
                    made,
                }
            }
        }
    }
}

impl AdmittedEvents {
    /// The times before which its events are not sent, by a topic as it is now.
    fn schedule_by(&self, topic: &Topic) -> Result<EventSchedule, PublishError> {
        let arrived_at = self.request.arrived_at;
        event_schedule(topic, &self.events, self.not_before, arrived_at)
            .map_err(PublishError::Input)
    }
}

fn note_failure(topic: &TopicName, events: usize, error: PublishError) -> PublishError {
    log_error(topic.as_str(), &error);
    meter::count_failed(topic, events);
    error
}

fn log_error(topic: &str, error: &PublishError) {
    let cause = error as &dyn Error;
    if error.is_ours() {
        tracing::info!(topic, error = cause, "not published");
    } else {
        tracing::debug!(topic, error = cause, "not published");
    }
}
