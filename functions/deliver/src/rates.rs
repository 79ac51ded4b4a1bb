//! Turns: how requests of a subscription with a bound on its rate wait for their right to begin. What may be had is
//! `posthaste_core::rate`'s; here it is asked of the state bucket, once for all requests that wait at that moment.
//!
//! A request whose turn comes within a second or two waits for it here, holding nothing that others need; any other goes
//! back to the queue until about then, without an attempt. One that has its lane already (its turn was over before it had
//! that, or it is a half of a batch) asks ahead of the others, and waits some seconds. Who has no bound asks nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_core::layout;
use posthaste_core::rate::{Grant, Lease, Rate, RateState, Token};
use posthaste_core::settle::EntryVerdict;
use posthaste_core::time::Timestamp;
use posthaste_core::topic::Subscription;
use posthaste_ports::{
    Clock, ETag, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueReceiver, QueueSender,
    WebhookClient,
};

use crate::Deliver;
use crate::intake::{OUR_FAULT_WAIT, Planned};
use crate::invocation::{Invocation, lock};

/// How often a lost race for a lease is run again. Each one lost was another worker's lease.
const TRIES_MAX: u32 = 5;

/// How long a request that has its lane waits until there is a turn for it: else those that have none yet could take every
/// turn and lose it while they wait for a lane, and nothing would ever be sent.
pub(crate) const LANE_KEPT_FOR_TURN_MAX: Duration = Duration::from_secs(5);

/// Above so many subscriptions, those for which nobody waits are forgotten.
const LIMITED_KEPT_MAX: usize = 4096;

/// The subscriptions with a bound that this process has met.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    limited: Mutex<HashMap<String, Arc<Limited>>>,
}

/// What this process knows of one of them.
#[derive(Debug, Default)]
struct Limited {
    /// How many requests wait for a turn.
    waiting: AtomicU32,
    /// One asks the store at a time; the others then find what it brought.
    known: tokio::sync::Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    lease: Option<Lease>,
    /// What the object said last.
    state: Option<(RateState, ETag)>,
    /// When the last one that found nothing is to come back, and at which rate they do.
    line: Option<(Rate, Timestamp)>,
}

/// The right to begin a request; without a token, at any time.
#[derive(Debug)]
pub(crate) struct Turn(Option<Token>);

/// What came of asking for a turn.
enum Asked {
    Token(Token),
    /// Ask again then.
    Again(Timestamp),
}

/// Counts a request as waiting for as long as it lives.
struct Waiting<'a>(&'a AtomicU32);

