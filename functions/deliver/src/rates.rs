//! Turns: how requests of a subscription with a bound on its rate wait for their right to begin. What may be had is
//! `posthaste_core::rate`'s; here it is asked of the state bucket, once for all requests that wait at that moment.
//!
//! A request whose turn comes within seconds waits for it here, holding nothing that others need; any other goes back to
//! the queue until about then, without an attempt. Who has no bound asks nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

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
    /// When the last one that found nothing is to come back.
    line: Option<Timestamp>,
}

/// The right to begin a request; without a token, at any time.
#[derive(Debug)]
pub(crate) struct Turn(Option<Token>);

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
    /// Waits for the turn of a request, but not past the last moment at which it could begin. An `Err` is the verdict
    /// over its events where there is none.
    pub(crate) async fn turn(
        &self,
        invocation: &Invocation,
        planned: &Planned,
    ) -> Result<Turn, EntryVerdict> {
        let subscription = &*planned.subscription;
        let Some(rate) = subscription.rate else { return Ok(Turn(None)) };
        let end = invocation.last_start(subscription.timeout).ok_or(EntryVerdict::NotStarted)?;
        let turn = async {
            let token = self.token(subscription, rate).await?;
            self.ports.clock.sleep(token.from.since(self.ports.clock.now())).await;
            Ok(Turn(Some(token)))
        };
        self.before(end, turn).await.unwrap_or(Err(EntryVerdict::NotStarted))
    }

    async fn token(&self, subscription: &Subscription, rate: Rate) -> Result<Token, EntryVerdict> {
        let key = layout::rate(&subscription.topic, &subscription.name);
        let limited = self.rates.of(&key);
        let _waiting = Waiting::enter(&limited.waiting);
        let mut known = limited.known.lock().await;
        match self.take(&key, rate, &limited.waiting, &mut known).await {
            Ok(token) => token.map_err(|not_before| EntryVerdict::Postponed { not_before }),
            Err(error) => {
                tracing::warn!(topic = %subscription.topic, subscription = %subscription.name, error = &error as &dyn std::error::Error, "the rate cannot be told, events postponed");
                Err(EntryVerdict::Postponed { not_before: self.ports.clock.now() + OUR_FAULT_WAIT })
            }
        }
    }

    /// A token of the lease that there is, or of a new one; or when to come back.
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
                return Ok(Err(known.line_up(rate, time, now)));
            }
            if known.state.is_none() {
                known.state = self.read(key).await?;
            }
            // The other requests of the invocation come to wait first, so that one lease serves them all.
            tokio::task::yield_now().await;
            let (now, wanted) = (self.ports.clock.now(), waiting.load(Ordering::Relaxed));
            match rate.take(known.state.as_ref().map(|(state, _)| *state), wanted, now) {
                Grant::NothingBefore(time) => return Ok(Err(known.line_up(rate, time, now))),
                Grant::Lease(lease, next) => self.write(key, lease, next, known).await?,
            }
        }
        let now = self.ports.clock.now();
        Ok(Err(known.line_up(rate, now, now)))
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
        let place = rate.line_up(self.line, nothing_before, now);
        self.line = Some(place);
        // In whole seconds, as queues count, so that events of one message that come back together stay together.
        Timestamp::from_millis(place.as_millis().next_multiple_of(1000))
    }
}
