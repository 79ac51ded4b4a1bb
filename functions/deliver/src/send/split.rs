//! Splits: the events of an attempt are posted in one request, and a batch that is refused for its
//! content is posted again in halves, down to single events.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::attempt::batch::{events_of_next_request, requests_left};
use posthaste_core::attempt::{
    BatchAnswer, DrawnJitter, EntryVerdict, RetryJitter, SplitDecision, SplitProgress,
};
use posthaste_core::circuit::REFUSED_EVENTS_MIN;
use posthaste_core::model::{
    AttemptOutcome, DeadLetterReason, LastAttempt, Subscription, is_expired,
};
use posthaste_ports::{Clock, Entropy, Ports};

use super::judge::{AttemptEnd, RequestOutcome};
use super::log::RequestLog;
use super::{EndedAttempt, RequestSender};
use crate::circuit::record::CompletedRequest;
use crate::circuit::route::RequestRoute;
use crate::invocation::{EntryRef, Invocation};
use crate::payloads::LoadedPayload;
use crate::plan::RequestPlan;
use crate::rate_limit::{ADMITTED_WAIT_MAX, RatePermit};
use crate::slots::{OpenRequestGuard, SlotPermit};

/// The keys of a request's first events, by which refusals of different events are told apart.
fn first_keys<'a>(
    invocation: &'a Invocation,
    run: &[LoadedPayload],
) -> [Option<&'a str>; REFUSED_EVENTS_MIN] {
    std::array::from_fn(|index| Some(invocation.entry(run.get(index)?.at).key.as_str()))
}

/// An attempt under way.
struct AttemptProgress<'a> {
    route: RequestRoute<'a>,
    slot: SlotPermit,
    permit: Option<RatePermit>,
    splitting: SplitProgress,
    /// The answer that refused the last batch of which parts are posted.
    refused: Option<LastAttempt>,
    verdicts: Vec<(EntryRef, EntryVerdict)>,
}

impl AttemptProgress<'_> {
    fn judge_all(&mut self, run: &[LoadedPayload], verdict: EntryVerdict) {
        self.verdicts
            .extend(run.iter().map(|event| (event.at, verdict)));
    }
}

