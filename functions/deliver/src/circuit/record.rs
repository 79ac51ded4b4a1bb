//! Records outcomes: counts them here, and reports them to all workers when that makes a
//! difference.

use std::time::Duration;

use posthaste_core::circuit::{
    DeliveryTarget, EXCHANGE_FAILED, HealthSignal, HealthSignals, LINK_FAILED, Observation,
    REFUSED_EVENTS_MIN, RefusalSubject, RequestFailure, RequestedPause, TargetCondition,
    TargetPhase, brief_pause_end, health_signals, requested_pause,
};
use posthaste_core::model::{AttemptOutcome, Timestamp};
use posthaste_ports::{Clock, Ports, WebhookClient};
use posthaste_services::stop_at;
use tracing::field::display;

use super::CircuitBreaker;
use super::route::{ProbePermit, RequestRoute};
use crate::invocation::Invocation;

/// The longest report to the other workers. The request's events wait for it.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// The answer that speaks of all requests (RFC 6585).
const TOO_MANY_REQUESTS: u16 = 429;

/// A request that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletedRequest<'a> {
    pub(crate) began: Timestamp,
    pub(crate) outcome: AttemptOutcome,
    /// A problem event's failure says nothing about where it goes.
    pub(crate) is_problem: bool,
    /// The answer disables the subscription.
    pub(crate) is_disabling: bool,
    /// Its events are sent again in parts, whose answers say more.
    pub(crate) is_split: bool,
    /// The keys of its first events.
    pub(crate) events: [Option<&'a str>; REFUSED_EVENTS_MIN],
}

impl CompletedRequest<'_> {
    fn is_own_problem(self, target: &DeliveryTarget, sign: HealthSignal) -> bool {
        let is_subscription = matches!(target, DeliveryTarget::Subscription { .. });
        self.is_problem
            && (sign == HealthSignal::Suspect || sign == HealthSignal::Bad && is_subscription)
    }

    /// The answer to a probe of a target.
    fn probe_observation(
        self,
        probe: &ProbePermit,
        target: &DeliveryTarget,
        sign: HealthSignal,
    ) -> Observation {
        let by = probe.by.clone();
        match RequestFailure::from_outcome(self.outcome) {
            _ if self.outcome.is_unknown_name() => Observation::ProbeFoundNoName { by },
            _ if self.is_own_problem(target, sign) => Observation::ProbeGivenUp { by },
            Some(last)
                if matches!(
                    sign,
                    HealthSignal::Bad | HealthSignal::Suspect | HealthSignal::Unknown
                ) =>
            {
                Observation::ProbeFailed { by, last }
            }
            Some(last) if matches!(sign, HealthSignal::Refuses(_)) => {
                Observation::ProbeRefused { by, last }
            }
            _ => Observation::ProbeSucceeded { by },
        }
    }
}

impl<P: Ports> CircuitBreaker<P> {
    /// Records the outcome of a request. Its probe is used up, unless its parts follow.
    pub(crate) async fn record_outcome(
        &self,
        invocation: &Invocation,
        route: &mut RequestRoute<'_>,
        request: CompletedRequest<'_>,
    ) {
        let Some(signs) = health_signals(request.outcome) else {
            return Box::pin(self.give_up_probe(invocation, route)).await;
        };
        if request.is_split {
            let link = DeliveryTarget::Link(route.target.link().clone());
            self.count_result(invocation, route, &link, HealthSignal::Good, request);
            return;
        }
        let probe = route.probe.take();
        let link = DeliveryTarget::Link(route.target.link().clone());
        if request.outcome.is_success() && probe.is_none() && self.is_all_well() {
            // One more success is no news for the other workers.
            for target in [&link, &route.target] {
                self.count_result(invocation, route, target, HealthSignal::Good, request);
            }
            return;
        }
        Box::pin(self.record_news(invocation, route, request, (probe, signs))).await;
    }

