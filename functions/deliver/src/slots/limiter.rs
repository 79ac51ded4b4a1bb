//! The slots of one subscription in this worker: what it leased, and the requests that use it. No
//! lock is held while the store is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::attempt::{SlotClaim, SlotGrant, SlotLease, SlotState};
use posthaste_core::model::{SlotLimit, Timestamp};
use posthaste_ports::ETag;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::shared_state::{TurnedAwayLine, WaitGuard};

/// The age up to which a state that was read or written is taken for the current one. A read costs
/// a tenth of a write that another worker was ahead of.
const KNOWN_FOR: Duration = Duration::from_millis(250);

/// The time before the end of a lease from which no request counts on it: each has some waits
/// between its slot and its beginning.
const RENEWED_AHEAD: Duration = Duration::from_secs(1);

/// The time of a request before any was measured.
const REQUEST_TIME_FIRST: Duration = Duration::from_secs(1);

/// The bound that a request is under, and the time that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestBound {
    pub(super) limit: SlotLimit,
    pub(super) timeout: Duration,
}

/// The slots of one subscription.
#[derive(Debug)]
pub(super) struct SubscriptionSlots {
    /// The id of this worker in the stored state.
    holder: String,
    /// The requests that wait for a slot.
    waiting: AtomicU32,
    /// Leased slots that no request has. Requests get them in the order in which they came.
    free: Arc<Semaphore>,
    /// Tells that no request has a slot, or waits for one.
    quiet: Notify,
    pub(super) state: Mutex<SlotLimiterState>,
}

#[derive(Debug)]
pub(super) struct SlotLimiterState {
    lease: Option<SlotLease>,
    /// The slots that exist here, free ones and those that requests have.
    slots: u32,
    /// The slots that requests have.
    taken: u32,
    /// The requests that are open.
    begun: u32,
    /// Whether the stored state may say more slots than the lease.
    is_behind: bool,
    /// Whether it may say so even after it was read again: a write was not answered, and may still
    /// be under way.
    is_unanswered: bool,
    /// The number of writes that were begun. The answer to one of them counts only if no other was
    /// begun since.
    writes: u64,
    known: Option<KnownSlotState>,
    /// The requests that found nothing.
    pub(super) line: TurnedAwayLine<SlotLimit>,
    /// The time of a request, averaged.
    pub(super) request_time: Duration,
}

/// The object as it was read or written last.
#[derive(Debug)]
pub(super) struct KnownSlotState {
    /// The state and its tag; `None` if there is no object.
    pub(super) stored: Option<(SlotState, ETag)>,
    at: Timestamp,
}

/// A lease that is about to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingLease {
    lease: SlotLease,
    /// The number of its write.
    pub(super) write: u64,
}

/// The slots that this worker is granted.
#[derive(Debug)]
pub(super) enum ClaimedSlots {
    /// A lease, once this state is written.
    Lease(PendingLease, SlotState),
    /// Nothing. There may be a state to write.
    Nothing(Option<SlotState>),
}

/// A slot that a request has. Dropping it frees it for the next request of this worker.
#[derive(Debug)]
pub(super) struct TakenSlot {
    limiter: Arc<SubscriptionSlots>,
    permit: Option<OwnedSemaphorePermit>,
}

/// An open request, until this is dropped.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<SubscriptionSlots>);

impl KnownSlotState {
    pub(super) fn new(stored: Option<(SlotState, ETag)>, at: Timestamp) -> Self {
        Self { stored, at }
    }

    fn stored_state(&self) -> Option<&SlotState> {
        self.stored.as_ref().map(|(state, _)| state)
    }
}

impl SubscriptionSlots {
    pub(super) fn new(holder: String) -> Self {
        let state = SlotLimiterState {
            lease: None,
            slots: 0,
            taken: 0,
            begun: 0,
            is_behind: false,
            is_unanswered: false,
            writes: 0,
            known: None,
            line: TurnedAwayLine::default(),
            request_time: REQUEST_TIME_FIRST,
        };
        Self {
            holder,
            waiting: AtomicU32::new(0),
            free: Arc::new(Semaphore::new(0)),
            quiet: Notify::new(),
            state: Mutex::new(state),
        }
    }

