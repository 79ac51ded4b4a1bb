//! Rate limiting across workers. The limiter's state is one object per subscription: a worker
//! leases the next slice of time by conditional put and hands out permits from it. Unlimited
//! subscriptions never touch the store.
//!
//! A request whose permit begins within a second or two waits for it here, holding nothing that
//! others need; any other goes back to the queue until about then, without an attempt. A request
//! that was admitted to its link already (its permit was over before, or it is a half of a batch)
//! asks ahead of the others, and waits some seconds.

mod limiter;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use posthaste_core::attempt::{EntryVerdict, RateGrant, RateState, RateToken};
use posthaste_core::model::{RequestRate, Subscription, Timestamp};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, ETag, Ports};
use posthaste_services::stop_at;

use crate::kept::SharedValues;
use crate::shared_state::{SharedStates, StateError, TRIES_MAX, TurnedAwayLine};
use limiter::{SubscriptionRateLimiter, TokenAvailability};

/// The longest wait of an admitted request until its permit begins. Otherwise requests that are not
/// admitted yet could take every permit and lose it while they wait for their link, so that nothing
/// would ever be sent.
pub(crate) const ADMITTED_WAIT_MAX: Duration = Duration::from_secs(5);

/// Limits the rate of requests to each subscription that has a limit.
pub(crate) struct RateLimiter<P: Ports> {
    states: SharedStates<P, ()>,
    clock: P::Clock,
    /// By the key of the stored state.
    limiters: SharedValues<String, SubscriptionRateLimiter>,
}

/// The right to begin a request; without a token, at any time.
#[derive(Debug)]
pub(crate) struct RatePermit(Option<RateToken>);

impl RatePermit {
    /// Whether the request may begin now.
    pub(crate) fn may_begin(&self, now: Timestamp) -> bool {
        self.0.is_none_or(|token| token.is_valid_at(now))
    }
}

impl<P: Ports> RateLimiter<P> {
    pub(crate) fn new(state: Arc<P::Store>, clock: P::Clock) -> Self {
        Self {
            states: SharedStates::new(state, clock.clone()),
            clock,
            limiters: SharedValues::new(),
        }
    }

    /// Waits for the permit of a request until `last_start`, the last moment at which it could
    /// begin, and no longer than `patience` until there is one. An `Err` is the verdict over
    /// its events if it gets none.
    pub(crate) async fn wait_for_permit(
        &self,
        subscription: &Subscription,
        last_start: Option<Duration>,
        patience: Duration,
    ) -> Result<RatePermit, EntryVerdict> {
        match subscription.rate {
            None => Ok(RatePermit(None)),
            Some(rate) => Box::pin(self.permit_at(rate, subscription, last_start, patience)).await,
        }
    }

    async fn permit_at(
        &self,
        rate: RequestRate,
        subscription: &Subscription,
        last_start: Option<Duration>,
        patience: Duration,
    ) -> Result<RatePermit, EntryVerdict> {
        let end = last_start.ok_or(EntryVerdict::NotStarted)?;
        let token = self.wait_for_token(subscription, rate, self.clock.now() + patience);
        let token = stop_at(&self.clock, end, token)
            .await
            .unwrap_or(Err(EntryVerdict::NotStarted));
        token.map(|token| RatePermit(Some(token)))
    }

