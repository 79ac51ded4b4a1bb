//! The pass of one request through the circuit: its route to its endpoint, to the fallback while
//! the first is down, or nowhere for now; then its right to begin.

use std::time::Duration;

use posthaste_core::attempt::{DrawnJitter, EntryVerdict};
use posthaste_core::circuit::{
    CircuitDecision, DeliveryTarget, Observation, PROBE_LOOK_AGAIN, ProbedTargets, TargetPhase,
    decide_for_subscription, stricter_decision,
};
use posthaste_core::model::{EndpointUrl, Timestamp};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::stop_at;

use super::breaker::{CircuitBreaker, LOOK_TIME};
use super::ramps::RampPermit;
use crate::invocation::Invocation;
use crate::plan::RequestPlan;

/// The shortest time after which a request tries again that found no room on a ramp.
const RAMP_WAIT_MIN: Duration = Duration::from_secs(1);

/// The way of one request, which the request owns until its outcome is recorded.
pub(crate) struct CircuitPass<'a, P: Ports> {
    pub(super) circuit: &'a CircuitBreaker<P>,
    pub(crate) invocation: &'a Invocation,
    pub(crate) plan: &'a RequestPlan,
    pub(crate) endpoint: &'a EndpointUrl,
    /// The subscription at that endpoint.
    pub(crate) target: DeliveryTarget,
    pub(crate) is_fallback: bool,
    /// The right to find out whether the target is well again.
    pub(super) probe: Option<ProbePermit>,
    /// Of its link, and of its subscription.
    ramps: Vec<RampPermit>,
}

/// The right to a probe.
#[derive(Debug)]
pub(super) struct ProbePermit {
    pub(super) by: String,
    probed: ProbedTargets,
}

/// The answer to a claim of that right.
enum ProbeClaim {
    Probe(ProbePermit),
    /// Another worker probes, or was answered.
    ByAnother,
    /// The claim could not be written.
    Unknown,
}

impl ProbePermit {
    /// Whether it probes this target.
    pub(super) fn probes(&self, target: &DeliveryTarget) -> bool {
        match target {
            DeliveryTarget::Link(_) => self.probed.link,
            DeliveryTarget::Subscription { .. } => self.probed.subscription,
        }
    }

    /// The observation that leaves the probe to another request.
    pub(super) fn give_up(&self) -> Observation {
        Observation::ProbeGivenUp {
            by: self.by.clone(),
        }
    }
}

impl<'a, P: Ports> CircuitPass<'a, P> {
    /// Routes a request. An `Err` is the verdict over its events if it can go nowhere now.
    pub(crate) async fn for_request(
        circuit: &'a CircuitBreaker<P>,
        invocation: &'a Invocation,
        plan: &'a RequestPlan,
    ) -> Result<Self, EntryVerdict> {
        let subscription = &*plan.subscription;
        let mut probing = None;
        for (index, endpoint) in subscription.endpoints().enumerate() {
            let pass = Self {
                circuit,
                invocation,
                plan,
                endpoint,
                target: DeliveryTarget::on_link(endpoint.link(), subscription),
                is_fallback: index > 0,
                probe: None,
                ramps: Vec::new(),
            };
            match pass.decide().await {
                // A request that comes back to it counts from zero.
                CircuitDecision::Hold => pass.count_from_zero(),
                CircuitDecision::Delay { until } => {
                    pass.count_from_zero();
                    pass.note_wait(until);
                    return probing.ok_or(EntryVerdict::Postponed { not_before: until });
                }
                CircuitDecision::Probe(probed) if pass.should_wait_for_fresh(probed) => {
                    return probing.ok_or(pass.look_again_verdict());
                }
                CircuitDecision::Probe(_)
                    if !pass.is_fallback && pass.should_leave_probe_to_others() =>
                {
                    probing = Some(pass);
                }
                CircuitDecision::Open
                | CircuitDecision::Ramp { .. }
                | CircuitDecision::Probe(_) => return Ok(pass),
            }
        }
        probing.ok_or(EntryVerdict::Held)
    }

    /// Whether the request finds out if the target is well again.
    pub(crate) fn is_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Whether other requests to the target succeeded a moment ago.
    pub(crate) fn do_others_arrive(&self) -> bool {
        let now = self.circuit.clock.now();
        self.circuit.counts.is_recently_well(&self.target, now)
    }

