//! Records outcomes: counts them here, and reports them to all workers when that makes a
//! difference.

use std::time::Duration;

use posthaste_core::attempt::Outcome;
use posthaste_core::circuit::{
    Asked, Condition, EXCHANGE_FAILED, Failure, HealthSignal, HealthSignals, LINK_FAILED,
    Observation, Phase, Target, brief, health_signals, pause,
};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Ports, WebhookClient};
use posthaste_services::stop_at;
use tracing::field::display;

use super::Circuit;
use super::route::{Probe, Route};
use crate::invocation::Invocation;

/// The longest report to the other workers. The request's events wait for it.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// A request that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompletedRequest {
    pub(crate) began: Timestamp,
    pub(crate) outcome: Outcome,
    /// A problem event's failure says nothing about where it goes.
    pub(crate) is_problem: bool,
}

impl CompletedRequest {
    fn is_own_problem(self, target: &Target, sign: HealthSignal) -> bool {
        let is_subscription = matches!(target, Target::Subscription { .. });
        self.is_problem
            && (sign == HealthSignal::Suspect || sign == HealthSignal::Bad && is_subscription)
    }

    /// The answer to a probe of a target.
    fn answers(self, probe: &Probe, target: &Target, sign: HealthSignal) -> Observation {
        let by = probe.by.clone();
        match Failure::of(self.outcome) {
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
            _ => Observation::ProbeSucceeded { by },
        }
    }
}

impl<P: Ports> Circuit<P> {
    /// Records the outcome of a request. Its probe is used up.
    pub(crate) async fn record_outcome(
        &self,
        invocation: &Invocation,
        route: &mut Route<'_>,
        request: CompletedRequest,
    ) {
        let Some(signs) = health_signals(request.outcome) else {
            return Box::pin(self.give_up_probe(invocation, route)).await;
        };
        let probe = route.probe.take();
        let link = Target::Link(route.target.link().clone());
        if request.outcome.is_success() && probe.is_none() && self.is_all_well() {
            // One more success is no news for the other workers.
            for target in [&link, &route.target] {
                self.count(invocation, route, target, HealthSignal::Good, request);
            }
            return;
        }
        Box::pin(self.record_news(invocation, route, request, (probe, signs))).await;
    }

    async fn record_news(
        &self,
        invocation: &Invocation,
        route: &Route<'_>,
        request: CompletedRequest,
        (probe, signs): (Option<Probe>, HealthSignals),
    ) {
        let link = Target::Link(route.target.link().clone());
        let asked = self.asked(&route.target, signs, request);
        let of_both = [
            (link, signs.link),
            (route.target.clone(), signs.subscription),
        ];
        let seen = of_both.into_iter().filter_map(|(target, sign)| {
            let probe = probe.as_ref().filter(|probe| probe.asks(&target));
            let seen = match (&asked, probe) {
                (Some(asked), probe) if target == route.target => Observation::Asked(Asked {
                    probe: probe.map(|probe| probe.by.clone()),
                    ..asked.clone()
                }),
                (_, Some(probe)) => {
                    if sign == HealthSignal::Good {
                        self.counts.succeeded(&target, self.clock.now());
                    }
                    request.answers(probe, &target, sign)
                }
                (_, None) => self.count(invocation, route, &target, sign, request)?,
            };
            Some((target, seen))
        });
        let seen: Vec<_> = seen.collect();
        self.report(invocation, &seen).await;
    }

    /// The pause that the endpoint asked for, if the other workers should know of it. A brief one
    /// stays here.
    fn asked(
        &self,
        target: &Target,
        signs: HealthSignals,
        request: CompletedRequest,
    ) -> Option<Asked> {
        let (now, pauses) = (self.clock.now(), &self.counts.pauses);
        if matches!(
            signs.subscription,
            HealthSignal::Good | HealthSignal::Answers
        ) {
            pauses.succeeded(target, now);
        }
        // What is wrong with one event is no reason to let the others wait.
        if request.is_problem {
            return None;
        }
        let pause = pause(request.outcome, now)?;
        if pause.is_brief {
            tracing::debug!(
                link = %target.link(), topic = target.topic().map(display),
                subscription = target.subscription().map(display), until = %pause.until,
                "the endpoint asked for a brief pause"
            );
            pauses.begin(target, pause.until, now);
            return None;
        }
        let last = Failure::of(request.outcome)?;
        Some(Asked {
            until: pause.until,
            last,
            began: request.began,
            probe: None,
        })
    }