/// Why nothing can be said about a rate.
#[derive(Debug, thiserror::Error)]
enum RateError {
    #[error("failed to reach the state of the rate")]
    Store(#[from] PortError),
    #[error("failed to understand the state of the rate")]
    State(#[from] posthaste_core::rate::RateStateError),
}

impl Turn {
    /// Whether the request may begin now.
    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        self.0.is_none_or(|token| token.holds(now))
    }
}

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Rates {
    fn of(&self, key: &str) -> Arc<Limited> {
        let mut limited = lock(&self.limited);
        if let Some(known) = limited.get(key) {
            return Arc::clone(known);
        }
        if limited.len() >= LIMITED_KEPT_MAX {
            limited.retain(|_, known| Arc::strong_count(known) > 1);
        }
        let new = Arc::<Limited>::default();
        limited.insert(key.to_owned(), Arc::clone(&new));
        new
    }
}

impl<Q, S, W, C, E> Deliver<Q, S, W, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    W: WebhookClient,
    C: Clock,
    E: Entropy,
{
    /// Waits for the turn of a request, but not past the last moment at which it could begin, and so long until there is
    /// any. An `Err` is the verdict over its events where there is none.
    pub(crate) async fn turn(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        patience: Duration,
    ) -> Result<Turn, EntryVerdict> {
        let subscription = &*planned.subscription;
        let Some(rate) = subscription.rate else { return Ok(Turn(None)) };
        let end = invocation.last_start(subscription.timeout).ok_or(EntryVerdict::NotStarted)?;
        let clock = &self.ports.clock;
        let until = clock.now() + patience;
        let turn = async {
            loop {
                match self.token(subscription, rate, until).await? {
                    Asked::Token(token) => {
                        clock.sleep(token.from.since(clock.now())).await;
                        return Ok(Turn(Some(token)));
                    }
                    Asked::Again(at) => clock.sleep(at.since(clock.now())).await,
                }
            }
        };
        self.before(end, turn).await.unwrap_or(Err(EntryVerdict::NotStarted))
    }

    async fn token(
        &self,
        subscription: &Subscription,
        rate: Rate,
        until: Timestamp,
    ) -> Result<Asked, EntryVerdict> {
        let key = layout::rate(&subscription.topic, &subscription.name);
        let limited = self.rates.of(&key);
        let _waiting = Waiting::enter(&limited.waiting);
        let mut known = limited.known.lock().await;
        match self.take(&key, rate, &limited.waiting, &mut known).await {
            Ok(Ok(token)) => Ok(Asked::Token(token)),
            Ok(Err(nothing_before)) => {
                let (again, now) = (Rate::asks_again(nothing_before), self.ports.clock.now());
                if again > now && again <= until {
                    return Ok(Asked::Again(again));
                }
                Err(EntryVerdict::Postponed { not_before: known.line_up(rate, nothing_before, now) })
            }
            Err(error) => {
                tracing::warn!(topic = %subscription.topic, subscription = %subscription.name, error = &error as &dyn std::error::Error, "the rate cannot be told, events postponed");
                Err(EntryVerdict::Postponed { not_before: self.ports.clock.now() + OUR_FAULT_WAIT })
            }
        }
    }

    /// A token of the lease that there is, or of a new one; or the time before which there is none.
    async fn take(
        &self,
        key: &str,
        rate: Rate,
        waiting: &AtomicU32,
        known: &mut Known,
    ) -> Result<Result<Token, Timestamp>, RateError> {
        for _ in 0..TRIES_MAX {
            let now = self.ports.clock.now();
            let lease = known.lease.as_mut().filter(|lease| lease.is_of(rate));
            if let Some(token) = lease.and_then(|lease| lease.token(now)) {
                return Ok(Ok(token));
            }
            known.lease = None;
            if let Some(time) = known.state.as_ref().and_then(|(state, _)| state.gives_nothing(now)) {
                return Ok(Err(time));
            }
            if known.state.is_none() {
                known.state = self.read(key).await?;
            }
            // The other requests of the invocation come to wait first, so that one lease serves them all.
            tokio::task::yield_now().await;
            let (now, wanted) = (self.ports.clock.now(), waiting.load(Ordering::Relaxed));
            match rate.take(known.state.as_ref().map(|(state, _)| *state), wanted, now) {
                Grant::NothingBefore(time) => return Ok(Err(time)),
                Grant::Lease(lease, next) => {
                    if known.state.as_ref().is_none_or(|(state, _)| state.is_idle(now)) {
                        known.line = None;
                    }
                    self.write(key, lease, next, known).await?;
                }
            }
        }
        Ok(Err(self.ports.clock.now()))
    }

    async fn read(&self, key: &str) -> Result<Option<(RateState, ETag)>, RateError> {
        let Some(object) = self.ports.state.get(key).await? else { return Ok(None) };
        Ok(Some((RateState::parse(&object.bytes)?, object.etag)))
    }

    /// Takes the lease, if nobody else has taken one since the state was read.
    async fn write(
        &self,
        key: &str,
        lease: Lease,
        next: RateState,
        known: &mut Known,
    ) -> Result<(), RateError> {
        // Forgotten until it is known that the lease is had: an answer may be lost.
        let condition = match known.state.take() {
            Some((_, etag)) => PutCondition::IfMatch(etag),
            None => PutCondition::IfAbsent,
        };
        match self.ports.state.put(key, next.render(), condition).await {
            Ok(etag) => {
                known.lease = Some(lease);
                known.state = Some((next, etag));
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Known {
    /// When a request that found nothing comes back.
    fn line_up(&mut self, rate: Rate, nothing_before: Timestamp, now: Timestamp) -> Timestamp {
        let last = self.line.filter(|(of, _)| *of == rate).map(|(_, last)| last);
        let place = rate.line_up(last, nothing_before, now);
        self.line = Some((rate, place));
        // In whole seconds, as queues count, so that events of one message that come back together stay together.
        Timestamp::from_millis(place.as_millis().next_multiple_of(1000))
    }
}