    /// Whether the request may be sent now; it may have waited since it was routed. An `Err` is the
    /// verdict over its events if it may not.
    pub(crate) async fn admit(&mut self) -> Result<(), EntryVerdict> {
        if self.probe.is_some() {
            // A part of the batch that is the probe.
            return Ok(());
        }
        let mut gate = self.decide().await;
        if let CircuitDecision::Probe(probed) = gate {
            if self.should_wait_for_fresh(probed) {
                return Err(self.look_again_verdict());
            }
            gate = match Box::pin(self.claim_probe()).await {
                ProbeClaim::Probe(probe) => {
                    self.probe = Some(probe);
                    return Ok(());
                }
                ProbeClaim::ByAnother => self.circuit.decide(&self.target, true).await,
                // One at a time, as far as this worker can tell.
                ProbeClaim::Unknown => CircuitDecision::Ramp {
                    at_once: 1,
                    until: self.circuit.clock.now() + PROBE_LOOK_AGAIN,
                },
            };
        }
        match gate {
            CircuitDecision::Open => Ok(()),
            CircuitDecision::Ramp { at_once, until } => {
                Box::pin(self.enter_ramp(at_once, until)).await
            }
            CircuitDecision::Delay { until } => {
                self.note_wait(until);
                Err(EntryVerdict::Postponed { not_before: until })
            }
            CircuitDecision::Probe(_) => Err(self.look_again_verdict()),
            // There may be another way.
            CircuitDecision::Hold if self.plan.subscription.fallback.is_some() => {
                Err(EntryVerdict::NotStarted)
            }
            CircuitDecision::Hold => Err(EntryVerdict::Held),
        }
    }

    /// Whether the target may get the request. The target is suspected if the events were tried,
    /// delayed or held before. A worker that knows nothing yet then reads the state first, and
    /// sends them only as the probe that they may be.
    async fn decide(&self) -> CircuitDecision {
        let is_suspected = self.plan.has_waited || self.circuit.counts.is_failing(&self.target);
        self.circuit.decide(&self.target, is_suspected).await
    }

    pub(super) fn link_target(&self) -> DeliveryTarget {
        DeliveryTarget::Link(self.target.link().clone())
    }

    /// Whether a delivery has probed an endpoint that is down often enough. Its waits are longer
    /// than the holds, so it would probe with each of its attempts, and be given up though
    /// there is another route.
    fn should_leave_probe_to_others(&self) -> bool {
        let problem_failures = self.circuit.links.settings().problem_failures;
        u32::from(self.plan.kind.attempts_before) >= problem_failures
            && (self.is_in_phase(&self.target, TargetPhase::Retry)
                || self.is_in_phase(&self.link_target(), TargetPhase::Retry))
    }

    fn is_in_phase(&self, target: &DeliveryTarget, phase: TargetPhase) -> bool {
        let condition = self.circuit.links.condition(target);
        condition.is_some_and(|it| it.phase == phase)
    }

    /// Counts what is known to be failing from zero, for a request that comes back to it.
    fn count_from_zero(&self) {
        let link = self.link_target();
        if self.circuit.links.condition(&link).is_some() {
            self.circuit.counts.reset_target(&link);
        }
        self.circuit.counts.reset_target(&self.target);
    }

    /// Notes a delivery that never failed and waits.
    fn note_wait(&self, until: Timestamp) {
        if self.plan.kind.attempts_before == 0 {
            let fresh = &self.circuit.counts.fresh;
            fresh.note_waiting(&self.target, until);
        }
    }

    /// Whether a delivery that failed before leaves the probe of a Glitch to one that did not. That
    /// one waits too, and comes at the same time.
    fn should_wait_for_fresh(&self, probed: ProbedTargets) -> bool {
        let link = self.link_target();
        let asked = if probed.subscription {
            &self.target
        } else {
            &link
        };
        let is_glitch = self.is_in_phase(asked, TargetPhase::Glitch);
        let circuit = self.circuit;
        self.plan.kind.attempts_before > 0
            && is_glitch
            && circuit.counts.fresh.is_expected(asked, circuit.clock.now())
    }