    async fn record_news(
        &self,
        invocation: &Invocation,
        route: &RequestRoute<'_>,
        request: CompletedRequest<'_>,
        (probe, signs): (Option<ProbePermit>, HealthSignals),
    ) {
        let link = DeliveryTarget::Link(route.target.link().clone());
        let asked = self.pause_to_share(&route.target, signs, request);
        let of_both = [
            (link, signs.link),
            (route.target.clone(), signs.subscription),
        ];
        let seen = of_both.into_iter().filter_map(|(target, sign)| {
            let probe = probe.as_ref().filter(|probe| probe.probes(&target));
            let seen = match (&asked, probe) {
                (Some(asked), probe) if target == route.target => {
                    Observation::Asked(RequestedPause {
                        probe: probe.map(|probe| probe.by.clone()),
                        ..asked.clone()
                    })
                }
                (_, Some(probe)) => {
                    if sign == HealthSignal::Good {
                        self.counts.note_success(&target, self.clock.now());
                    }
                    request.probe_observation(probe, &target, sign)
                }
                (_, None) => self.count_result(invocation, route, &target, sign, request)?,
            };
            Some((target, seen))
        });
        let seen: Vec<_> = seen.collect();
        self.report_observations(invocation, &seen).await;
    }

    /// The pause that the endpoint asked for, if the other workers should know of it. A brief one
    /// stays here.
    fn pause_to_share(
        &self,
        target: &DeliveryTarget,
        signs: HealthSignals,
        request: CompletedRequest<'_>,
    ) -> Option<RequestedPause> {
        let now = self.clock.now();
        let pauses = &self.counts.pauses;
        if matches!(
            signs.subscription,
            HealthSignal::Good | HealthSignal::Answers | HealthSignal::Refuses(_)
        ) {
            pauses.note_success(target, now);
        }
        // What is wrong with one event is no reason to let the others wait. That there are too many
        // of them is nothing that is wrong with one.
        if request.is_problem && request.outcome.status() != Some(TOO_MANY_REQUESTS) {
            return None;
        }
        let pause = requested_pause(request.outcome, now)?;
        if pause.is_brief {
            tracing::debug!(
                link = %target.link(), topic = target.topic().map(display),
                subscription = target.subscription().map(display), until = %pause.until,
                "the endpoint asked for a brief pause"
            );
            pauses.begin_pause(target, pause.until, now);
            return None;
        }
        let last = RequestFailure::from_outcome(request.outcome)?;
        Some(RequestedPause {
            until: pause.until,
            last,
            began: request.began,
            probe: None,
        })
    }

    /// Counts the result of a request that was no probe, and answers the observation that is worth
    /// reporting.
    fn count_result(
        &self,
        invocation: &Invocation,
        route: &RequestRoute<'_>,
        target: &DeliveryTarget,
        sign: HealthSignal,
        request: CompletedRequest<'_>,
    ) -> Option<Observation> {
        if request.is_own_problem(target, sign) {
            return None;
        }
        let subscription = &route.target;
        let failures = self
            .counts
            .count_result(target, subscription, sign, self.clock.now());
        let last = RequestFailure::from_outcome(request.outcome);
        invocation.count_result(target, subscription, sign, last, request.began);
        let is_streak = failures >= self.links.settings().failures_in_a_row;
        match (sign, last) {
            (HealthSignal::Refuses(refusal), Some(last)) => {
                self.count_refusal(target, refusal, last, request)
            }
            (HealthSignal::Good, _) => Some(Observation::Succeeded),
            (HealthSignal::Bad | HealthSignal::Suspect, Some(last)) if is_streak => {
                Some(Observation::Failing {
                    failures,
                    last,
                    began: request.began,
                })
            }
            _ => None,
        }
    }

    /// Counts a refusal of a request that was no probe, and answers the observation that is worth
    /// reporting.
    fn count_refusal(
        &self,
        target: &DeliveryTarget,
        refusal: RefusalSubject,
        last: RequestFailure,
        request: CompletedRequest<'_>,
    ) -> Option<Observation> {
        let refusals_min = self.links.settings().refusals_in_row;
        if refusals_min == 0 || request.is_disabling {
            return None;
        }
        let events = request.events.into_iter().flatten();
        let now = self.clock.now();
        let refusals = self.counts.count_refusal(target, refusal, events, now);
        (refusals >= refusals_min).then_some(Observation::Refused {
            refusals,
            last,
            began: request.began,
        })
    }

    /// Leaves the probe to another request, because this one was not made or showed nothing.
    pub(crate) async fn give_up_probe(
        &self,
        invocation: &Invocation,
        route: &mut RequestRoute<'_>,
    ) {
        let Some(probe) = route.probe.take() else {
            return;
        };
        let link = DeliveryTarget::Link(route.target.link().clone());
        let asked = [link, route.target.clone()]
            .into_iter()
            .filter(|target| probe.probes(target));
        let given_up = |target| {
            (
                target,
                Observation::ProbeGivenUp {
                    by: probe.by.clone(),
                },
            )
        };
        let seen: Vec<_> = asked.map(given_up).collect();
        self.report_observations(invocation, &seen).await;
    }

