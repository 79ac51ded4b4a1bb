//! Admission: a request waits for its way, its slot, its rate and its place on the link. Each part
//! of it looks at them again right before it begins, because they may be over by then.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::attempt::EntryVerdict;
use posthaste_core::model::Subscription;
use posthaste_ports::{Clock, Ports};
use posthaste_services::timeout_at;

use crate::circuit::{CircuitBreaker, CircuitPass};
use crate::concurrency::{ConcurrencyLimits, RequestPermit};
use crate::current::CurrentSubscriptions;
use crate::invocation::Invocation;
use crate::plan::RequestPlan;
use crate::rate_limit::{ADMITTED_WAIT_MAX, RateLimiter, RatePermit};
use crate::slots::{OpenRequestGuard, SlotLimiter, SlotPermit};

/// Admits requests.
pub(crate) struct RequestAdmission<P: Ports> {
    pub(crate) clock: P::Clock,
    pub(crate) limits: ConcurrencyLimits,
    pub(crate) slots: SlotLimiter<P>,
    pub(crate) rates: RateLimiter<P>,
    pub(crate) circuit: Arc<CircuitBreaker<P>>,
    pub(crate) current: Arc<CurrentSubscriptions<P>>,
}

/// A request that was admitted, with the rights that it has until this is dropped.
pub(super) struct AdmittedRequest<'a, P: Ports> {
    admission: &'a RequestAdmission<P>,
    pub(super) pass: CircuitPass<'a, P>,
    slot: SlotPermit,
    /// The permit of its first part.
    rate: Option<RatePermit>,
    /// The latest start, by the clock's `monotonic`.
    pub(super) last_start: Duration,
    /// Given up last: until then no other request may take it.
    _place: RequestPermit,
}

impl<P: Ports> RequestAdmission<P> {
    /// Waits until a request is admitted. An `Err` is the verdict over its events if it may not
    /// begin.
    pub(super) async fn admit_request<'a>(
        &'a self,
        invocation: &'a Invocation,
        plan: &'a RequestPlan,
    ) -> Result<AdmittedRequest<'a, P>, EntryVerdict> {
        let subscription = &*plan.subscription;
        let pass = CircuitPass::for_request(&self.circuit, invocation, plan).await?;
        let last_start = invocation.deadlines.last_start(subscription.timeout);
        // First of all, as it takes longest. What comes after it may be over soon.
        let slot = self.slots.wait_for_permit(subscription, last_start).await?;
        let rate = self
            .rates
            .wait_for_permit(subscription, last_start, Duration::ZERO)
            .await?;
        let now = self.clock.monotonic();
        let last_start = last_start.filter(|last_start| *last_start >= now);
        let last_start = last_start.ok_or(EntryVerdict::NotStarted)?;
        let waits_from = invocation.measures_drain().then_some(now);
        let entering = self.limits.wait_for_permit(&pass.target, waits_from);
        let place = timeout_at(&self.clock, last_start, entering).await;
        let place = place.flatten().ok_or(EntryVerdict::NotStarted)?;
        Ok(AdmittedRequest {
            admission: self,
            pass,
            slot,
            rate: Some(rate),
            last_start,
            _place: place,
        })
    }

    /// Notes a request that may not begin now, as [`ConcurrencyLimits::note_postponed`] does.
    pub(super) fn note_postponed(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        verdict: EntryVerdict,
    ) {
        if invocation.measures_drain() {
            self.limits
                .note_postponed(&self.clock, &plan.subscription, verdict);
        }
    }
}

impl<P: Ports> AdmittedRequest<'_, P> {
    /// Waits until the next part may begin, and opens its request. An `Err` is the verdict over its
    /// events if it may not.
    pub(super) async fn open_part(&mut self) -> Result<OpenRequestGuard, EntryVerdict> {
        if self.admission.limits.is_closed() || self.time_to_start().is_none() {
            return Err(EntryVerdict::NotStarted);
        }
        let ready = self.wait_until_ready().await;
        ready.inspect_err(|verdict| self.note_postponed(*verdict))?;
        // Last: all that was waited for has taken time, in which the subscription may have changed.
        self.check_may_begin().await?;
        let now = self.admission.clock.now();
        match self.slot.open_request(self.subscription(), now) {
            Some(opened) => Ok(opened),
            None => Box::pin(self.open_renewed()).await,
        }
    }

    /// Opens a part whose waits have outlasted the lease of its slot.
    async fn open_renewed(&self) -> Result<OpenRequestGuard, EntryVerdict> {
        let renewed = self.renew_slot().await;
        renewed.inspect_err(|verdict| self.note_postponed(*verdict))?;
        // Both again: renewing has taken time as well.
        self.check_may_begin().await?;
        let now = self.admission.clock.now();
        let opened = self.slot.open_request(self.subscription(), now);
        opened.ok_or(EntryVerdict::NotStarted)
    }

    /// Waits for what lets a part begin: its rate, its slot, its ramp, or the right to probe.
    async fn wait_until_ready(&mut self) -> Result<(), EntryVerdict> {
        // The permit may be over since the request was admitted, and each part of a batch needs one
        // of its own.
        let clock = &self.admission.clock;
        let rate = self.rate.take();
        if rate.is_none_or(|rate| !rate.may_begin(clock.now())) {
            self.admission
                .rates
                .wait_for_permit(
                    self.subscription(),
                    Some(self.last_start),
                    ADMITTED_WAIT_MAX,
                )
                .await?;
        }
        // All parts of a batch use one slot, one after the other. Its lease may be over.
        self.renew_slot().await?;
        self.pass.admit().await
    }

    /// Renews the lease of the slot where it is over.
    fn renew_slot(&self) -> impl Future<Output = Result<(), EntryVerdict>> {
        let slots = &self.admission.slots;
        slots.renew_lease(self.subscription(), &self.slot, Some(self.last_start))
    }

    /// Checks that the subscription still is what the request was planned by, and that there still
    /// is time for it, as asking has taken some.
    async fn check_may_begin(&self) -> Result<(), EntryVerdict> {
        let current = &self.admission.current;
        current.check_may_begin(self.subscription()).await?;
        self.time_to_start().ok_or(EntryVerdict::NotStarted)?;
        Ok(())
    }

    /// The longest time that the start may still wait; `None` if the request would end too late.
    pub(super) fn time_to_start(&self) -> Option<Duration> {
        self.last_start
            .checked_sub(self.admission.clock.monotonic())
    }

    fn note_postponed(&self, verdict: EntryVerdict) {
        let CircuitPass {
            invocation, plan, ..
        } = &self.pass;
        self.admission.note_postponed(invocation, plan, verdict);
    }

    fn subscription(&self) -> &Subscription {
        &self.pass.plan.subscription
    }
}
