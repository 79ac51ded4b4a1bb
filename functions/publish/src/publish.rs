//! The steps of a request, in their order.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request};
use posthaste_core::api::PublishAnswer;
use posthaste_core::events::{Event, Input, Made, PublishRequest, parse_request};
use posthaste_core::model::{Hops, Schema, Topic, TopicName};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::{
    Activity, Completing, FanOut, Inline, Origin, PressureReader, Registry, WrongKeyAnswer,
    WrongKeys, client,
};
use tokio::sync::OwnedSemaphorePermit;

use crate::admission::{Admission, Advice, Entered};
use crate::authorize::{authorize, declared_tier, shows_key};
use crate::body::{self, BodyBudget};
use crate::error::PublishError;
use crate::idempotency::{self, Idempotency, RequestClaim, RequestName};
use crate::meter;
use crate::settings::PublishSettings;
use crate::time_to_live::time_to_live;

/// The publish function over its ports.
#[derive(Debug)]
pub struct Publish<P: Ports> {
    /// The delivery queue.
    pub deliveries: P::Queue,
    /// Looks topics up.
    pub registry: Registry<P::Store, P::Clock>,
    /// The state bucket, for payloads that are stored once.
    pub payloads: P::Store,
    /// The pressure that the monitor wrote.
    pub pressure: PressureReader<P::Store, P::Clock>,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
    /// The last use of topics.
    pub activity: Activity,
    /// The memory for bodies.
    pub bodies: BodyBudget,
    /// The turns of topics where the tarpit advises.
    pub advice: Advice,
    /// Keys that were shown and opened nothing.
    pub wrong_keys: WrongKeys,
    /// The treatment of producers.
    pub settings: PublishSettings,
}

/// A request that was published: every matching subscription's delivery is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The events that were accepted, and the subscriptions that matched.
    pub answer: PublishAnswer,
    /// The value of the header `Posthaste-Pressure`, if there is pressure.
    pub pressure: Option<String>,
}

