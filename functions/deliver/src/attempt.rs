//! One attempt: enter the link's lane, post, judge the answer, split a refused batch.

use std::time::Duration;

use http::Method;
use posthaste_core::attempt::batch::{BatchAnswer, Follow, Splitting, events_of_next_request};
use posthaste_core::attempt::decide::{AttemptState, DeadLetterReason, Outcome, Verdict, decide, is_expired};
use posthaste_core::attempt::outcome::SendFailure;
use posthaste_core::attempt::request::{AttemptContext, Outgoing, request};
use posthaste_core::attempt::retry::parse_retry_after;
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::model::delivery::LastAttempt;
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{Clock, Ports, WebhookAnswer, WebhookClient, WebhookRequest};
use posthaste_services::catch_panic::catch_panic;

use crate::Deliver;
use crate::concurrency::Permit;
use crate::health::{Made, Route};
use crate::intake::{OUR_FAULT_WAIT, Planned};
use crate::invocation::{EntryRef, Invocation};
use crate::posted::Posted;
use crate::rates::{LANE_KEPT_FOR_TURN_MAX, Turn};
use crate::report;
use crate::texts::{Loaded, Texts};

impl<P: Ports> Deliver<P> {
    /// Makes a planned request, or several where a batch is split, and settles what is complete by then.
    pub(crate) async fn attempt(&self, invocation: &Invocation, planned: Planned) {
        // A panic costs the messages of this request, which are handed back, and not their neighbours.
        let Ok(verdicts) = catch_panic(self.try_attempt(invocation, &planned)).await else {
            tracing::error!(topic = %planned.subscription.topic, subscription = %planned.subscription.name, "an attempt panicked, its messages are handed back");
            return;
        };
        if verdicts.iter().any(|(_, verdict)| *verdict != EntryVerdict::NotStarted) {
            self.note_attempt(invocation, &planned.subscription).await;
        }
        for (at, verdict) in verdicts {
            let job = &invocation.jobs[at.job];
            if let Some(complete) = job.judge(at.entry, verdict)
                && catch_panic(self.settle(invocation, job, &complete)).await.is_err()
            {
                job.hand_back();
            }
        }
    }

    async fn try_attempt(&self, invocation: &Invocation, planned: &Planned) -> Vec<(EntryRef, EntryVerdict)> {
        let route = match self.route(planned).await {
            Ok(route) => route,
            Err(verdict) => return planned.entries.iter().map(|at| (*at, verdict)).collect(),
        };
        let turn = match self.turn(invocation, planned, Duration::ZERO).await {
            Ok(turn) => turn,
            Err(verdict) => return planned.entries.iter().map(|at| (*at, verdict)).collect(),
        };
        match self.enter(invocation, planned, &route).await {
            Some(permit) => self.send_all(invocation, planned, route, permit, turn).await,
            None => not_started(&planned.entries),
        }
    }

    /// Waits for the link's lane, but not past the last moment at which the attempt could still end in time.
    async fn enter(&self, invocation: &Invocation, planned: &Planned, route: &Route<'_>) -> Option<Permit> {
        let left = self.time_to_start(invocation, planned)?;
        tokio::select! {
            biased;
            permit = self.limits.enter(&route.target) => permit,
            () = self.ports.clock.sleep(left) => None,
        }
    }

    /// How long the attempt's start may still wait; `None` if it would end too late.
    fn time_to_start(&self, invocation: &Invocation, planned: &Planned) -> Option<Duration> {
        invocation.last_start(planned.subscription.timeout)?.checked_sub(self.ports.clock.monotonic())
    }

