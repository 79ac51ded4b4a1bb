//! The bound on the open requests of a subscription, over all workers. Its state is one object per
//! subscription: a worker leases slots by conditional put, lets its requests use them one after the
//! other, and gives back what none has a use for. Subscriptions without a bound never touch the
//! store.
//!
//! A request that finds no slot waits a while for one of this worker, or for a moment where this
//! worker has none, holding nothing that others need. For longer it goes back to the queue, without
//! an attempt.

mod limiter;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_immediate;
use posthaste_core::attempt::{DrawnJitter, EntryVerdict, SlotState};
use posthaste_core::model::{FormatError, SlotLimit, Subscription, Timestamp};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::{stop_at, timeout};

use crate::deadlines::InvocationDeadlines;
use crate::kept::SharedValues;
use crate::shared_state::{SharedStates, StateError, TRIES_MAX, TurnedAwayLine};
use limiter::{
    ClaimedSlots, KnownSlotState, OpenRequest, RequestBound, SubscriptionSlots, TakenSlot,
};

/// The longest wait of a request for a slot of its worker. The message of one that waits longer is
/// better off in the queue, and the invocation ends.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The longest wait of a request whose worker has no slot: as long as the queue would delay it.
/// The invocation may wait for nothing else.
const WAIT_WITHOUT_MAX: Duration = Duration::from_secs(1);

/// The shortest time, and the longest, after which a waiting request looks again whether other
/// workers have given slots back. It is drawn, so that workers do not all look at once and be in
/// each other's way.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(750)];

/// The time for which a worker keeps slots that none of its requests has a use for, while others of
/// its requests are open: those that began together mostly end together, and then all are given
/// back by one write.
const UNUSED_KEPT: Duration = Duration::from_secs(1);

/// The shortest time after which a request comes back that found no slot: the unit in which SQS
/// delays.
const TURNED_AWAY_MIN: Duration = Duration::from_secs(1);

/// The longest line of requests that found no slot; one that is longer starts again. Its pace is a
/// guess by what requests took so far: the server may be quick again, or the slots of a worker that
/// died become free, and what has its place in the queue does not come back earlier.
const LINE_MAX: Duration = Duration::from_mins(2);

/// The longest time for giving slots back, so that an invocation settles its messages in time.
/// After it they are free when their lease ends.
const GIVING_BACK_MAX: Duration = Duration::from_secs(2);

/// The longest wait after another worker was ahead of a write that gives slots back. Fifty workers
/// may end together, and one write takes some tens of milliseconds.
const OVERTAKEN_WAIT_MAX: Duration = Duration::from_millis(200);

/// Bounds the open requests of each subscription that has a bound.
pub(crate) struct SlotLimiter<P: Ports> {
    /// Answers whether something has changed, so that a request may look again.
    states: SharedStates<P, bool>,
    /// Slots that are being given back.
    returns: SharedStates<P, ()>,
    clock: P::Clock,
    entropy: P::Entropy,
    /// By the key of the stored state.
    limiters: SharedValues<String, SubscriptionSlots>,
}

/// A request's right to be open, a part at a time; without a slot, whenever it wants.
#[derive(Debug)]
pub(crate) struct SlotPermit(Option<Box<TakenSlot>>);

/// An open request, until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequestGuard(Option<OpenRequest>);

impl SlotPermit {
    /// Opens a request that ends by its timeout. `None` if it may not begin any more.
    pub(crate) fn open_request(
        &self,
        subscription: &Subscription,
        now: Timestamp,
    ) -> Option<OpenRequestGuard> {
        let Some((slot, wanted)) = self.bounded_slot(subscription) else {
            return Some(OpenRequestGuard(None));
        };
        slot.open_request(wanted, now)
            .map(|open| OpenRequestGuard(Some(open)))
    }

    /// The slot, and the bound of its subscription, where there are both.
    fn bounded_slot(&self, subscription: &Subscription) -> Option<(&TakenSlot, RequestBound)> {
        Some((self.0.as_deref()?, request_bound(subscription)?))
    }
}

