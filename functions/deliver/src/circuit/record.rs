//! Records outcomes of requests: counts them here, and reports them to all workers when that makes
//! a difference.

use posthaste_core::circuit::{
    DeliveryTarget, HealthSignal, HealthSignals, Observation, REFUSED_EVENTS_MIN, RefusalSubject,
    RequestFailure, RequestedPause, health_signals, requested_pause,
};
use posthaste_core::model::{AttemptOutcome, Timestamp};
use posthaste_ports::{Clock, Ports};

use super::pass::{CircuitPass, ProbePermit};

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
    /// The events are sent again in parts, whose answers say more.
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

impl<P: Ports> CircuitPass<'_, P> {
    /// Records the outcome of the request. Its probe is used up, unless its parts follow.
    pub(crate) async fn record_outcome(&mut self, request: CompletedRequest<'_>) {
        let Some(signs) = health_signals(request.outcome) else {
            return Box::pin(self.give_up_probe()).await;
        };
        let link = self.link_target();
        if request.is_split {
            self.count_result(&link, HealthSignal::Good, request);
            return;
        }
        let probe = self.probe.take();
        if request.outcome.is_success() && probe.is_none() && self.circuit.is_all_well() {
            // One more success is no news for the other workers.
            for target in [&link, &self.target] {
                self.count_result(target, HealthSignal::Good, request);
            }
            return;
        }
        Box::pin(self.record_news(request, probe, signs)).await;
    }

    /// Leaves the probe to another request, because this one was not made or showed nothing.
    pub(crate) async fn give_up_probe(&mut self) {
        let Some(probe) = self.probe.take() else {
            return;
        };
        let targets = [self.link_target(), self.target.clone()];
        let probed = targets.into_iter().filter(|target| probe.probes(target));
        let seen: Vec<_> = probed.map(|target| (target, probe.give_up())).collect();
        self.circuit
            .report_observations(self.invocation, &seen)
            .await;
    }

    async fn record_news(
        &self,
        request: CompletedRequest<'_>,
        probe: Option<ProbePermit>,
        signs: HealthSignals,
    ) {
        let asked = self.pause_to_share(signs, request);
        let of_both = [
            (self.link_target(), signs.link),
            (self.target.clone(), signs.subscription),
        ];
        let seen = of_both.into_iter().filter_map(|(target, sign)| {
            let probe = probe.as_ref().filter(|probe| probe.probes(&target));
            let asked = asked.as_ref().filter(|_| target == self.target);
            let seen = match (asked, probe) {
                (Some(asked), probe) => Observation::Asked(RequestedPause {
                    probe: probe.map(|probe| probe.by.clone()),
                    ..asked.clone()
                }),
                (None, Some(probe)) => self.record_probe(probe, &target, sign, request),
                (None, None) => self.count_result(&target, sign, request)?,
            };
            Some((target, seen))
        });
        let seen: Vec<_> = seen.collect();
        self.circuit
            .report_observations(self.invocation, &seen)
            .await;
    }

    /// Notes the answer to a probe of a target, and returns the observation to report.
    fn record_probe(
        &self,
        probe: &ProbePermit,
        target: &DeliveryTarget,
        sign: HealthSignal,
        request: CompletedRequest<'_>,
    ) -> Observation {
        if sign == HealthSignal::Good {
            let now = self.circuit.clock.now();
            self.circuit.counts.note_success(target, now);
        }
        request.probe_observation(probe, target, sign)
    }

    /// The pause that the endpoint asked for, if the other workers should know of it. A brief one
    /// stays here.
    fn pause_to_share(
        &self,
        signs: HealthSignals,
        request: CompletedRequest<'_>,
    ) -> Option<RequestedPause> {
        let target = &self.target;
        let now = self.circuit.clock.now();
        let pauses = &self.circuit.counts.pauses;
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

    /// Counts the result of a request that was no probe, and returns the observation that is worth
    /// reporting.
    fn count_result(
        &self,
        target: &DeliveryTarget,
        sign: HealthSignal,
        request: CompletedRequest<'_>,
    ) -> Option<Observation> {
        if request.is_own_problem(target, sign) {
            return None;
        }
        let subscription = &self.target;
        let now = self.circuit.clock.now();
        let counts = &self.circuit.counts;
        let failures = counts.count_result(target, subscription, sign, now);
        let last = RequestFailure::from_outcome(request.outcome);
        self.invocation
            .count_result(target, subscription, sign, last, request.began);
        let is_streak = failures >= self.circuit.links.settings().failures_in_a_row;
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

    /// Counts a refusal of a request that was no probe, and returns the observation that is worth
    /// reporting.
    fn count_refusal(
        &self,
        target: &DeliveryTarget,
        refusal: RefusalSubject,
        last: RequestFailure,
        request: CompletedRequest<'_>,
    ) -> Option<Observation> {
        let refusals_min = self.circuit.links.settings().refusals_in_row;
        if refusals_min == 0 || request.is_disabling {
            return None;
        }
        let events = request.events.into_iter().flatten();
        let now = self.circuit.clock.now();
        let counts = &self.circuit.counts;
        let refusals = counts.count_refusal(target, refusal, events, now);
        (refusals >= refusals_min).then_some(Observation::Refused {
            refusals,
            last,
            began: request.began,
        })
    }
}

#[cfg(test)]
mod tests;
