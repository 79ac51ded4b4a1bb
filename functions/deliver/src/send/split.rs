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
    AttemptOutcome, DeadLetterReason, LastAttempt, Subscription, Timestamp, is_expired,
};
use posthaste_ports::{Clock, Entropy, Ports};

use super::admission::AdmittedRequest;
use super::attempt::EventPoster;
use super::judge::{AttemptEnd, RequestOutcome};
use super::log::RequestLog;
use crate::circuit::CompletedRequest;
use crate::current::CurrentSubscriptions;
use crate::invocation::{EntryRef, Invocation};
use crate::payloads::LoadedPayload;
use crate::plan::RequestPlan;

/// Makes attempts, each of an admitted request.
pub(crate) struct AttemptMaker<P: Ports> {
    pub(crate) poster: EventPoster<P>,
    pub(crate) current: Arc<CurrentSubscriptions<P>>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    /// The unit in which the delivery queue delays.
    pub(crate) delay_step: Duration,
}

/// An attempt, made or not.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) verdicts: Vec<(EntryRef, EntryVerdict)>,
    /// Whether the subscription is to be disabled, because its endpoint is gone for good.
    pub(crate) is_to_be_disabled: bool,
}

impl EndedAttempt {
    /// The attempt of a request that may not begin, with the verdict over its events.
    pub(super) fn not_begun(plan: &RequestPlan, verdict: EntryVerdict) -> Self {
        Self {
            subscription: Arc::clone(&plan.subscription),
            verdicts: plan.entries.iter().map(|at| (*at, verdict)).collect(),
            is_to_be_disabled: false,
        }
    }
}

/// An attempt under way.
struct AttemptUnderWay<'a, P: Ports> {
    maker: &'a AttemptMaker<P>,
    request: AdmittedRequest<'a, P>,
    splitting: SplitProgress,
    /// The answer that refused the last batch of which parts are posted.
    refused: Option<LastAttempt>,
    /// The parts that are not posted yet, the next one last.
    waiting: Vec<Vec<LoadedPayload>>,
    verdicts: Vec<(EntryRef, EntryVerdict)>,
    is_to_be_disabled: bool,
}

/// A part of an attempt whose request has ended.
struct EndedPart {
    events: Vec<LoadedPayload>,
    request: RequestOutcome,
    /// The subscription by whose policy the events are judged.
    judged_by: Arc<Subscription>,
    ended_at: Timestamp,
}

impl<P: Ports> AttemptMaker<P> {
    /// Posts the loaded events of an admitted request, in one part or several. Returns the verdicts
    /// over all of its events; those over events that were not loaded are known before.
    pub(super) async fn make_attempt(
        &self,
        request: AdmittedRequest<'_, P>,
        loaded: Vec<LoadedPayload>,
        verdicts: Vec<(EntryRef, EntryVerdict)>,
    ) -> EndedAttempt {
        let mut attempt = AttemptUnderWay {
            maker: self,
            request,
            splitting: SplitProgress::default(),
            refused: None,
            waiting: first_part(loaded),
            verdicts,
            is_to_be_disabled: false,
        };
        while let Some(part) = attempt.waiting.pop() {
            attempt.send_part(part).await;
        }
        EndedAttempt {
            subscription: Arc::clone(&attempt.request.pass.plan.subscription),
            verdicts: attempt.verdicts,
            is_to_be_disabled: attempt.is_to_be_disabled,
        }
    }
}

fn first_part(loaded: Vec<LoadedPayload>) -> Vec<Vec<LoadedPayload>> {
    if loaded.is_empty() {
        Vec::new()
    } else {
        vec![loaded]
    }
}