    fn look_again_verdict(&self) -> EntryVerdict {
        EntryVerdict::Postponed {
            not_before: self.circuit.clock.now() + PROBE_LOOK_AGAIN,
        }
    }

    async fn claim_probe(&self) -> ProbeClaim {
        let circuit = self.circuit;
        let target = &self.target;
        let by = circuit.entropy.uuid().to_string();
        let end = circuit.clock.monotonic() + LOOK_TIME;
        match stop_at(&circuit.clock, end, circuit.links.claim_probe(target, &by)).await {
            Some(Ok(Some(probed))) => {
                tracing::info!(
                    link = %target.link(), topic = target.topic().map(display),
                    subscription = target.subscription().map(display), "one delivery goes out as a probe"
                );
                ProbeClaim::Probe(ProbePermit { by, probed })
            }
            Some(Ok(None)) => ProbeClaim::ByAnother,
            Some(Err(error)) => {
                tracing::warn!(
                    link = %target.link(), topic = target.topic().map(display),
                    subscription = target.subscription().map(display),
                    error = &error as &dyn std::error::Error, "probe not stored"
                );
                ProbeClaim::Unknown
            }
            None => ProbeClaim::Unknown,
        }
    }

    /// Enters the ramps of a recovering link and of a recovering subscription there, which limit
    /// the requests that are under way at once, each its own. A request that finds no room comes
    /// back before the ramp ends, when more are allowed.
    async fn enter_ramp(&mut self, at_once: u32, until: Timestamp) -> Result<(), EntryVerdict> {
        if !self.ramps.is_empty() {
            return Ok(());
        }
        let circuit = self.circuit;
        let link = self.link_target();
        // Where the link is recovering, all of its subscriptions share what it may get.
        let of_link = ramp_bound(circuit.decide(&link, false).await);
        let now = circuit.clock.now();
        let of_subscription = match self.ramp_of_subscription(now) {
            // It is not recovering, but may get no more than this.
            None if of_link.is_none() => Some(at_once),
            of_subscription => of_subscription,
        };
        let bounds = [(link, of_link), (self.target.clone(), of_subscription)];
        let mut entered = Vec::new();
        for (recovering, at_once) in bounds {
            let Some(at_once) = at_once else { continue };
            let ramps = &circuit.counts.ramps;
            if let Some(permit) = ramps.try_enter(&recovering, &self.target, at_once, now) {
                entered.push(permit);
                continue;
            }
            let drawn = DrawnJitter::new(circuit.entropy.fraction());
            let wait = drawn.part_of(until.since(now)).max(RAMP_WAIT_MIN);
            ramps.keep_place(&recovering, &self.target, now + wait);
            return Err(EntryVerdict::Postponed {
                not_before: now + wait,
            });
        }
        self.ramps = entered;
        Ok(())
    }

    /// The bound of a recovering subscription of its own, whatever its link's is.
    fn ramp_of_subscription(&self, now: Timestamp) -> Option<u32> {
        let circuit = self.circuit;
        let condition = circuit.links.condition(&self.target);
        let settings = circuit.links.settings();
        let own = decide_for_subscription(None, condition.as_ref(), now, settings);
        let paused = circuit.counts.pauses.decide(&self.target, now);
        ramp_bound(stricter_decision(own, paused))
    }
}