    /// Waits until a token begins. If none begins before `until`, the events wait in the queue
    /// instead.
    async fn wait_for_token(
        &self,
        subscription: &Subscription,
        rate: RequestRate,
        until: Timestamp,
    ) -> Result<RateToken, EntryVerdict> {
        let key = layout::rate_state_key(&subscription.topic, &subscription.name);
        loop {
            let limiter = self.limiters.get(&key, SubscriptionRateLimiter::default);
            let waiting = limiter.begin_wait();
            let again = match self.take_token(&key, rate, &limiter).await {
                Ok(Ok(token)) => {
                    drop(waiting);
                    self.sleep_until(token.from).await;
                    return Ok(token);
                }
                Ok(Err(nothing_before)) => {
                    let again = RequestRate::asks_again(nothing_before);
                    let now = self.clock.now();
                    if again <= now || again > until {
                        let line = &mut limiter.state.lock().line;
                        let not_before = line.join_line(rate, rate, nothing_before, now);
                        return Err(EntryVerdict::Postponed { not_before });
                    }
                    again
                }
                Err(error) => {
                    tracing::warn!(
                        topic = %subscription.topic, subscription = %subscription.name,
                        error = &*error as &dyn std::error::Error, "the rate is not known, events postponed"
                    );
                    return Err(self.states.unknown_limit_verdict());
                }
            };
            drop(waiting);
            self.sleep_until(again).await;
        }
    }

    async fn sleep_until(&self, time: Timestamp) {
        self.clock.sleep(time.since(self.clock.now())).await;
    }

    /// A token of the current lease, or of a new one; or the time before which there is none. Of
    /// the requests that wait, one asks the store, and the others share the answer.
    async fn take_token(
        &self,
        key: &str,
        rate: RequestRate,
        limiter: &SubscriptionRateLimiter,
    ) -> Result<Result<RateToken, Timestamp>, Arc<StateError>> {
        for _ in 0..TRIES_MAX {
            let available = limiter.state.lock().next_token(rate, self.clock.now());
            match available {
                TokenAvailability::Token(token) => return Ok(Ok(token)),
                TokenAvailability::NothingBefore(time) => return Ok(Err(time)),
                TokenAvailability::Unknown => {
                    self.states
                        .ask_once(key, || self.lease_slice(key, rate, limiter))
                        .await?;
                }
            }
        }
        Ok(Err(self.clock.now()))
    }

    /// Leases the next slice of time, if no other worker has taken it since the state was read. The
    /// limiter's state says what came of it.
    async fn lease_slice(
        &self,
        key: &str,
        rate: RequestRate,
        limiter: &SubscriptionRateLimiter,
    ) -> Result<(), StateError> {
        // The state is unknown until it is learned again: an answer may be lost, or this request
        // dropped.
        let known = limiter.state.lock().stored.take();
        let stored = match known {
            Some(stored) => Some(stored),
            None => self.read_state(key).await?,
        };
        let now = self.clock.now();
        let wanted = limiter.waiting.load(Ordering::Relaxed);
        let (lease, next) =
            match rate.take_lease(stored.as_ref().map(|(state, _)| *state), wanted, now) {
                RateGrant::NothingBefore(_) => {
                    limiter.state.lock().stored = stored;
                    return Ok(());
                }
                RateGrant::Lease(lease, next) => (lease, next),
            };
        if stored.as_ref().is_none_or(|(state, _)| state.is_idle(now)) {
            // No request waits in the line any more.
            limiter.state.lock().line = TurnedAwayLine::default();
        }
        let last = stored.map(|(_, etag)| etag);
        if let Some(etag) = self.states.write_state(key, next.render(), last).await? {
            let mut state = limiter.state.lock();
            state.lease = Some(lease);
            state.stored = Some((next, etag));
        }
        Ok(())
    }

    async fn read_state(&self, key: &str) -> Result<Option<(RateState, ETag)>, StateError> {
        let Some(object) = self.states.read_state(key).await? else {
            return Ok(None);
        };
        Ok(Some((RateState::parse(&object.bytes)?, object.etag)))
    }
}