impl<'a, P: Ports> AttemptUnderWay<'a, P> {
    /// Posts one part, and judges its events or splits it.
    async fn send_part(&mut self, mut events: Vec<LoadedPayload>) {
        let Some(request) = self.post_part(&mut events).await else {
            self.request.pass.give_up_probe().await;
            return;
        };
        // At once: other requests begin while this one is recorded.
        let is_news =
            self.is_gone(&request) && self.maker.current.note_gone(&self.plan().subscription);
        let next = self.record_part(&events, &request).await;
        let judged_by = self.judged_by(&request, events.len()).await;
        if is_news {
            self.is_to_be_disabled = judged_by.retry.disable_on_gone;
            if !self.is_to_be_disabled {
                self.maker.current.forget_gone(&judged_by);
            }
        }
        let part = EndedPart {
            events,
            request,
            judged_by,
            ended_at: self.maker.clock.now(),
        };
        match next {
            SplitDecision::Split => self.split_part(part),
            next => self.judge_part(&part, next),
        }
    }

    /// Posts one part as soon as it may begin, without the events that have expired. `None` if it
    /// was not posted: then its events are judged already.
    async fn post_part(&mut self, events: &mut Vec<LoadedPayload>) -> Option<RequestOutcome> {
        let opened = match self.request.open_part().await {
            Ok(opened) => opened,
            Err(verdict) => {
                self.judge_alike(events, verdict);
                return None;
            }
        };
        self.give_up_expired(events);
        if events.is_empty() {
            return None;
        }
        match self
            .maker
            .poster
            .post_request(&self.request.pass, events, &self.maker.current)
            .await
        {
            Ok(request) => {
                opened.end(self.elapsed_since_start(&request));
                Some(request)
            }
            Err(verdict) => {
                self.judge_alike(events, verdict);
                None
            }
        }
    }

    fn judge_alike(&mut self, events: &[LoadedPayload], verdict: EntryVerdict) {
        self.verdicts
            .extend(events.iter().map(|event| (event.at, verdict)));
    }

    /// Takes the events that have expired out of a part, and gives them up.
    fn give_up_expired(&mut self, events: &mut Vec<LoadedPayload>) {
        let now = self.maker.clock.now();
        let invocation = self.invocation();
        let expired: Vec<_> = events
            .extract_if(.., |event| {
                is_expired(invocation.entry(event.at).expires_at, now)
            })
            .collect();
        let verdict = EntryVerdict::GiveUp {
            reason: DeadLetterReason::TimeToLiveExceeded,
            last: self.refused,
        };
        self.judge_alike(&expired, verdict);
    }

    /// Records the answer to a part, and returns the step that follows it.
    async fn record_part(
        &mut self,
        events: &[LoadedPayload],
        request: &RequestOutcome,
    ) -> SplitDecision {
        let invocation = self.invocation();
        let plan = self.plan();
        let retry = &plan.subscription.retry;
        let answer = BatchAnswer {
            outcome: request.outcome,
            events: events.len(),
            was_refused: events
                .iter()
                .filter_map(|event| invocation.last_attempt(event.at))
                .any(LastAttempt::was_refused),
            do_others_arrive: self.request.pass.do_others_arrive(),
        };
        let next = self.splitting.decide_after(answer, retry);
        let completed = CompletedRequest {
            began: request.began,
            outcome: request.outcome,
            is_problem: plan.kind.is_problem,
            is_disabling: self.is_gone(request) && retry.disable_on_gone,
            is_split: next == SplitDecision::Split,
            events: first_keys(invocation, events),
        };
        self.request.pass.record_outcome(completed).await;
        next
    }

    /// The subscription by whose policy the events of a request are judged: as it is after the
    /// attempt, if one of them failed.
    async fn judged_by(&self, request: &RequestOutcome, events: usize) -> Arc<Subscription> {
        let planned = &self.plan().subscription;
        if request.failed_events(events) == 0 {
            return Arc::clone(planned);
        }
        self.maker.current.latest_version(planned).await
    }

    /// Splits a part that was refused. Its first events are posted next.
    fn split_part(&mut self, part: EndedPart) {
        let EndedPart {
            mut events,
            request,
            ended_at,
            ..
        } = part;
        self.request_log(&request, ended_at).log_split(events.len());
        self.refused = LastAttempt::from_outcome(request.outcome, ended_at);
        let took = self.elapsed_since_start(&request);
        let left = self.request.time_to_start();
        let first = events_of_next_request(events.len(), requests_left(left, took));
        let rest = events.split_off(first);
        self.waiting.extend([rest, events]);
    }