impl<P: Ports> RequestSender<P> {
    /// Posts the loaded events of an admitted request, in one part or several. Answers the verdicts
    /// over all of its events.
    pub(super) async fn send_parts(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        (route, slot, permit): (RequestRoute<'_>, SlotPermit, RatePermit),
        loaded: Vec<LoadedPayload>,
        verdicts: Vec<(EntryRef, EntryVerdict)>,
    ) -> EndedAttempt {
        let mut progress = AttemptProgress {
            route,
            slot,
            permit: Some(permit),
            splitting: SplitProgress::default(),
            refused: None,
            verdicts,
        };
        let mut is_to_be_disabled = false;
        let mut waiting = if loaded.is_empty() {
            vec![]
        } else {
            vec![loaded]
        };
        while let Some(mut run) = waiting.pop() {
            let Some(request) = self
                .post_part(invocation, plan, &mut progress, &mut run)
                .await
            else {
                self.circuit
                    .give_up_probe(invocation, &mut progress.route)
                    .await;
                continue;
            };
            let outcome = request.outcome;
            let is_fallback = progress.route.is_fallback;
            let is_gone = outcome.status() == Some(410) && !is_fallback;
            // At once: other requests begin while this one is recorded.
            let is_news = is_gone && self.current.note_gone(&plan.subscription);
            let follow = self
                .record_part(invocation, plan, &mut progress, &run, &request)
                .await;
            let judged_by = self.judged_by(plan, &request, run.len()).await;
            if is_news {
                is_to_be_disabled = judged_by.retry.disable_on_gone;
                if !is_to_be_disabled {
                    self.current.forget_gone(&judged_by);
                }
            }
            let now = self.clock.now();
            let log = RequestLog {
                invocation,
                plan,
                link: progress.route.target.link(),
                endpoint: progress.route.endpoint,
                request: &request,
                ended_at: now,
                traces: &self.attempts.traces,
            };
            if follow == SplitDecision::Split {
                log.log_split(run.len());
                progress.refused = LastAttempt::from_outcome(outcome, now);
                let took = self.clock.monotonic().saturating_sub(request.started);
                let left = self.time_to_start(invocation, plan);
                let rest =
                    run.split_off(events_of_next_request(run.len(), requests_left(left, took)));
                waiting.extend([rest, run]);
                continue;
            }
            let end = AttemptEnd {
                retry: &judged_by.retry,
                is_fallback,
                now,
            };
            let judge = |event: &LoadedPayload, outcome: AttemptOutcome, is_sent| {
                let expires_at = invocation.entry(event.at).expires_at;
                let jitter = if outcome.is_success() {
                    RetryJitter::default()
                } else {
                    self.retry_jitter(invocation, plan, event.at)
                };
                let verdict = plan.verdict_for(end, outcome, expires_at, jitter);
                log.log_event(event, outcome, verdict, is_sent);
                log.keep_record(event, outcome, verdict, is_sent);
                if is_sent {
                    log.take_spans(event, outcome, verdict);
                }
                (event.at, verdict)
            };
            let judged = run
                .iter()
                .enumerate()
                .map(|(index, event)| judge(event, request.event_outcome(index), true));
            progress.verdicts.extend(judged);
            // An endpoint that is gone is not asked for the other parts.
            if is_gone || follow == SplitDecision::JudgeAll {
                let rest = waiting.drain(..).flatten();
                progress
                    .verdicts
                    .extend(rest.map(|event| judge(&event, outcome, false)));
            }
            if follow == SplitDecision::JudgeAll {
                log.refused_alike();
            }
        }
        EndedAttempt {
            subscription: Arc::clone(&plan.subscription),
            verdicts: progress.verdicts,
            is_to_be_disabled,
        }
    }

    /// The subscription by whose policy the events of a request are judged: as it is after the
    /// attempt, if one of them failed.
    async fn judged_by(
        &self,
        plan: &RequestPlan,
        request: &RequestOutcome,
        events: usize,
    ) -> Arc<Subscription> {
        if request.failed_events(events) == 0 {
            return Arc::clone(&plan.subscription);
        }
        self.current.latest_version(&plan.subscription).await
    }

    /// Records the answer to a part, and returns the step that follows it.
    async fn record_part(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        progress: &mut AttemptProgress<'_>,
        run: &[LoadedPayload],
        request: &RequestOutcome,
    ) -> SplitDecision {
        let counts = &self.circuit.counts;
        let retry = &plan.subscription.retry;
        let outcome = request.outcome;
        let last_of = |event: &LoadedPayload| invocation.jobs[event.at.job].delivery.last;
        let answer = BatchAnswer {
            outcome,
            events: run.len(),
            was_refused: run.iter().filter_map(last_of).any(LastAttempt::was_refused),
            do_others_arrive: counts.is_recently_well(&progress.route.target, self.clock.now()),
        };
        let follow = progress.splitting.decide_after(answer, retry);
        let is_gone = outcome.status() == Some(410) && !progress.route.is_fallback;
        let completed = CompletedRequest {
            began: request.began,
            outcome,
            is_problem: plan.kind.is_problem,
            is_disabling: is_gone && retry.disable_on_gone,
            is_split: follow == SplitDecision::Split,
            events: first_keys(invocation, run),
        };
        self.circuit
            .record_outcome(invocation, &mut progress.route, completed)
            .await;
        follow
    }

    /// Posts one part as soon as it may begin, without the events that have expired. `None` if it
    /// was not posted: then its events are judged already.
    async fn post_part(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        progress: &mut AttemptProgress<'_>,
        run: &mut Vec<LoadedPayload>,
    ) -> Option<RequestOutcome> {
        let opened = match self.open_when_ready(invocation, plan, progress).await {
            Ok(opened) => opened,
            Err(verdict) => {
                progress.judge_all(run, verdict);
                return None;
            }
        };
        let now = self.clock.now();
        let is_over =
            |event: &mut LoadedPayload| is_expired(invocation.entry(event.at).expires_at, now);
        let expired: Vec<_> = run.extract_if(.., is_over).collect();
        let reason = DeadLetterReason::TimeToLiveExceeded;
        progress.judge_all(
            &expired,
            EntryVerdict::GiveUp {
                reason,
                last: progress.refused,
            },
        );
        if run.is_empty() {
            return None;
        }
        match self
            .attempts
            .post_request(invocation, plan, &progress.route, run, &self.current)
            .await
        {
            Ok(request) => {
                opened.end(self.clock.monotonic().saturating_sub(request.started));
                Some(request)
            }
            Err(verdict) => {
                progress.judge_all(run, verdict);
                None
            }
        }
    }

    /// Waits until a request may begin, and opens it. An `Err` is the verdict over its events if it
    /// may not.
    async fn open_when_ready(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        progress: &mut AttemptProgress<'_>,
    ) -> Result<OpenRequestGuard, EntryVerdict> {
        if self.limits.is_closed() || self.time_to_start(invocation, plan).is_none() {
            return Err(EntryVerdict::NotStarted);
        }
        let admitted = self.wait_for_admission(invocation, plan, progress).await;
        admitted.inspect_err(|verdict| self.note_postponed(invocation, plan, *verdict))?;
        // Last: all that was waited for has taken time, in which the subscription may have changed.
        self.current.check_may_begin(&plan.subscription).await?;
        // So has asking for it, and other workers whether it may be sent.
        self.time_to_start(invocation, plan)
            .ok_or(EntryVerdict::NotStarted)?;
        match progress
            .slot
            .open_request(&plan.subscription, self.clock.now())
        {
            Some(opened) => Ok(opened),
            None => Box::pin(self.open_renewed(invocation, plan, &progress.slot)).await,
        }
    }

    /// Opens an admitted request whose waits have outlasted the lease of its slot. An `Err` is the
    /// verdict over its events if it may not begin.
    async fn open_renewed(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        slot: &SlotPermit,
    ) -> Result<OpenRequestGuard, EntryVerdict> {
        let renewed = self.renew_slot(invocation, plan, slot).await;
        renewed.inspect_err(|verdict| self.note_postponed(invocation, plan, *verdict))?;
        // Both again: renewing has taken time as well.
        self.current.check_may_begin(&plan.subscription).await?;
        self.time_to_start(invocation, plan)
            .ok_or(EntryVerdict::NotStarted)?;
        let opened = slot.open_request(&plan.subscription, self.clock.now());
        opened.ok_or(EntryVerdict::NotStarted)
    }

    /// Renews the lease of a slot where it is over.
    fn renew_slot(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        slot: &SlotPermit,
    ) -> impl Future<Output = Result<(), EntryVerdict>> {
        let subscription = &plan.subscription;
        let last_start = invocation.deadlines.last_start(subscription.timeout);
        self.slots.renew_lease(subscription, slot, last_start)
    }

    /// Waits for what lets a request of this subscription begin: its rate, its slot, its ramp, or
    /// the right to probe. An `Err` is the verdict over its events if it may not.
    async fn wait_for_admission(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        progress: &mut AttemptProgress<'_>,
    ) -> Result<(), EntryVerdict> {
        // The permit may be over since the request was admitted, and each part of a batch needs one
        // of its own.
        if progress
            .permit
            .take()
            .is_none_or(|permit| !permit.may_begin(self.clock.now()))
        {
            let last_start = invocation.deadlines.last_start(plan.subscription.timeout);
            self.rates
                .wait_for_permit(&plan.subscription, last_start, ADMITTED_WAIT_MAX)
                .await?;
        }
        // All parts of a batch use one slot, one after the other. Its lease may be over.
        self.renew_slot(invocation, plan, &progress.slot).await?;
        self.circuit.admit(plan, &mut progress.route).await
    }

    /// The draws by which the wait of an event's retry is lengthened. Each message has a draw of its
    /// own, but those whose events share requests come back together.
    fn retry_jitter(
        &self,
        invocation: &Invocation,
        plan: &RequestPlan,
        at: EntryRef,
    ) -> RetryJitter {
        let queued = if plan.subscription.batching.request_limits().items_max == 1 {
            let draw = || DrawnJitter::new(self.circuit.entropy.fraction());
            invocation.jitter_of(at.job, draw)
        } else {
            plan.jitter
        };
        RetryJitter {
            queued,
            parked: plan.jitter,
            step: self.delay_step,
        }
    }

    /// The longest time that a request's start may still wait; `None` if it would end too late.
    fn time_to_start(&self, invocation: &Invocation, plan: &RequestPlan) -> Option<Duration> {
        invocation
            .deadlines
            .last_start(plan.subscription.timeout)?
            .checked_sub(self.clock.monotonic())
    }
}