    pub(super) fn begin_wait(&self) -> WaitGuard<'_> {
        WaitGuard::begin(&self.waiting)
    }

    fn waiting_requests(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a slot of this worker, behind the requests that wait already.
    pub(super) async fn wait_for_freed(self: Arc<Self>) -> Option<TakenSlot> {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        self.state.lock().taken += 1;
        Some(TakenSlot {
            limiter: self,
            permit: Some(permit),
        })
    }

    /// Takes free slots away whose lease does not serve this request.
    pub(super) fn forget_lapsed(&self, wanted: RequestBound, now: Timestamp) {
        let mut state = self.state.lock();
        if !state.can_serve(wanted, now) {
            state.forget_free(&self.free, u32::MAX);
        }
    }

    /// Whether the lease serves a request that has a slot and is not open. More requests may have a
    /// slot than a lease has that was renewed.
    pub(super) fn can_serve(&self, wanted: RequestBound, now: Timestamp) -> bool {
        let state = self.state.lock();
        let has_room = state.lease.is_some_and(|it| state.begun < it.slots());
        has_room && state.can_serve(wanted, now)
    }

    /// Whether a request has a slot, which will be free in a while.
    pub(super) fn is_used(&self) -> bool {
        self.state.lock().taken > 0
    }

    /// Whether this worker holds every slot that there is, so that no other can give one back.
    pub(super) fn has_all(&self, wanted: RequestBound, now: Timestamp) -> bool {
        let state = self.state.lock();
        let leased = state.lease.map_or(0, |lease| lease.slots());
        leased >= wanted.limit.requests() && state.can_serve(wanted, now)
    }

    /// The stored state as it is known, if it is young enough. It is not known any more until it
    /// is [kept](Self::keep): an answer may be lost, or the request dropped.
    pub(super) fn take_known(&self, now: Timestamp) -> Option<KnownSlotState> {
        let known = self.state.lock().known.take()?;
        let is_young = known.at <= now && now < known.at + KNOWN_FOR;
        is_young.then_some(known)
    }

    pub(super) fn keep_known(&self, known: KnownSlotState) {
        self.state.lock().known = Some(known);
    }

    /// Asks for what the requests of this worker have a use for.
    pub(super) fn claim_slots(
        &self,
        wanted: RequestBound,
        known: &KnownSlotState,
        now: Timestamp,
    ) -> ClaimedSlots {
        let mut state = self.state.lock();
        if known
            .stored_state()
            .is_none_or(|stored| stored.is_idle(now))
        {
            // No request waits in the line any more.
            state.line = TurnedAwayLine::default();
        }
        let serving = state.lease.filter(|_| state.can_serve(wanted, now));
        let claim = SlotClaim {
            holder: &self.holder,
            begun: state.begun,
            held: serving.map_or(0, |lease| lease.slots()),
            wanted: self.waiting_requests().saturating_add(state.taken),
            timeout: wanted.timeout,
        };
        match wanted.limit.take_slots(known.stored_state(), &claim, now) {
            SlotGrant::Lease(lease, next) => {
                // Of the former lease no more is used than the state will say.
                let stored = lease.slots().max(state.begun);
                state.lease = state.lease.map(|former| former.capped_at(stored));
                let write = state.begin_write();
                ClaimedSlots::Lease(PendingLease { lease, write }, next)
            }
            SlotGrant::Nothing(next) => ClaimedSlots::Nothing(next),
        }
    }

    /// Notes that a write was answered: it was made, or another worker was ahead of it.
    pub(super) fn note_write_ended(&self, write: u64) {
        let mut state = self.state.lock();
        if state.writes == write {
            state.is_unanswered = false;
        }
    }

    /// Notes a lease that was written. It does not count if slots were given back meanwhile: the
    /// stored state may say fewer since.
    pub(super) fn note_lease(&self, pending: PendingLease) {
        let mut state = self.state.lock();
        let PendingLease { lease, write } = pending;
        state.is_behind = state.writes != write;
        if state.is_behind {
            return;
        }
        state.lease = Some(lease);
        let more = lease.slots().saturating_sub(state.slots);
        state.slots += more;
        self.free.add_permits(more as usize);
        let surplus = state.slots.saturating_sub(lease.slots());
        state.forget_free(&self.free, surplus);
    }

    /// Whether this worker holds slots that no request has or waits for.
    pub(super) fn has_unused(&self) -> bool {
        self.waiting_requests() == 0 && self.state.lock().has_unused()
    }

    /// Waits until no request has a slot, or waits for one.
    pub(super) async fn wait_until_quiet(&self) {
        let notified = self.quiet.notified();
        if self.waiting_requests() > 0 || self.is_used() {
            notified.await;
        }
    }

    /// Uses no more of the lease than requests have, so that the rest can be given back. Returns
    /// the state to write, and the number of the write; `None` if the stored one says so already,
    /// and will go on to say so.
    pub(super) fn shrink_lease(
        &self,
        known: &KnownSlotState,
        now: Timestamp,
    ) -> Option<(SlotState, u64)> {
        let mut state = self.state.lock();
        let kept = state.taken;
        state.lease = state.lease.map(|lease| lease.capped_at(kept));
        let unused = state.slots.saturating_sub(kept);
        state.forget_free(&self.free, unused);
        let stored = known.stored_state();
        let mut next = stored.and_then(|stored| stored.give_back(&self.holder, kept, now));
        if next.is_none() && state.is_unanswered {
            next = Some(SlotState::rewrite_unchanged(stored, now));
        }
        state.is_behind = false;
        next.map(|next| (next, state.begin_write()))
    }

    /// Notes that the state which was stored by this write says no more slots than the lease.
    pub(super) fn note_given_back(&self, write: u64) {
        let mut state = self.state.lock();
        if state.writes == write {
            state.is_behind = false;
        }
    }
}