    /// How many requests as long as the one that began at `start` may still begin, one after the other.
    fn requests_left(&self, invocation: &Invocation, planned: &Planned, start: Duration) -> u32 {
        let took = self.ports.clock.monotonic().saturating_sub(start).as_millis().max(1);
        let left = self.time_to_start(invocation, planned).map_or(0, |left| 1 + left.as_millis() / took);
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    /// Posts the entries; a batch refused for its content is posted again in halves, down to single events.
    async fn send_all(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        mut route: Route<'_>,
        permit: Permit,
        turn: Turn,
    ) -> Vec<(EntryRef, EntryVerdict)> {
        let Texts { loaded, unloadable: mut verdicts, held } = self.load(invocation, planned).await;
        let mut waiting = if loaded.is_empty() { vec![] } else { vec![loaded] };
        let (mut turn, mut splitting, mut refused) = (Some(turn), Splitting::default(), None);
        while let Some(run) = waiting.pop() {
            if let Err(verdict) = self.ready(invocation, planned, &mut route, turn.take()).await {
                verdicts.extend(run.iter().map(|event| (event.at, verdict)));
                continue;
            }
            let (mut run, expired) = self.expire(invocation, run, refused);
            verdicts.extend(expired);
            if run.is_empty() {
                self.give_up_probe(invocation, &mut route).await;
                continue;
            }
            let (began, start) = (self.ports.clock.now(), self.ports.clock.monotonic());
            let Some(posted) = self.post(invocation, planned, &route, &run).await else {
                self.give_up_probe(invocation, &mut route).await;
                verdicts.extend(run.iter().map(|event| (event.at, UNRENDERABLE)));
                continue;
            };
            self.note(invocation, &mut route, Made { planned, began, outcome: posted.outcome }).await;
            // An endpoint that is gone is not asked for the other halves.
            let is_gone = posted.outcome.status() == Some(410) && !route.is_fallback;
            let answer = batch_answer(invocation, &run, posted.outcome);
            let follow = splitting.follow(answer, &planned.subscription.retry);
            if follow == Follow::Split {
                refused = LastAttempt::of(posted.outcome, self.ports.clock.now());
                let requests_left = self.requests_left(invocation, planned, start);
                let rest = run.split_off(events_of_next_request(run.len(), requests_left));
                waiting.extend([rest, run]);
                continue;
            }
            verdicts.extend(self.judge(invocation, planned, &route, &run, &posted));
            if follow == Follow::JudgeAll {
                report::refuses_all(planned, &posted);
            }
            if is_gone || follow == Follow::JudgeAll {
                let rest = waiting.drain(..).flatten();
                verdicts.extend(
                    rest.map(|event| self.judge_one(invocation, planned, &route, &event, posted.outcome)),
                );
            }
            if is_gone && planned.subscription.retry.disable_on_gone {
                // Cut off, it is left to the next event, which meets the same answer.
                self.before(invocation.attempts_end(), self.retire(&planned.subscription)).await;
            }
        }
        drop((permit, held));
        verdicts
    }

    /// Waits until a request may begin. An `Err` is the verdict over its events where it may not.
    async fn ready(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        route: &mut Route<'_>,
        turn: Option<Turn>,
    ) -> Result<(), EntryVerdict> {
        if self.limits.is_closed() || self.time_to_start(invocation, planned).is_none() {
            return Err(EntryVerdict::NotStarted);
        }
        self.in_turn(invocation, planned, turn).await?;
        self.admit(planned, route).await?;
        // Asking others whether it may be sent has taken some time.
        if self.time_to_start(invocation, planned).is_none() {
            self.give_up_probe(invocation, route).await;
            return Err(EntryVerdict::NotStarted);
        }
        Ok(())
    }

    /// Takes out what expired while it waited for its request. A part of a batch was `refused` with it in this attempt.
    fn expire(
        &self,
        invocation: &Invocation,
        run: Vec<Loaded>,
        refused: Option<LastAttempt>,
    ) -> (Vec<Loaded>, Vec<(EntryRef, EntryVerdict)>) {
        let now = self.ports.clock.now();
        let is_over = |event: &Loaded| is_expired(invocation.entry(event.at).expires_at, now);
        let (expired, run): (Vec<_>, Vec<_>) = run.into_iter().partition(is_over);
        let verdict = EntryVerdict::GiveUp { reason: DeadLetterReason::TimeToLiveExceeded, last: refused };
        (run, expired.iter().map(|event| (event.at, verdict)).collect())
    }

    /// Waits for a turn, unless the one that there is still holds: it may have passed while the request waited for its
    /// lane, and each half of a batch is a request of its own.
    async fn in_turn(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        turn: Option<Turn>,
    ) -> Result<(), EntryVerdict> {
        match turn.filter(|turn| turn.holds(self.ports.clock.now())) {
            Some(_) => Ok(()),
            None => self.turn(invocation, planned, LANE_KEPT_FOR_TURN_MAX).await.map(drop),
        }
    }

    /// Posts one request. `None` if it cannot be rendered.
    async fn post(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        route: &Route<'_>,
        run: &[Loaded],
    ) -> Option<Posted> {
        let subscription = &*planned.subscription;
        let events: Vec<_> = run.iter().map(|event| outgoing(invocation, event)).collect();
        let context = AttemptContext {
            subscription,
            schema: planned.schema,
            attempts_before: planned.attempts_before,
            replayed: planned.replayed,
            hops: planned.hops,
            at: self.ports.clock.now(),
            origin: &self.settings.origin,
        };
        let (headers, body) = match request(context, &events) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::error!(topic = %subscription.topic, subscription = %subscription.name, error = &error as &dyn std::error::Error, "event cannot be sent");
                return None;
            }
        };
        let mut answer = self
            .ports
            .webhook
            .send(WebhookRequest {
                method: Method::POST,
                url: route.endpoint.clone(),
                headers,
                body,
                timeout: subscription.timeout,
            })
            .await;
        if let Some(late) = answer.late.take() {
            self.let_go_on(invocation, planned, route, run, late);
        }
        let posted = Posted::new(invocation, planned, run, &answer, self.outcome(&answer));
        report::attempt(planned, route.endpoint, run.len(), &posted, answer.took);
        Some(posted)
    }

    fn outcome(&self, answer: &WebhookAnswer) -> Outcome {
        match &answer.result {
            Ok(response) => {
                let value = response.headers.get(http::header::RETRY_AFTER).and_then(|v| v.to_str().ok());
                let retry_after = value.and_then(|value| parse_retry_after(value, self.ports.clock.now()));
                Outcome::Answered { status: response.status.as_u16(), retry_after }
            }
            Err(failure) => Outcome::Failed(*failure),
        }
    }

    fn judge(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        route: &Route<'_>,
        run: &[Loaded],
        posted: &Posted,
    ) -> Vec<(EntryRef, EntryVerdict)> {
        let judge = |(index, event)| self.judge_one(invocation, planned, route, event, posted.of(index));
        run.iter().enumerate().map(judge).collect()
    }

    fn judge_one(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        route: &Route<'_>,
        event: &Loaded,
        outcome: Outcome,
    ) -> (EntryRef, EntryVerdict) {
        let (at, now) = (event.at, self.ports.clock.now());
        if outcome == Outcome::Failed(SendFailure::Exhausted) {
            return (at, EntryVerdict::Postponed { not_before: now + OUR_FAULT_WAIT });
        }
        let state = AttemptState {
            attempt: planned.attempts_before.saturating_add(1),
            expires_at: invocation.entry(at).expires_at,
            name_was_unknown: planned.name_was_unknown,
            is_fallback: route.is_fallback,
        };
        let verdict = decide(&state, outcome, &planned.subscription.retry, planned.jitter, now);
        (at, entry_verdict(verdict, outcome, now))
    }
}