    /// Judges the events of a part, and those of all other parts if no further request is made.
    fn judge_part(&mut self, part: &EndedPart, next: SplitDecision) {
        self.verdicts.reserve(part.events.len());
        for (index, event) in part.events.iter().enumerate() {
            let verdict = self.judge_event(part, event, part.request.event_outcome(index), true);
            self.verdicts.push((event.at, verdict));
        }
        // An endpoint that is gone is not asked for the other parts.
        if self.is_gone(&part.request) || next == SplitDecision::JudgeAll {
            for event in std::mem::take(&mut self.waiting).into_iter().flatten() {
                let verdict = self.judge_event(part, &event, part.request.outcome, false);
                self.verdicts.push((event.at, verdict));
            }
        }
        if next == SplitDecision::JudgeAll {
            self.request_log(&part.request, part.ended_at)
                .refused_alike();
        }
    }

    /// Judges an event with the outcome of a part, and notes the verdict in the logs. `is_sent`:
    /// whether it was in that part.
    fn judge_event(
        &self,
        part: &EndedPart,
        event: &LoadedPayload,
        outcome: AttemptOutcome,
        is_sent: bool,
    ) -> EntryVerdict {
        let end = AttemptEnd {
            retry: &part.judged_by.retry,
            is_fallback: self.request.pass.is_fallback,
            now: part.ended_at,
        };
        let expires_at = self.invocation().entry(event.at).expires_at;
        let jitter = if outcome.is_success() {
            RetryJitter::default()
        } else {
            self.retry_jitter(event.at)
        };
        let verdict = self.plan().verdict_for(end, outcome, expires_at, jitter);
        let log = self.request_log(&part.request, part.ended_at);
        log.log_event(event, outcome, verdict, is_sent);
        log.keep_record(event, outcome, verdict, is_sent);
        if is_sent {
            log.take_spans(event, outcome, verdict);
        }
        verdict
    }

    /// The draws by which the wait of an event's retry is lengthened. Each message has a draw of its
    /// own, but those whose events share requests come back together.
    fn retry_jitter(&self, at: EntryRef) -> RetryJitter {
        let plan = self.plan();
        let queued = if plan.subscription.batching.request_limits().items_max == 1 {
            self.invocation()
                .jitter_of(at.job, || DrawnJitter::new(self.maker.entropy.fraction()))
        } else {
            plan.jitter
        };
        RetryJitter {
            queued,
            parked: plan.jitter,
            step: self.maker.delay_step,
        }
    }

    /// Whether the answer says that the endpoint of the subscription is gone for good.
    fn is_gone(&self, request: &RequestOutcome) -> bool {
        request.outcome.status() == Some(410) && !self.request.pass.is_fallback
    }

    fn elapsed_since_start(&self, request: &RequestOutcome) -> Duration {
        let now = self.maker.clock.monotonic();
        now.saturating_sub(request.started)
    }

    fn request_log<'s>(
        &'s self,
        request: &'s RequestOutcome,
        ended_at: Timestamp,
    ) -> RequestLog<'s> {
        let pass = &self.request.pass;
        RequestLog {
            invocation: pass.invocation,
            plan: pass.plan,
            link: pass.target.link(),
            endpoint: pass.endpoint,
            request,
            ended_at,
            traces: &self.maker.poster.traces,
        }
    }

    fn invocation(&self) -> &'a Invocation {
        self.request.pass.invocation
    }

    fn plan(&self) -> &'a RequestPlan {
        self.request.pass.plan
    }
}

/// The keys of a request's first events, by which refusals of different events are told apart.
fn first_keys<'a>(
    invocation: &'a Invocation,
    events: &[LoadedPayload],
) -> [Option<&'a str>; REFUSED_EVENTS_MIN] {
    std::array::from_fn(|index| Some(invocation.entry(events.get(index)?.at).key.as_str()))
}
