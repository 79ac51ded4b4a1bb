//! Turns: how requests of a subscription with a bound on its rate wait for their right to begin. What may be had is
//! `posthaste_core::attempt::rate`'s; here it is asked of the state bucket, once for all requests that wait at that moment.
//!
//! A request whose turn comes within a second or two waits for it here, holding nothing that others need; any other goes
//! back to the queue until about then, without an attempt. One that has its lane already (its turn was over before it had
//! that, or it is a half of a batch) asks ahead of the others, and waits some seconds. Who has no bound asks nobody.

mod known;
mod lease;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use posthaste_core::attempt::rate::{Rate, Token};
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::Subscription;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Ports};

use crate::Deliver;
use crate::intake::{OUR_FAULT_WAIT, Planned};
use crate::invocation::Invocation;
pub(crate) use known::Rates;
use known::{AtHand, Limited};
use lease::LeaseError;

/// How often a lease is asked for until a request has its turn. Where it has none by then, other workers or other requests
/// took every one, or they came too late to be of use.
const TRIES_MAX: u32 = 5;

/// How long a request that has its lane waits until there is a turn for it: else those that have none yet could take every
/// turn and lose it while they wait for a lane, and nothing would ever be sent.
pub(crate) const LANE_KEPT_FOR_TURN_MAX: Duration = Duration::from_secs(5);

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

impl<P: Ports> Deliver<P> {
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
        match self.take(&key, rate, &limited).await {
            Ok(Ok(token)) => Ok(Asked::Token(token)),
            Ok(Err(nothing_before)) => {
                let (again, now) = (Rate::asks_again(nothing_before), self.ports.clock.now());
                if again > now && again <= until {
                    return Ok(Asked::Again(again));
                }
                let not_before = limited.known.lock().line_up(rate, nothing_before, now);
                Err(EntryVerdict::Postponed { not_before })
            }
            Err(error) => {
                tracing::warn!(topic = %subscription.topic, subscription = %subscription.name, error = &*error as &dyn std::error::Error, "the rate cannot be told, events postponed");
                Err(EntryVerdict::Postponed { not_before: self.ports.clock.now() + OUR_FAULT_WAIT })
            }
        }
    }

    /// A token of the lease that there is, or of a new one; or the time before which there is none. One asks the store,
    /// and the others wait for what it brings.
    async fn take(
        &self,
        key: &str,
        rate: Rate,
        limited: &Limited,
    ) -> Result<Result<Token, Timestamp>, Arc<LeaseError>> {
        for _ in 0..TRIES_MAX {
            let at_hand = limited.known.lock().at_hand(rate, self.ports.clock.now());
            match at_hand {
                AtHand::Token(token) => return Ok(Ok(token)),
                AtHand::NothingBefore(time) => return Ok(Err(time)),
                AtHand::Unknown => self.rates.asked.run(key, || self.lease(key, rate, limited)).await?,
            }
        }
        Ok(Err(self.ports.clock.now()))
    }
}