fn batch_answer(invocation: &Invocation, run: &[Loaded], outcome: Outcome) -> BatchAnswer {
    let was_refused =
        |event: &Loaded| invocation.jobs[event.at.job].delivery.last.is_some_and(LastAttempt::was_refused);
    BatchAnswer { outcome, events: run.len(), was_refused: run.iter().any(was_refused) }
}

fn outgoing<'a>(invocation: &'a Invocation, event: &Loaded) -> Outgoing<'a> {
    let entry = invocation.entry(event.at);
    Outgoing { key: &entry.key, json: event.text.clone(), traceparent: entry.traceparent.as_deref() }
}

fn not_started(entries: &[EntryRef]) -> Vec<(EntryRef, EntryVerdict)> {
    entries.iter().map(|at| (*at, EntryVerdict::NotStarted)).collect()
}

fn entry_verdict(verdict: Verdict, outcome: Outcome, now: Timestamp) -> EntryVerdict {
    let last = LastAttempt::of(outcome, now);
    match (verdict, last) {
        (Verdict::Retry { not_before }, Some(last)) => EntryVerdict::Retry { not_before, last },
        (Verdict::GiveUp { reason }, last) => EntryVerdict::GiveUp { reason, last },
        (Verdict::Delivered | Verdict::Retry { .. }, _) => EntryVerdict::Delivered,
    }
}

/// An event that cannot be rendered for its subscription is given up: no retry can help, and no attempt was made.
const UNRENDERABLE: EntryVerdict =
    EntryVerdict::GiveUp { reason: DeadLetterReason::UndeliverableDueToClientError, last: None };