impl SlotLimiterState {
    fn can_serve(&self, wanted: RequestBound, now: Timestamp) -> bool {
        let RequestBound { limit, timeout } = wanted;
        self.lease.is_some_and(|lease| {
            lease.allows_request(limit, timeout, now)
                && lease.allows_request(limit, timeout, now + RENEWED_AHEAD)
        })
    }

    /// Begins a write whose answer may be lost, and returns its number.
    fn begin_write(&mut self) -> u64 {
        self.is_behind = true;
        self.is_unanswered = true;
        self.writes += 1;
        self.writes
    }

    fn has_unused(&self) -> bool {
        let leased = self.lease.map_or(0, |lease| lease.slots());
        leased > self.taken || self.is_behind
    }

    /// Forgets free slots, at most this number.
    fn forget_free(&mut self, free: &Semaphore, most: u32) {
        let most = self.slots.min(most) as usize;
        let forgotten = free.forget_permits(most);
        self.slots -= u32::try_from(forgotten).unwrap_or(u32::MAX).min(self.slots);
    }
}

impl TakenSlot {
    /// Opens a request. `None` if it may not begin by the lease as it is now.
    pub(super) fn open_request(&self, wanted: RequestBound, now: Timestamp) -> Option<OpenRequest> {
        let mut state = self.limiter.state.lock();
        let RequestBound { limit, timeout } = wanted;
        let lease = state
            .lease
            .filter(|it| it.allows_request(limit, timeout, now))?;
        if state.begun >= lease.slots() {
            return None;
        }
        state.begun += 1;
        Some(OpenRequest(Arc::clone(&self.limiter)))
    }

    pub(super) fn limiter(&self) -> &Arc<SubscriptionSlots> {
        &self.limiter
    }
}

impl Drop for TakenSlot {
    /// Removes the slot where there are more than the lease has.
    fn drop(&mut self) {
        let mut state = self.limiter.state.lock();
        state.taken -= 1;
        let leased = state.lease.map_or(0, |lease| lease.slots());
        if state.slots > leased
            && let Some(permit) = self.permit.take()
        {
            permit.forget();
            state.slots -= 1;
        }
        let is_quiet = state.taken == 0 && self.limiter.waiting_requests() == 0;
        drop(state);
        if is_quiet {
            self.limiter.quiet.notify_waiters();
        }
    }
}

impl OpenRequest {
    /// Ends the request, which took so long.
    pub(super) fn end(self, took: Duration) {
        let mut state = self.0.state.lock();
        state.request_time = (state.request_time * 3 + took) / 4;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.state.lock().begun -= 1;
    }
}