    /// Reports the targets all of whose requests failed in this invocation, and of which this
    /// worker knows no success of a moment ago.
    pub(crate) async fn end_invocation(&self, invocation: &Invocation) {
        for all_failed in invocation.all_failed(self.links.settings().failures_of_invocation) {
            if self.counts.is_streak(&all_failed, self.clock.now()) {
                let seen = (all_failed.target, all_failed.observation);
                Box::pin(self.report_observations(invocation, &[seen])).await;
            }
        }
    }

    /// Reports to the other workers. If that fails, the next failure is reported instead.
    async fn report_observations(
        &self,
        invocation: &Invocation,
        seen: &[(DeliveryTarget, Observation)],
    ) {
        if seen.is_empty() {
            return;
        }
        let end = invocation
            .deadlines
            .storing_end()
            .min(self.clock.monotonic() + REPORT_TIME);
        let changed = match stop_at(&self.clock, end, self.links.observe(seen)).await {
            Some(Ok(changed)) => changed,
            Some(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "state of an endpoint not stored");
                return self.pause_here(seen);
            }
            None => {
                tracing::warn!("state of an endpoint not stored in time");
                return self.pause_here(seen);
            }
        };
        for (target, observation) in seen {
            if matches!(
                observation,
                Observation::Failing { .. } | Observation::Refused { .. } | Observation::Asked(_)
            ) {
                self.counts.reset_target(target);
                invocation.forget_results(target);
            }
        }
        for target in &changed {
            self.act_on_change(target);
        }
        if !changed.is_empty() {
            // wake sends the notices of links.
            let _ = stop_at(&self.clock, end, self.wake.signal_if_due()).await;
        }
    }

    /// Keeps a pause here for a moment if it could not be reported. The next answer is reported
    /// again.
    fn pause_here(&self, seen: &[(DeliveryTarget, Observation)]) {
        let now = self.clock.now();
        for (target, observation) in seen {
            if let Observation::Asked(asked) = observation {
                self.counts
                    .pauses
                    .begin_pause(target, brief_pause_end(asked.until, now), now);
            }
        }
    }

    /// Acts on a change of a target's state.
    fn act_on_change(&self, target: &DeliveryTarget) {
        let Some(condition) = self.links.condition(target) else {
            return;
        };
        // A probe that was given up has changed nothing else.
        if condition.phase == TargetPhase::Recovering || condition.until > self.clock.now() {
            log_state_change(target, &condition);
        }
        if let DeliveryTarget::Link(link) = target
            && condition.next_probe().is_some()
        {
            self.webhook.drop_link(link);
        }
    }
}

fn log_state_change(target: &DeliveryTarget, condition: &TargetCondition) {
    let TargetCondition {
        phase: state,
        hold,
        until,
        failures,
        failing_since,
        last,
        ..
    } = condition;
    let link = target.link();
    let outcome = last.outcome;
    let status = last.status;
    let topic = target.topic().map(display);
    let subscription = target.subscription().map(display);
    match (state, target) {
        (TargetPhase::Recovering, _) if condition.forced => tracing::info!(
            %link, topic, subscription, %failing_since, failures, %outcome, status,
            "waiting deliveries go out again, though none has succeeded yet"
        ),
        (TargetPhase::Recovering, _) => tracing::info!(
            %link, topic, subscription, %failing_since, failures,
            "the endpoint answers again, waiting deliveries go out"
        ),
        _ if condition.is_pause() => tracing::info!(
            %link, topic, subscription, %until, %outcome, status,
            "the endpoint asked for a pause, its subscription waits"
        ),
        _ if condition.refused => tracing::warn!(
            id = EXCHANGE_FAILED, %link, topic, subscription, %state, hold, %until, failures,
            %outcome, status,
            "the endpoint refuses different events, the subscription gets no requests for now"
        ),
        (TargetPhase::Glitch | TargetPhase::Retry, DeliveryTarget::Link(_)) => tracing::warn!(
            id = LINK_FAILED, %link, %state, hold, %until, failures, %outcome, status,
            "delivery to the link failed, it gets no requests for now"
        ),
        (TargetPhase::Glitch | TargetPhase::Retry, DeliveryTarget::Subscription { .. }) => {
            tracing::warn!(
                id = EXCHANGE_FAILED, %link, topic, subscription, %state,
                hold, %until, failures, %outcome, status,
                "delivery failed after the link was reached, the subscription gets no requests for now"
            );
        }
    }
}

#[cfg(test)]
mod tests;