/// The bound of a ramp.
fn ramp_bound(decision: CircuitDecision) -> Option<u32> {
    match decision {
        CircuitDecision::Ramp { at_once, .. } => Some(at_once),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::circuit::{Observation, REFUSED_EVENTS_MIN, RequestFailure};
    use posthaste_core::model::{AttemptOutcome, SendFailure};
    use serde_json::{Value, json};

    use super::*;
    use crate::circuit::CompletedRequest;
    use crate::testing::{
        START, TestPorts, World, delivery, job, request_plan, secs, subscription,
        subscription_named, target,
    };

    fn plan(settings: Value) -> RequestPlan {
        request_plan(&job(delivery(1), &subscription(settings)))
    }

    fn with_fallback() -> Value {
        let url = "https://billing.example.com/hooks";
        json!({ "endpoint": { "url": url, "fallbackUrl": "https://second.example.com/" } })
    }

    /// Reports failures in a row of the plan's subscription, `times` times. Between two reports the
    /// hold passes; after the last one it has not.
    async fn fail(
        world: &World,
        circuit: &CircuitBreaker<TestPorts>,
        plan: &RequestPlan,
        times: usize,
    ) {
        for time in 0..times {
            if time > 0 {
                world.clock.advance(secs(61));
            }
            let last =
                RequestFailure::from_outcome(AttemptOutcome::Failed(SendFailure::Socket)).unwrap();
            let seen = Observation::Failing {
                failures: 10,
                last,
                began: world.clock.now(),
            };
            circuit
                .links
                .observe(&[(target(&plan.subscription), seen)])
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn a_healthy_target_costs_no_request_to_the_store() {
        let world = World::new();
        let invocation = world.invocation(Vec::new());
        let plan = plan(with_fallback());
        let circuit = world.circuit();
        let mut route = CircuitPass::for_request(&circuit, &invocation, &plan)
            .await
            .unwrap();
        route.admit().await.unwrap();
        assert!(!route.is_fallback && route.probe.is_none() && route.ramps.is_empty());
        assert_eq!(world.calls.all().len(), 0);
    }

    #[tokio::test]
    async fn an_event_that_has_waited_looks_its_target_up_first() {
        let world = World::new();
        let invocation = world.invocation(Vec::new());
        let plan = RequestPlan {
            has_waited: true,
            ..plan(json!({}))
        };
        CircuitPass::for_request(&world.circuit(), &invocation, &plan)
            .await
            .unwrap();
        assert_eq!(world.calls.all().len(), 1);
    }

    #[tokio::test]
    async fn after_a_first_failure_requests_wait_in_the_queue() {
        let world = World::new();
        let invocation = world.invocation(Vec::new());
        let plan = plan(with_fallback());
        let circuit = world.circuit();
        fail(&world, &circuit, &plan, 1).await;
        let verdict = CircuitPass::for_request(&circuit, &invocation, &plan)
            .await
            .map(|route| route.is_fallback)
            .unwrap_err();
        assert_eq!(
            verdict,
            EntryVerdict::Postponed {
                not_before: START + secs(60)
            }
        );
    }

    /// While an endpoint is down, requests are held or go to the fallback.
    #[tokio::test]
    async fn requests_to_a_down_endpoint_are_held_or_take_the_fallback() {
        for (settings, expected) in [
            (json!({}), Err(EntryVerdict::Held)),
            (with_fallback(), Ok(true)),
        ] {
            let world = World::new();
            let invocation = world.invocation(Vec::new());
            let plan = plan(settings);
            let circuit = world.circuit();
            fail(&world, &circuit, &plan, 4).await;
            assert_eq!(
                CircuitPass::for_request(&circuit, &invocation, &plan)
                    .await
                    .map(|route| route.is_fallback),
                expected
            );
        }
    }

    /// The delivery would probe with each of its attempts, as its waits are longer than the holds.
    #[tokio::test]
    async fn delivery_that_was_tried_often_leaves_the_probe_to_others() {
        for (attempts_before, is_fallback) in [(1, false), (2, true)] {
            let world = World::new();
            let invocation = world.invocation(Vec::new());
            let mut plan = plan(with_fallback());
            plan.kind.attempts_before = attempts_before;
            let circuit = world.circuit();
            fail(&world, &circuit, &plan, 4).await;
            let down = circuit.links.condition(&target(&plan.subscription));
            world.clock.advance_to(down.expect("a hold").until);
            let route = CircuitPass::for_request(&circuit, &invocation, &plan)
                .await
                .expect("a route");
            assert_eq!(route.is_fallback, is_fallback, "{attempts_before}");
        }
    }

    #[tokio::test]
    async fn a_target_that_fails_while_a_request_waits_holds_the_request() {
        for (settings, expected) in [
            (json!({}), EntryVerdict::Held),
            (with_fallback(), EntryVerdict::NotStarted),
        ] {
            let world = World::new();
            let invocation = world.invocation(Vec::new());
            let plan = plan(settings);
            let circuit = world.circuit();
            let mut route = CircuitPass::for_request(&circuit, &invocation, &plan)
                .await
                .unwrap();
            fail(&world, &circuit, &plan, 4).await;
            assert_eq!(route.admit().await, Err(expected));
        }
    }

    /// One request probes, and another waits until the probe is given up.
    #[tokio::test]
    async fn second_request_waits_until_the_probe_is_given_up() {
        let world = World::new();
        let invocation = world.invocation(Vec::new());
        let plan = plan(json!({}));
        let circuit = world.circuit();
        fail(&world, &circuit, &plan, 1).await;
        world.clock.advance(secs(61));
        let mut first = CircuitPass::for_request(&circuit, &invocation, &plan)
            .await
            .unwrap();
        let mut second = CircuitPass::for_request(&circuit, &invocation, &plan)
            .await
            .unwrap();
        first.admit().await.unwrap();
        assert!(first.probe.is_some());
        let not_before = world.clock.now() + PROBE_LOOK_AGAIN;
        let waits = Err(EntryVerdict::Postponed { not_before });
        assert_eq!(second.admit().await, waits);
        first.give_up_probe().await;
        second.admit().await.unwrap();
        assert!(first.probe.is_none() && second.probe.is_some());
    }

    #[tokio::test]
    async fn after_a_probe_has_succeeded_requests_go_one_at_a_time() {
        let world = World::new();
        let invocation = world.invocation(Vec::new());
        let plan = plan(json!({}));
        let circuit = world.circuit();
        fail(&world, &circuit, &plan, 1).await;
        world.clock.advance(secs(61));
        let mut routes = Vec::new();
        for _ in 0..3 {
            routes.push(
                CircuitPass::for_request(&circuit, &invocation, &plan)
                    .await
                    .unwrap(),
            );
        }
        let [probe, first, second] = &mut routes[..] else {
            panic!("three routes")
        };
        probe.admit().await.unwrap();
        let outcome = AttemptOutcome::Answered {
            status: 204,
            retry_after: None,
        };
        let request = CompletedRequest {
            began: world.clock.now(),
            outcome,
            is_problem: false,
            is_disabling: false,
            is_split: false,
            events: [None; REFUSED_EVENTS_MIN],
        };
        probe.record_outcome(request).await;
        first.admit().await.unwrap();
        assert_eq!(first.ramps.len(), 1);
        let waits = second.admit().await;
        assert!(
            matches!(waits, Err(EntryVerdict::Postponed { .. })),
            "{waits:?}"
        );
        first.ramps.clear();
        second.admit().await.unwrap();
    }

    /// A link and a subscription on it recover, and the link has gone further: it may get four at
    /// once, of which the subscription may get two.
    #[tokio::test]
    async fn recovering_subscription_leaves_its_link_s_ramp_to_the_others() {
        let world = World::new();
        let invocation = world.invocation(Vec::new());
        let circuit = world.circuit();
        let on_link = |name| {
            let subscription = subscription_named(name, json!({}));
            request_plan(&job(delivery(1), &subscription))
        };
        let own = on_link("own");
        let other = on_link("other");
        let link = DeliveryTarget::Link(own.subscription.endpoint.link());
        let recover = async |target: DeliveryTarget, failure| {
            let last = RequestFailure::from_outcome(failure).unwrap();
            let failing = Observation::Failing {
                failures: 10,
                last,
                began: world.clock.now(),
            };
            circuit
                .links
                .observe(&[(target.clone(), failing)])
                .await
                .unwrap();
            circuit
                .links
                .observe(&[(target, Observation::Succeeded)])
                .await
                .unwrap();
        };
        let socket = AttemptOutcome::Failed(SendFailure::Socket);
        recover(link.clone(), socket).await;
        world.clock.advance(secs(5));
        let busy = AttemptOutcome::Answered {
            status: 503,
            retry_after: None,
        };
        recover(target(&own.subscription), busy).await;
        world.clock.advance(secs(5));
        let mut routes = Vec::new();
        for plan in [&other, &own, &own, &own, &other, &other] {
            let mut route = CircuitPass::for_request(&circuit, &invocation, plan)
                .await
                .unwrap();
            let is_admitted = route.admit().await.is_ok();
            routes.push((is_admitted, route));
        }
        let admitted: Vec<_> = routes.iter().map(|(is_admitted, _)| *is_admitted).collect();
        assert_eq!(admitted, [true, true, true, false, true, false]);
    }
}
