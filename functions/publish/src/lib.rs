#![doc = include_str!("../README.md")]

mod body;
mod error;
mod key;
mod meter;
mod once;
mod router;
mod time_to_live;
mod turn_away;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request};
use posthaste_core::events::{Event, Input, Made, PublishRequest, parse_request};
use posthaste_core::model::hops::Hops;
use posthaste_core::model::name::TopicName;
use posthaste_core::model::schema::Schema;
use posthaste_core::model::topic::Topic;
use posthaste_core::pressure::Tier;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};
use posthaste_services::{Activity, FanOut, Origin, PressureReader, Registry};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

pub use crate::body::{BodyBudget, BodyError};
pub use crate::error::{PublishError, RETRY_AFTER_DEFAULT, TurnedAway};
pub use crate::once::IDEMPOTENCY_KEY_HEADER;
use crate::once::Name;
pub use crate::router::{PRESSURE_HEADER, router};
pub use crate::time_to_live::{TIME_TO_LIVE_HEADER, TimeToLiveError};
pub use crate::turn_away::Advice;
use crate::turn_away::Entered;

/// The header in which a producer declares its tier. It can step back behind the tier of its key, never before it:
/// `bulk` means something with every key, `standard` with an internal one.
pub const TIER_HEADER: &str = "posthaste-tier";

/// What the tarpit does to a producer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tarpit {
    /// Its acknowledgement waits.
    #[default]
    Delay,
    /// It is told to come back after the wait (429), and nothing of its request is accepted; but one request of each topic
    /// goes on in that time. For where a held acknowledgement costs money and concurrency, as in Lambda.
    Advise,
}

/// How the function treats its producers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishSettings {
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// What the tarpit does.
    pub tarpit: Tarpit,
}

/// The publish function: what it needs.
#[derive(Debug)]
pub struct Publish<Q, S, C, E> {
    /// The delivery queue.
    pub deliveries: Q,
    /// Looks topics up.
    pub registry: Registry<S, C>,
    /// The state bucket, for payloads that are stored once.
    pub payloads: S,
    /// What the monitor wrote.
    pub pressure: PressureReader<S, C>,
    /// Time.
    pub clock: C,
    /// Chance.
    pub entropy: E,
    /// When something last happened to the topics.
    pub activity: Activity,
    /// The memory for bodies.
    pub bodies: BodyBudget,
    /// Whose turn it is where the tarpit advises.
    pub advice: Advice,
    /// How it treats its producers.
    pub settings: PublishSettings,
}

/// A request that was published: every matching subscription's delivery is durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// What its producer is told of the pressure, if there is any.
    pub pressure: Option<String>,
}

/// The events of a request that was admitted, with the room its body takes.
struct Received {
    events: Vec<Event>,
    /// The name its producer gave it, if any.
    name: Option<Name>,
    /// How many deliveries of posthaste they came through.
    hops: Hops,
    pressure: Option<String>,
    dehydrate: bool,
    /// How long its events live at most, where its producer says so.
    time_to_live: Option<Duration>,
    _room: OwnedSemaphorePermit,
}

impl Default for PublishSettings {
    /// A body has a minute, as long as the slowest acknowledgement.
    fn default() -> Self {
        Self { body_timeout: Duration::from_mins(1), tarpit: Tarpit::default() }
    }
}