    /// Counts the result of a request that was no probe, and answers the observation that is worth
    /// reporting.
    fn count(
        &self,
        invocation: &Invocation,
        route: &Route<'_>,
        target: &Target,
        sign: HealthSignal,
        request: CompletedRequest,
    ) -> Option<Observation> {
        if request.is_own_problem(target, sign) {
            return None;
        }
        let subscription = &route.target;
        let failures = self
            .counts
            .count(target, subscription, sign, self.clock.now());
        let last = Failure::of(request.outcome);
        invocation.count(target, subscription, sign, last, request.began);
        let is_streak = failures >= self.links.settings().failures_in_a_row;
        match (sign, last) {
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

    /// Leaves the probe to another request, because this one was not made or showed nothing.
    pub(crate) async fn give_up_probe(&self, invocation: &Invocation, route: &mut Route<'_>) {
        let Some(probe) = route.probe.take() else {
            return;
        };
        let link = Target::Link(route.target.link().clone());
        let asked = [link, route.target.clone()]
            .into_iter()
            .filter(|target| probe.asks(target));
        let given_up = |target| {
            (
                target,
                Observation::ProbeGivenUp {
                    by: probe.by.clone(),
                },
            )
        };
        let seen: Vec<_> = asked.map(given_up).collect();
        self.report(invocation, &seen).await;
    }

    /// Reports the targets all of whose requests failed in this invocation, and of which this
    /// worker knows no success of a moment ago.
    pub(crate) async fn end_invocation(&self, invocation: &Invocation) {
        for all_failed in invocation.all_failed(self.links.settings().failures_of_invocation) {
            if self.counts.is_streak(&all_failed, self.clock.now()) {
                let seen = (all_failed.target, all_failed.observation);
                Box::pin(self.report(invocation, &[seen])).await;
            }
        }
    }

    /// Reports to the other workers. If that fails, the next failure is reported instead.
    async fn report(&self, invocation: &Invocation, seen: &[(Target, Observation)]) {
        if seen.is_empty() {
            return;
        }
        let end = invocation
            .deadlines
            .storing()
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
                Observation::Failing { .. } | Observation::Asked(_)
            ) {
                self.counts.reset(target);
                invocation.forget_results(target);
            }
        }
        for target in &changed {
            self.changed(target);
        }
        if !changed.is_empty() {
            // wake sends the notices of links.
            let _ = stop_at(&self.clock, end, self.wake.signal()).await;
        }
    }

    /// Keeps a pause here for a moment if it could not be reported. The next answer is reported
    /// again.
    fn pause_here(&self, seen: &[(Target, Observation)]) {
        let now = self.clock.now();
        for (target, observation) in seen {
            if let Observation::Asked(asked) = observation {
                self.counts
                    .pauses
                    .begin(target, brief(asked.until, now), now);
            }
        }
    }

    /// Acts on a change of a target's state.
    fn changed(&self, target: &Target) {
        let Some(condition) = self.links.condition(target) else {
            return;
        };
        // A probe that was given up has changed nothing else.
        if condition.phase == Phase::Recovering || condition.until > self.clock.now() {
            log_state_change(target, &condition);
        }
        if let Target::Link(link) = target
            && condition.next_probe().is_some()
        {
            self.webhook.drop_link(link);
        }
    }
}