impl OpenRequestGuard {
    /// Ends the request, which took so long.
    pub(crate) fn end(self, took: Duration) {
        if let Some(open) = self.0 {
            open.end(took);
        }
    }
}

fn request_bound(subscription: &Subscription) -> Option<RequestBound> {
    let timeout = subscription.timeout;
    let limit = subscription.concurrency?;
    Some(RequestBound { limit, timeout })
}

impl<P: Ports> SlotLimiter<P> {
    pub(crate) fn new(state: &Arc<P::Store>, clock: P::Clock, entropy: P::Entropy) -> Self {
        Self {
            states: SharedStates::new(Arc::clone(state), clock.clone()),
            returns: SharedStates::new(Arc::clone(state), clock.clone()),
            clock,
            entropy,
            limiters: SharedValues::new(),
        }
    }

    /// Waits for the slot of a request, no longer than until `last_start`, the last moment at which
    /// it could begin. An `Err` is the verdict over its events if it gets none.
    pub(crate) async fn wait_for_permit(
        &self,
        subscription: &Subscription,
        last_start: Option<Duration>,
    ) -> Result<SlotPermit, EntryVerdict> {
        match request_bound(subscription) {
            None => Ok(SlotPermit(None)),
            Some(wanted) => Box::pin(self.permit_for(wanted, subscription, last_start)).await,
        }
    }

    async fn permit_for(
        &self,
        wanted: RequestBound,
        subscription: &Subscription,
        last_start: Option<Duration>,
    ) -> Result<SlotPermit, EntryVerdict> {
        let end = last_start.ok_or(EntryVerdict::NotStarted)?;
        let key = layout::slot_state_key(&subscription.topic, &subscription.name);
        let limiter = self.subscription_slots(&key);
        let slot = stop_at(&self.clock, end, self.wait_for_slot(&key, wanted, &limiter)).await;
        let slot = slot.ok_or(EntryVerdict::NotStarted)?;
        let slot = slot.map_err(|error| self.unknown_slots_verdict(subscription, &error))?;
        let slot = slot.ok_or_else(|| self.turned_away_verdict(wanted.limit, &limiter))?;
        let permit = SlotPermit(Some(Box::new(slot)));
        self.renew_lease(subscription, &permit, last_start).await?;
        Ok(permit)
    }

    /// Sees to it that a request which has its slot may begin by `last_start`: the lease may have
    /// ended while it waited. An `Err` is the verdict over its events if it may not.
    pub(crate) async fn renew_lease(
        &self,
        subscription: &Subscription,
        permit: &SlotPermit,
        last_start: Option<Duration>,
    ) -> Result<(), EntryVerdict> {
        let Some((slot, wanted)) = permit.bounded_slot(subscription) else {
            return Ok(());
        };
        if slot.limiter().can_serve(wanted, self.clock.now()) {
            return Ok(());
        }
        let end = last_start.ok_or(EntryVerdict::NotStarted)?;
        let renewed = self.renew_for(wanted, subscription, slot.limiter());
        let renewed = Box::pin(stop_at(&self.clock, end, renewed)).await;
        renewed.unwrap_or(Err(EntryVerdict::NotStarted))
    }

    async fn renew_for(
        &self,
        wanted: RequestBound,
        subscription: &Subscription,
        limiter: &SubscriptionSlots,
    ) -> Result<(), EntryVerdict> {
        let key = layout::slot_state_key(&subscription.topic, &subscription.name);
        for _ in 0..TRIES_MAX {
            let asked = self.ask_for_lease(&key, wanted, limiter).await;
            let is_changed =
                asked.map_err(|error| self.unknown_slots_verdict(subscription, &error))?;
            if limiter.can_serve(wanted, self.clock.now()) {
                return Ok(());
            }
            if !is_changed {
                break;
            }
        }
        Err(self.turned_away_verdict(wanted.limit, limiter))
    }

    fn subscription_slots(&self, key: &String) -> Arc<SubscriptionSlots> {
        self.limiters.get(key, || {
            SubscriptionSlots::new(self.entropy.uuid().to_string())
        })
    }