impl<Q, S, C, E> Publish<Q, S, C, E>
where
    Q: QueueSender + 'static,
    S: ObjectStore + 'static,
    C: Clock,
    E: Entropy,
{
    /// Publishes one request to the topic of this name. `Ok` means that every matching subscription's delivery is
    /// durable. A future that is dropped before its wait is over has published nothing; what is dropped later is published
    /// to the end all the same, so that no half of a request is left behind and no name unsettled.
    ///
    /// Every outcome is logged and counted here.
    pub async fn publish(
        self: &Arc<Self>,
        topic: &str,
        request: Request<Body>,
    ) -> Result<Published, PublishError> {
        let (head, mut body) = request.into_parts();
        self.accept(topic, &head.headers, &mut body).await
    }

    async fn accept(
        self: &Arc<Self>,
        topic: &str,
        headers: &HeaderMap,
        body: &mut Body,
    ) -> Result<Published, PublishError> {
        let started = self.clock.monotonic();
        let topic = self.topic(topic).await.inspect_err(|error| log(topic, error))?;
        let received = self.receive(&topic, headers, body).await;
        let received = received.map_err(|error| failed(&topic.name, 1, error))?;
        let this = Arc::clone(self);
        uncut(async move { this.write(&topic, received, started).await }).await
    }

    /// Takes the request's turn, writes its deliveries and settles its name.
    async fn write(
        &self,
        topic: &Topic,
        mut received: Received,
        started: Duration,
    ) -> Result<Published, PublishError> {
        let (name, events) = (&topic.name, received.events.len());
        let turn = self.take_turn(received.name.as_ref()).await;
        let turn = turn.map_err(|error| failed(name, events, error))?;
        if turn.is_over() {
            tracing::debug!(topic = %name, events, "published before");
            return Ok(Published { pressure: received.pressure });
        }
        let Self { deliveries, payloads, clock, entropy, .. } = self;
        // First, so that nobody finds the topic idle while its events are being written.
        self.activity.of_topic(&self.payloads, topic, self.clock.now()).await;
        if let Some(length) = received.time_to_live {
            let end = clock.now() + length;
            received.events.iter_mut().for_each(|event| event.expire_by(end));
        }
        let fan_out = FanOut { deliveries, payloads, clock, entropy };
        let origin = Origin { hops: received.hops, ..Origin::default() };
        let written = fan_out.write(topic, &received.events, received.dehydrate, origin).await;
        self.end_turn(turn, written.is_ok()).await;
        let written = written.map_err(|error| failed(name, events, PublishError::Write(error)))?;
        meter::published(name, events, written.matched, self.clock.monotonic().saturating_sub(started));
        tracing::debug!(topic = %name, events, written.matched, written.messages, "published");
        Ok(Published { pressure: received.pressure })
    }

    async fn topic(&self, name: &str) -> Result<Arc<Topic>, PublishError> {
        let name = TopicName::parse(name).map_err(|_| PublishError::UnknownTopic)?;
        let topic = self.registry.topic(&name).await.map_err(PublishError::Registry)?;
        topic.ok_or(PublishError::UnknownTopic)
    }

    /// The tier to which a key or token opens the topic.
    fn opened(&self, topic: &Topic, headers: &HeaderMap) -> Result<Tier, PublishError> {
        let now = self.clock.now();
        let has_expired = || key::has_expired_token(topic, headers, now);
        let why = || if has_expired() { PublishError::Expired } else { PublishError::Unauthorized };
        key::tier(topic, headers, now).ok_or_else(why)
    }

    /// The key, back pressure, the body, the wait, the events. The body is read before the wait, because only a
    /// connection that has nothing left to read shows that its client is gone; it is looked at after the wait.
    async fn receive(
        &self,
        topic: &Topic,
        headers: &HeaderMap,
        body: &mut Body,
    ) -> Result<Received, PublishError> {
        let opened = self.opened(topic, headers)?;
        let tier = opened.stepping_back(declared_tier(headers)?);
        let hops = Hops::of_request(headers).map_err(PublishError::Hops)?;
        let key = once::key(headers).map_err(PublishError::Key)?;
        let time_to_live = time_to_live::time_to_live(headers).map_err(PublishError::TimeToLive)?;
        let admitted = self.pressure.admit(tier).await;
        let Entered { wait, pressure, dehydrate, mut room, place } =
            self.enter(topic, tier, admitted, body)?;
        let body = body::read(body, &self.clock, self.settings.body_timeout);
        let body = body.await.map_err(PublishError::Body)?;
        if wait > Duration::ZERO {
            self.clock.sleep(wait).await;
        }
        let request = PublishRequest { topic: &topic.name, input: self.input(topic), headers, body: &body };
        let events = parse_request(&request).map_err(PublishError::Input)?;
        let envelopes = events.iter().filter_map(Event::envelope).map(|envelope| envelope.bytes()).sum();
        self.bodies.grow(&mut room, envelopes).map_err(PublishError::Body)?;
        let name = key.map(|key| Name { object: key.object(topic), digest: once::digest(headers, &body) });
        if let Some(place) = place {
            place.keep();
        }
        Ok(Received { events, name, hops, pressure, dehydrate, time_to_live, _room: room })
    }

    /// What the topic takes. Chance is asked for only where something is made of it.
    fn input<'t>(&self, topic: &'t Topic) -> Input<'t> {
        match topic.input_schema {
            Schema::CloudEvents => Input::CloudEvents,
            Schema::EventGrid => Input::EventGrid,
            Schema::Custom => {
                let made = Made { at: self.clock.now(), seed: self.entropy.uuid().into_bytes() };
                Input::Custom { mapping: &topic.input_mapping, made }
            }
        }
    }
}

/// The tier a producer says it is of, written in any case. One that is none is not passed over: whoever meant to step back
/// would publish as the others do, and never learn it.
fn declared_tier(headers: &HeaderMap) -> Result<Option<Tier>, PublishError> {
    let Some(value) = headers.get(TIER_HEADER).filter(|value| !value.is_empty()) else { return Ok(None) };
    let tier = value.to_str().ok().and_then(|text| Tier::parse(&text.to_ascii_lowercase()));
    tier.map(Some).ok_or(PublishError::Tier)
}

/// Runs to its end also when nobody waits for it any more: a server drops what it does for a client that is gone.
async fn uncut<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being taken down, and whoever waits here with it.
            Err(_) => std::future::pending().await,
        },
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