fn log_state_change(target: &Target, condition: &Condition) {
    let Condition {
        phase: state,
        hold,
        until,
        failures,
        failing_since,
        last,
        ..
    } = condition;
    let (link, outcome, status) = (target.link(), last.outcome, last.status);
    let (topic, subscription) = (
        target.topic().map(display),
        target.subscription().map(display),
    );
    match (state, target) {
        (Phase::Recovering, _) if condition.forced => tracing::info!(
            %link, topic, subscription, %failing_since, failures, %outcome, status,
            "waiting deliveries go out again, though none has succeeded yet"
        ),
        (Phase::Recovering, _) => tracing::info!(
            %link, topic, subscription, %failing_since, failures,
            "the endpoint answers again, waiting deliveries go out"
        ),
        _ if condition.is_pause() => tracing::info!(
            %link, topic, subscription, %until, %outcome, status,
            "the endpoint asked for a pause, its subscription waits"
        ),
        (Phase::Glitch | Phase::Retry, Target::Link(_)) => tracing::warn!(
            id = LINK_FAILED, %link, %state, hold, %until, failures, %outcome, status,
            "delivery to the link failed, it gets no requests for now"
        ),
        (Phase::Glitch | Phase::Retry, Target::Subscription { .. }) => tracing::warn!(
            id = EXCHANGE_FAILED, %link, topic, subscription, %state,
            hold, %until, failures, %outcome, status,
            "delivery failed after the link was reached, the subscription gets no requests for now"
        ),
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::attempt::SendFailure;
    use posthaste_core::circuit::CircuitDecision;
    use posthaste_ports::ErrorKind;
    use posthaste_services::LinkHealth;
    use posthaste_testkit::{Fault, Faulty, Operation, Plan, Recorded};
    use serde_json::json;

    use super::*;
    use crate::testing::{
        START, TestPorts, World, delivery, job, request_plan, secs, subscription, target,
    };

    const UNREACHABLE: Outcome = Outcome::Failed(SendFailure::Socket);

    fn answered(status: u16, retry_after: Option<u64>) -> Outcome {
        Outcome::Answered {
            status,
            retry_after: retry_after.map(secs),
        }
    }

    fn own() -> Target {
        target(&subscription(json!({})))
    }

    fn link() -> Target {
        Target::Link(own().link().clone())
    }

    /// Records these outcomes of requests that began now.
    async fn record(
        circuit: &Circuit<TestPorts>,
        invocation: &Invocation,
        outcomes: impl IntoIterator<Item = Outcome>,
        is_problem: bool,
    ) {
        let plan = request_plan(&job(delivery(1), &subscription(json!({}))));
        let mut route = circuit.route(&plan).await.expect("a route");
        for outcome in outcomes {
            let request = CompletedRequest {
                began: circuit.clock.now(),
                outcome,
                is_problem,
            };
            circuit
                .record_outcome(invocation, &mut route, request)
                .await;
        }
    }

    #[tokio::test]
    async fn a_streak_of_failures_is_reported_once_and_drops_the_link() {
        let world = World::new();
        let (circuit, invocation) = (world.circuit(), world.invocation(Vec::new()));
        record(&circuit, &invocation, [UNREACHABLE; 9], false).await;
        assert_eq!(
            (circuit.links.condition(&link()), world.calls.all().len()),
            (None, 0)
        );
        record(&circuit, &invocation, [UNREACHABLE; 1], false).await;
        assert_eq!(
            circuit.links.condition(&link()).map(|it| it.phase),
            Some(Phase::Glitch)
        );
        // The state, and the signal to wake.
        assert_eq!(
            (
                world.endpoint.links_dropped(),
                world.calls.count(Operation::Put)
            ),
            (1, 2)
        );
        assert!(!circuit.counts.is_failing(&own()));
    }

    #[tokio::test]
    async fn a_success_ends_a_streak() {
        let world = World::new();
        let (circuit, invocation) = (world.circuit(), world.invocation(Vec::new()));
        let outcomes = [
            vec![UNREACHABLE; 9],
            vec![answered(204, None)],
            vec![UNREACHABLE; 9],
        ]
        .concat();
        record(&circuit, &invocation, outcomes, false).await;
        assert_eq!(
            (
                circuit.links.condition(&link()),
                world.calls.count(Operation::Put)
            ),
            (None, 0)
        );
    }

    #[tokio::test]
    async fn requests_that_all_fail_are_reported_at_the_end_of_the_invocation() {
        let world = World::new();
        let (circuit, invocation) = (world.circuit(), world.invocation(Vec::new()));
        let failures = usize::try_from(circuit.links.settings().failures_of_invocation).unwrap();
        record(&circuit, &invocation, vec![UNREACHABLE; failures], false).await;
        assert_eq!(world.calls.count(Operation::Put), 0);
        circuit.end_invocation(&invocation).await;
        assert!(circuit.links.condition(&link()).is_some());
    }

    #[tokio::test]
    async fn a_problem_event_says_nothing_about_its_subscription() {
        let world = World::new();
        let (circuit, invocation) = (world.circuit(), world.invocation(Vec::new()));
        record(&circuit, &invocation, vec![answered(503, None); 20], true).await;
        circuit.end_invocation(&invocation).await;
        assert_eq!(
            (
                circuit.links.condition(&own()),
                world.calls.count(Operation::Put)
            ),
            (None, 0)
        );
    }

    #[tokio::test]
    async fn a_brief_pause_stays_here_and_a_longer_one_is_shared() {
        let world = World::new();
        let (circuit, invocation) = (world.circuit(), world.invocation(Vec::new()));
        record(&circuit, &invocation, [answered(503, Some(2))], false).await;
        let delay = CircuitDecision::Delay {
            until: START + secs(2),
        };
        assert_eq!(circuit.counts.pauses.decide(&own(), START), delay);
        assert_eq!(world.calls.count(Operation::Put), 0);
        let circuit = world.circuit();
        record(&circuit, &invocation, [answered(503, Some(300))], false).await;
        assert_eq!(
            circuit.links.condition(&own()).map(|it| it.until),
            Some(START + secs(300))
        );
        assert_eq!(world.calls.count(Operation::Put), 2);
    }

    #[tokio::test]
    async fn a_pause_that_cannot_be_shared_is_kept_here_for_a_moment() {
        let world = World::new();
        let plan = Plan::by(|effect| {
            (effect.operation == Operation::Put).then_some(Fault::Before(ErrorKind::Other))
        });
        let broken = Faulty::new(
            Recorded::new(world.memory.clone(), "links", &world.calls),
            "links",
            &plan,
        );
        let settings = world.circuit().links.settings().clone();
        let links = LinkHealth::new(broken, world.clock.clone(), settings);
        let circuit = Circuit {
            links,
            ..world.circuit()
        };
        record(
            &circuit,
            &world.invocation(Vec::new()),
            [answered(503, Some(300))],
            false,
        )
        .await;
        let decision = circuit.counts.pauses.decide(&own(), START);
        assert!(matches!(decision, CircuitDecision::Delay { until } if until < START + secs(300)));
    }
}