    /// Waits for a slot; `None` if there is none soon.
    async fn wait_for_slot(
        &self,
        key: &str,
        wanted: RequestBound,
        limiter: &Arc<SubscriptionSlots>,
    ) -> Result<Option<TakenSlot>, Arc<StateError>> {
        let _waiting = limiter.begin_wait();
        let came_at = self.clock.now();
        let mut freed = pin!(Arc::clone(limiter).wait_for_freed());
        loop {
            let mut asked = Ok(true);
            for _ in 0..TRIES_MAX {
                limiter.forget_lapsed(wanted, self.clock.now());
                asked = tokio::select! {
                    biased;
                    slot = freed.as_mut() => return Ok(slot),
                    asked = self.ask_for_lease(key, wanted, limiter) => asked,
                };
                if !matches!(asked, Ok(true)) {
                    break;
                }
            }
            if let Some(slot) = poll_immediate(freed.as_mut()).await {
                return Ok(slot);
            }
            asked?;
            let wait_max = if limiter.is_used() {
                WAIT_MAX
            } else {
                WAIT_WITHOUT_MAX
            };
            let elapsed = self.clock.now().since(came_at);
            if elapsed >= wait_max {
                return Ok(None);
            }
            let left = wait_max.saturating_sub(elapsed);
            let wait = self.jittered_look_wait().min(left);
            if let Some(slot) = timeout(&self.clock, wait, freed.as_mut()).await {
                return Ok(slot);
            }
        }
    }

    fn jittered_look_wait(&self) -> Duration {
        let [shortest, longest] = LOOK_AGAIN;
        let drawn = DrawnJitter::new(self.entropy.fraction());
        shortest + drawn.part_of(longest.saturating_sub(shortest))
    }

    async fn ask_for_lease(
        &self,
        key: &str,
        wanted: RequestBound,
        limiter: &SubscriptionSlots,
    ) -> Result<bool, Arc<StateError>> {
        self.states
            .ask_once(key, || self.lease_slots(key, wanted, limiter))
            .await
    }

    /// Leases what the requests of this worker have a use for, if it is free and no other worker
    /// has written since the state was read. The limiter's state says what came of it. Answers
    /// whether something has changed, or may have.
    async fn lease_slots(
        &self,
        key: &str,
        wanted: RequestBound,
        limiter: &SubscriptionSlots,
    ) -> Result<bool, StateError> {
        if limiter.has_all(wanted, self.clock.now()) {
            return Ok(false);
        }
        let known = self.known_state(key, limiter).await?;
        let (pending, next) = match limiter.claim_slots(wanted, &known, self.clock.now()) {
            ClaimedSlots::Lease(pending, next) => (Some(pending), next),
            ClaimedSlots::Nothing(Some(next)) => (None, next),
            ClaimedSlots::Nothing(None) => {
                limiter.keep_known(known);
                return Ok(false);
            }
        };
        let is_written = self.replace_state(key, next, known, limiter).await?;
        let Some(pending) = pending else {
            return Ok(!is_written);
        };
        limiter.note_write_ended(pending.write);
        if is_written {
            limiter.note_lease(pending);
        }
        Ok(true)
    }

    /// The state as it is known, or read now.
    async fn known_state(
        &self,
        key: &str,
        limiter: &SubscriptionSlots,
    ) -> Result<KnownSlotState, StateError> {
        let now = self.clock.now();
        if let Some(known) = limiter.take_known(now) {
            return Ok(known);
        }
        let stored = match self.states.read_state(key).await? {
            None => None,
            Some(object) => match SlotState::parse(&object.bytes) {
                Ok(state) => Some((state, object.etag)),
                Err(FormatError::Malformed(..)) => {
                    tracing::warn!(
                        key,
                        "the slots cannot be read, all count as taken for one lease"
                    );
                    Some((SlotState::for_unreadable(), object.etag))
                }
                Err(newer) => return Err(newer.into()),
            },
        };
        Ok(KnownSlotState::new(stored, now))
    }