/// The events of a request that was admitted, with the room its body takes.
struct Received {
    events: Vec<Event>,
    /// The name that the producer gave the request, if any.
    name: Option<RequestName>,
    /// How many deliveries of posthaste they came through.
    hops: Hops,
    pressure: Option<String>,
    dehydrate: bool,
    /// Longest life of the events, where the producer gives it.
    time_to_live: Option<Duration>,
    _room: OwnedSemaphorePermit,
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
    ) -> Result<Published, PublishError> {
        let (head, mut body) = request.into_parts();
        let started = self.clock.monotonic();
        let topic = match self.topic(topic, &head.headers).await {
            Ok(topic) => topic,
            Err(error) => {
                log(topic, &error);
                return Err(self.slow_guess(error).await);
            }
        };
        let received = match self.receive(&topic, &head.headers, &mut body).await {
            Ok(received) => received,
            Err(error) => return Err(self.slow_guess(failed(&topic.name, 1, error)).await),
        };
        let this = Arc::clone(self);
        Completing::new(async move { this.write(&topic, received, started).await }).await
    }

    /// Claims the request's name, writes its deliveries and settles the name.
    async fn write(
        &self,
        topic: &Topic,
        mut received: Received,
        started: Duration,
    ) -> Result<Published, PublishError> {
        let (name, events) = (&topic.name, received.events.len());
        let Self {
            deliveries,
            payloads,
            clock,
            entropy,
            ..
        } = self;
        let idempotency = Idempotency::<P> {
            store: payloads,
            clock,
            entropy,
        };
        let claim = idempotency.claim(received.name.as_ref()).await;
        let claim = claim.map_err(|error| failed(name, events, error))?;
        if let RequestClaim::Published { matched } = claim {
            tracing::debug!(topic = %name, events, "published before");
            let answer = PublishAnswer::new(events, matched);
            return Ok(Published {
                answer,
                pressure: received.pressure,
            });
        }
        // First, so that the topic does not count as idle while its events are being written.
        self.activity
            .of_topic(&self.payloads, topic, self.clock.now())
            .await;
        if let Some(length) = received.time_to_live {
            let end = clock.now() + length;
            received
                .events
                .iter_mut()
                .for_each(|event| event.expire_by(end));
        }
        let fan_out = FanOut {
            deliveries,
            payloads,
            clock,
            entropy,
        };
        let origin = Origin {
            hops: received.hops,
            request_id: claim.request_id(),
            ..Origin::default()
        };
        let inline = self.inline(topic, received.dehydrate);
        let written = fan_out.write(topic, &received.events, inline, origin).await;
        idempotency
            .settle(claim, written.as_ref().ok().map(|written| written.matched))
            .await;
        let written = written.map_err(|error| failed(name, events, PublishError::Write(error)))?;
        let matched = written.matched;
        meter::published(
            name,
            events,
            matched.events,
            self.clock.monotonic().saturating_sub(started),
        );
        tracing::debug!(
            topic = %name,
            events,
            matched_events = matched.events,
            matched_subscriptions = matched.subscriptions,
            messages = written.messages,
            "published"
        );
        Ok(Published {
            answer: PublishAnswer::new(events, Some(matched)),
            pressure: received.pressure,
        })
    }

    /// The events that travel in their messages. A larger one is stored once, and then it can also
    /// be sent again by its record of the delivery log.
    fn inline(&self, topic: &Topic, dehydrate: bool) -> Inline {
        let PublishSettings {
            delivery_log,
            stores_for_log,
            ..
        } = self.settings;
        let log = topic.delivery_log.unwrap_or(delivery_log);
        match (dehydrate, stores_for_log && log.keeps_payloads()) {
            (true, _) => Inline::Tiny,
            (false, true) => Inline::Logged,
            (false, false) => Inline::Fitting,
        }
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
    async fn topic(&self, name: &str, headers: &HeaderMap) -> Result<Arc<Topic>, PublishError> {
        if !shows_key(headers) {
            return Err(PublishError::NoKey);
        }
        let name = TopicName::parse(name).map_err(|_| PublishError::UnknownTopic)?;
        let topic = self
            .registry
            .topic(&name)
            .await
            .map_err(PublishError::Registry)?;
        topic.ok_or(PublishError::UnknownTopic)
    }

    /// The key, back pressure, the body, the wait, the events. The body is read before the wait,
    /// because only a connection that has nothing left to read shows that its client is gone;
    /// it is looked at after the wait. A client that closed its side may be gone or not: it is
    /// answered, and nothing is published.
    async fn receive(
        &self,
        topic: &Topic,
        headers: &HeaderMap,
        body: &mut Body,
    ) -> Result<Received, PublishError> {
        let tier =
            authorize(topic, headers, self.clock.now())?.stepping_back(declared_tier(headers)?);
        let hops = Hops::of_request(headers).map_err(PublishError::Hops)?;
        let key = idempotency::key(headers).map_err(PublishError::Key)?;
        let time_to_live = time_to_live(headers).map_err(PublishError::TimeToLive)?;
        let admitted = self.pressure.admit(tier).await;
        let Entered {
            wait,
            pressure,
            dehydrate,
            mut room,
            place,
        } = self.admission().enter(topic, tier, admitted, body)?;
        let body = body::read(body, &self.clock, self.settings.body_timeout);
        let body = body.await.map_err(PublishError::Body)?;
        if wait > Duration::ZERO {
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                // It may be gone, and nothing is published for one that is.
                () = client::closed() => return Err(PublishError::Closed),
            }
        }
        let request = PublishRequest {
            topic: &topic.name,
            input: self.input(topic),
            headers,
            body: &body,
        };
        let events = parse_request(&request).map_err(PublishError::Input)?;
        let envelopes = events
            .iter()
            .filter_map(Event::envelope)
            .map(|envelope| envelope.bytes())
            .sum();
        self.bodies
            .grow(&mut room, envelopes)
            .map_err(PublishError::Body)?;
        let name = key.map(|key| RequestName::new(key.object(topic), headers, &body));
        if let Some(place) = place {
            place.keep();
        }
        Ok(Received {
            events,
            name,
            hops,
            pressure,
            dehydrate,
            time_to_live,
            _room: room,
        })
    }

    /// The door of this function at this moment.
    fn admission(&self) -> Admission<'_> {
        let Self {
            bodies,
            advice,
            settings,
            clock,
            ..
        } = self;
        Admission {
            bodies,
            advice,
            tarpit: settings.tarpit,
            now: clock.monotonic(),
        }
    }

    /// The input that the topic accepts. Chance is drawn only where something is made of it.
    fn input<'t>(&self, topic: &'t Topic) -> Input<'t> {
        match topic.input_schema {
            Schema::CloudEvents => Input::CloudEvents,
            Schema::EventGrid => Input::EventGrid,
            Schema::Custom => {
                let made = Made {
                    at: self.clock.now(),
                    seed: self.entropy.uuid().into_bytes(),
                };
                Input::Custom {
                    mapping: &topic.input_mapping,
                    made,
                }
            }
        }
    }
}

fn failed(topic: &TopicName, events: usize, error: PublishError) -> PublishError {
    log(topic.as_str(), &error);
    meter::failed(topic, events);
    error
}

fn log(topic: &str, error: &PublishError) {
    let cause = error as &dyn Error;
    if error.is_ours() {
        tracing::info!(topic, error = cause, "not published");
    } else {
        tracing::debug!(topic, error = cause, "not published");
    }
}