#[cfg(test)]
mod tests {
    use posthaste_ports::ErrorKind;
    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};
    use serde_json::json;

    use super::*;
    use crate::limits::OUR_FAULT_WAIT;
    use crate::testing::{START, TestPorts, World, secs, subscription};

    const LAST_START: Option<Duration> = Some(secs(60));

    fn limiter(world: &World) -> RateLimiter<TestPorts> {
        RateLimiter::new(Arc::clone(&world.state), world.clock.clone())
    }

    fn limited() -> Arc<Subscription> {
        let url = "https://billing.example.com/hooks";
        subscription(json!({ "endpoint": { "url": url, "maxRequestsPerSecond": 100.0 } }))
    }

    #[tokio::test]
    async fn an_unlimited_subscription_never_touches_the_store() {
        let world = World::new();
        let permit = limiter(&world)
            .wait_for_permit(&subscription(json!({})), LAST_START, secs(0))
            .await
            .unwrap();
        assert!(permit.may_begin(START) && permit.may_begin(START + secs(100_000)));
        assert_eq!(world.calls.all().len(), 0);
    }

    #[tokio::test]
    async fn a_permit_holds_for_a_while() {
        let world = World::new();
        let own = limited();
        let permit = limiter(&world)
            .wait_for_permit(&own, LAST_START, secs(0))
            .await
            .unwrap();
        assert!(permit.may_begin(START) && !permit.may_begin(START + secs(600)));
        assert_eq!(
            (
                world.calls.count(PortOperation::Get),
                world.calls.count(PortOperation::Put)
            ),
            (1, 1)
        );
    }

    #[tokio::test]
    async fn requests_that_wait_together_share_one_lease() {
        let world = World::new();
        let own = limited();
        let limiter = limiter(&world);
        let permits = futures_util::future::join_all(
            (0..3).map(|_| async { limiter.wait_for_permit(&own, LAST_START, secs(0)).await }),
        );
        let advance = async {
            for _ in 0..200 {
                tokio::task::yield_now().await;
                if world.calls.count(PortOperation::Put) > 0 {
                    world.clock.advance(Duration::from_millis(100));
                }
            }
        };
        let (permits, ()) = tokio::join!(permits, advance);
        assert!(permits.iter().any(Result::is_ok));
        assert_eq!(world.calls.count(PortOperation::Put), 1);
    }

    #[tokio::test]
    async fn past_its_last_start_a_request_is_not_started() {
        let world = World::new();
        let own = limited();
        world.clock.advance(secs(61));
        for last_start in [LAST_START, None] {
            let verdict = limiter(&world)
                .wait_for_permit(&own, last_start, secs(0))
                .await
                .unwrap_err();
            assert_eq!(verdict, EntryVerdict::NotStarted);
        }
        assert_eq!(world.calls.all().len(), 0);
    }

    /// It does not wait here for longer than it may.
    #[tokio::test]
    async fn request_whose_turn_is_far_is_postponed_at_once() {
        let url = "https://billing.example.com/hooks";
        let own = subscription(json!({ "endpoint": { "url": url, "maxRequestsPerSecond": 0.1 } }));
        let world = World::new();
        let limiter = limiter(&world);
        let first = limiter.wait_for_permit(&own, LAST_START, secs(0)).await;
        assert!(first.is_ok());
        let time = async {
            loop {
                tokio::task::yield_now().await;
                world.clock.advance_to_next();
            }
        };
        let second = tokio::select! {
            biased;
            second = limiter.wait_for_permit(&own, LAST_START, secs(1)) => second,
            () = time => unreachable!("time goes on"),
        };
        let not_before = START + secs(10);
        assert_eq!(second.err(), Some(EntryVerdict::Postponed { not_before }));
        assert_eq!(world.clock.now(), START);
    }

    #[tokio::test]
    async fn events_are_postponed_while_the_rate_is_unknown() {
        let world = World::with(
            &FaultPlan::nth(0, CallFault::Before(ErrorKind::Other)),
            &FaultPlan::none(),
        );
        let verdict = limiter(&world)
            .wait_for_permit(&limited(), LAST_START, secs(0))
            .await
            .unwrap_err();
        assert_eq!(
            verdict,
            EntryVerdict::Postponed {
                not_before: START + OUR_FAULT_WAIT
            }
        );
    }
}