    /// Writes a state in place of the known one. Answers whether no other worker was first.
    async fn replace_state(
        &self,
        key: &str,
        next: SlotState,
        known: KnownSlotState,
        limiter: &SubscriptionSlots,
    ) -> Result<bool, StateError> {
        let last = known.stored.map(|(_, etag)| etag);
        let written = self.states.write_state(key, next.render(), last).await?;
        let Some(etag) = written else {
            return Ok(false);
        };
        limiter.keep_known(KnownSlotState::new(Some((next, etag)), self.clock.now()));
        Ok(true)
    }

    /// Gives back the slots that no request of this worker has a use for: at once if it has no open
    /// request, and otherwise a moment later. To be called after each request, however it ended. If
    /// it fails, the slots are free when their lease ends.
    pub(crate) async fn give_back(
        &self,
        subscription: &Subscription,
        deadlines: &InvocationDeadlines,
    ) {
        if subscription.concurrency.is_some() {
            Box::pin(self.give_unused_back(subscription, deadlines)).await;
        }
    }

    async fn give_unused_back(&self, subscription: &Subscription, deadlines: &InvocationDeadlines) {
        let key = layout::slot_state_key(&subscription.topic, &subscription.name);
        let limiter = self.subscription_slots(&key);
        if limiter.is_used() && limiter.has_unused() {
            // No request of this invocation begins after its attempts.
            let end = deadlines
                .attempts_end()
                .min(self.clock.monotonic() + UNUSED_KEPT);
            stop_at(&self.clock, end, limiter.wait_until_quiet()).await;
        }
        if !limiter.has_unused() {
            return;
        }
        let end = deadlines
            .storing_end()
            .min(self.clock.monotonic() + GIVING_BACK_MAX);
        let returned = self
            .returns
            .ask_once(&key, || self.return_unused(&key, &limiter));
        match stop_at(&self.clock, end, returned).await {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(
                topic = %subscription.topic, subscription = %subscription.name,
                error = &*error as &dyn std::error::Error,
                "slots not given back, they are free when their lease ends"
            ),
            None => tracing::warn!(
                topic = %subscription.topic, subscription = %subscription.name,
                "slots not given back in time, they are free when their lease ends"
            ),
        }
    }

    /// Gives back, however often other workers are ahead: those that find nothing wait for it.
    async fn return_unused(
        &self,
        key: &str,
        limiter: &SubscriptionSlots,
    ) -> Result<(), StateError> {
        while limiter.has_unused() {
            let known = self.known_state(key, limiter).await?;
            // Requests may have come meanwhile.
            if !limiter.has_unused() {
                break;
            }
            let Some((next, write)) = limiter.shrink_lease(&known, self.clock.now()) else {
                limiter.keep_known(known);
                break;
            };
            let is_written = self.replace_state(key, next, known, limiter).await?;
            limiter.note_write_ended(write);
            if is_written {
                limiter.note_given_back(write);
                break;
            }
            let wait = OVERTAKEN_WAIT_MAX.mul_f64(self.entropy.fraction());
            self.clock.sleep(wait).await;
        }
        Ok(())
    }

    fn unknown_slots_verdict(
        &self,
        subscription: &Subscription,
        error: &StateError,
    ) -> EntryVerdict {
        tracing::warn!(
            topic = %subscription.topic, subscription = %subscription.name,
            error = error as &dyn std::error::Error, "the slots are not known, events postponed"
        );
        self.states.unknown_limit_verdict()
    }

    /// The verdict over events that found no slot: they come back as fast as slots become free, as
    /// far as this worker can tell.
    fn turned_away_verdict(&self, limit: SlotLimit, limiter: &SubscriptionSlots) -> EntryVerdict {
        let now = self.clock.now();
        let mut state = limiter.state.lock();
        let request_time = state.request_time;
        let pace = limit.return_rate(request_time);
        let nothing_before = now + request_time.max(TURNED_AWAY_MIN);
        let mut not_before = state.line.join_line(limit, pace, nothing_before, now);
        if not_before > nothing_before + LINE_MAX {
            state.line = TurnedAwayLine::default();
            not_before = state.line.join_line(limit, pace, nothing_before, now);
        }
        EntryVerdict::Postponed { not_before }
    }
}

#[cfg(test)]
mod tests;
