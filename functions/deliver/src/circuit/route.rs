//! Routing: a request goes to its endpoint, to the fallback while the first is down, or nowhere for
//! now.

use std::time::Duration;

use posthaste_core::attempt::{DrawnJitter, EntryVerdict};
use posthaste_core::circuit::{
    CircuitDecision, DeliveryTarget, PROBE_LOOK_AGAIN, ProbedTargets, TargetPhase,
    decide_for_subscription, stricter_decision,
};
use posthaste_core::model::{EndpointUrl, Timestamp};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::stop_at;

use super::CircuitBreaker;
use super::ramps::RampPermit;
use crate::plan::RequestPlan;

/// The longest time for reading the state of a link. If it takes longer, the link counts as
/// healthy.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The shortest time after which a request tries again that found no room on a ramp.
const RAMP_WAIT_MIN: Duration = Duration::from_secs(1);

/// The way of one request.
#[derive(Debug)]
pub(crate) struct RequestRoute<'a> {
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

impl RequestRoute<'_> {
    /// Whether the request finds out if the target is well again.
    pub(crate) fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

impl ProbePermit {
    /// Whether it probes this target.
    pub(super) fn probes(&self, target: &DeliveryTarget) -> bool {
        match target {
            DeliveryTarget::Link(_) => self.probed.link,
            DeliveryTarget::Subscription { .. } => self.probed.subscription,
        }
    }
}

impl<P: Ports> CircuitBreaker<P> {
    /// The route of a request. An `Err` is the verdict over its events if it can go nowhere now.
    pub(crate) async fn choose_route<'a>(
        &self,
        plan: &'a RequestPlan,
    ) -> Result<RequestRoute<'a>, EntryVerdict> {
        let subscription = &*plan.subscription;
        let mut probing = None;
        for (index, endpoint) in subscription.endpoints().enumerate() {
            let target = DeliveryTarget::on_link(endpoint.link(), subscription);
            // A target is suspected if the events were tried, delayed or held before. A worker that
            // knows nothing yet then reads the state first, and sends them only as the
            // probe that they may be.
            let is_suspected = plan.has_waited || self.counts.is_failing(&target);
            match self.decision_for(&target, is_suspected).await {
                // A request that comes back to it counts from zero.
                CircuitDecision::Hold => self.count_from_zero(&target),
                CircuitDecision::Delay { until } => {
                    self.count_from_zero(&target);
                    self.note_wait(plan, &target, until);
                    return probing.ok_or(EntryVerdict::Postponed { not_before: until });
                }
                CircuitDecision::Probe(probed)
                    if self.should_wait_for_fresh(plan, &target, probed) =>
                {
                    return probing.ok_or(self.look_again_verdict());
                }
                gate @ (CircuitDecision::Open
                | CircuitDecision::Ramp { .. }
                | CircuitDecision::Probe(_)) => {
                    let is_left = matches!(gate, CircuitDecision::Probe(_))
                        && self.should_leave_probe_to_others(plan, &target);
                    let is_fallback = index > 0;
                    let route = RequestRoute {
                        endpoint,
                        target,
                        is_fallback,
                        probe: None,
                        ramps: Vec::new(),
                    };
                    if is_fallback || !is_left {
                        return Ok(route);
                    }
                    probing = Some(route);
                }
            }
        }
        probing.ok_or(EntryVerdict::Held)
    }

    /// Whether a delivery has probed an endpoint that is down often enough. Its waits are longer
    /// than the holds, so it would probe with each of its attempts, and be given up though
    /// there is another route.
    fn should_leave_probe_to_others(&self, plan: &RequestPlan, target: &DeliveryTarget) -> bool {
        let is_down = |target| {
            self.links
                .condition(target)
                .is_some_and(|it| it.phase == TargetPhase::Retry)
        };
        u32::from(plan.kind.attempts_before) >= self.links.settings().problem_failures
            && (is_down(target) || is_down(&DeliveryTarget::Link(target.link().clone())))
    }

    /// Counts what is known to be failing from zero, for a request that comes back to it.
    fn count_from_zero(&self, target: &DeliveryTarget) {
        let link = DeliveryTarget::Link(target.link().clone());
        if self.links.condition(&link).is_some() {
            self.counts.reset_target(&link);
        }
        self.counts.reset_target(target);
    }

    /// Notes a delivery that never failed and waits.
    fn note_wait(&self, plan: &RequestPlan, target: &DeliveryTarget, until: Timestamp) {
        if plan.kind.attempts_before == 0 {
            self.counts.fresh.note_waiting(target, until);
        }
    }

    /// Whether a delivery that failed before leaves the probe of a Glitch to one that did not. That
    /// one waits too, and comes at the same time.
    fn should_wait_for_fresh(
        &self,
        plan: &RequestPlan,
        target: &DeliveryTarget,
        probed: ProbedTargets,
    ) -> bool {
        let link = DeliveryTarget::Link(target.link().clone());
        let asked = if probed.subscription { target } else { &link };
        let is_glitch = self
            .links
            .condition(asked)
            .is_some_and(|it| it.phase == TargetPhase::Glitch);
        plan.kind.attempts_before > 0
            && is_glitch
            && self.counts.fresh.is_expected(asked, self.clock.now())
    }

    fn look_again_verdict(&self) -> EntryVerdict {
        EntryVerdict::Postponed {
            not_before: self.clock.now() + PROBE_LOOK_AGAIN,
        }
    }

    /// Whether a request may be sent now; it may have waited for its route. An `Err` is the verdict
    /// over its events if it may not.
    pub(crate) async fn admit(
        &self,
        plan: &RequestPlan,
        route: &mut RequestRoute<'_>,
    ) -> Result<(), EntryVerdict> {
        if route.probe.is_some() {
            // A part of the batch that is the probe.
            return Ok(());
        }
        let is_suspected = plan.has_waited || self.counts.is_failing(&route.target);
        let mut gate = self.decision_for(&route.target, is_suspected).await;
        if let CircuitDecision::Probe(probed) = gate {
            if self.should_wait_for_fresh(plan, &route.target, probed) {
                return Err(self.look_again_verdict());
            }
            gate = match Box::pin(self.claim_probe(&route.target)).await {
                ProbeClaim::Probe(probe) => {
                    route.probe = Some(probe);
                    return Ok(());
                }
                ProbeClaim::ByAnother => self.decision_for(&route.target, true).await,
                // One at a time, as far as this worker can tell.
                ProbeClaim::Unknown => CircuitDecision::Ramp {
                    at_once: 1,
                    until: self.clock.now() + PROBE_LOOK_AGAIN,
                },
            };
        }
        match gate {
            CircuitDecision::Open => Ok(()),
            CircuitDecision::Ramp { at_once, until } => {
                Box::pin(self.enter_ramp(route, at_once, until)).await
            }
            CircuitDecision::Delay { until } => {
                self.note_wait(plan, &route.target, until);
                Err(EntryVerdict::Postponed { not_before: until })
            }
            CircuitDecision::Probe(_) => Err(self.look_again_verdict()),
            // There may be another way.
            CircuitDecision::Hold if plan.subscription.fallback.is_some() => {
                Err(EntryVerdict::NotStarted)
            }
            CircuitDecision::Hold => Err(EntryVerdict::Held),
        }
    }

    async fn decision_for(&self, target: &DeliveryTarget, is_suspected: bool) -> CircuitDecision {
        if !is_suspected && self.is_all_well() {
            return CircuitDecision::Open;
        }
        Box::pin(self.look_closely(target, is_suspected)).await
    }

    async fn look_closely(&self, target: &DeliveryTarget, is_suspected: bool) -> CircuitDecision {
        let end = self.clock.monotonic() + LOOK_TIME;
        let gate = stop_at(&self.clock, end, self.links.decide(target, is_suspected)).await;
        let gate = gate.unwrap_or_else(|| {
            tracing::warn!(link = %target.link(), "state of a link not read in time, it counts as healthy");
            CircuitDecision::Open
        });
        stricter_decision(gate, self.counts.pauses.decide(target, self.clock.now()))
    }

    async fn claim_probe(&self, target: &DeliveryTarget) -> ProbeClaim {
        let by = self.entropy.uuid().to_string();
        match stop_at(
            &self.clock,
            self.clock.monotonic() + LOOK_TIME,
            self.links.claim_probe(target, &by),
        )
        .await
        {
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
    async fn enter_ramp(
        &self,
        route: &mut RequestRoute<'_>,
        at_once: u32,
        until: Timestamp,
    ) -> Result<(), EntryVerdict> {
        if !route.ramps.is_empty() {
            return Ok(());
        }
        let link = DeliveryTarget::Link(route.target.link().clone());
        // Where the link is recovering, all of its subscriptions share what it may get.
        let of_link = ramp_bound(self.decision_for(&link, false).await);
        let now = self.clock.now();
        let of_subscription = match self.ramp_of_subscription(&route.target, now) {
            // It is not recovering, but may get no more than this.
            None if of_link.is_none() => Some(at_once),
            of_subscription => of_subscription,
        };
        let bounds = [(link, of_link), (route.target.clone(), of_subscription)];
        let mut entered = Vec::new();
        for (recovering, at_once) in bounds {
            let Some(at_once) = at_once else { continue };
            let ramps = &self.counts.ramps;
            if let Some(permit) = ramps.try_enter(&recovering, &route.target, at_once, now) {
                entered.push(permit);
                continue;
            }
            let drawn = DrawnJitter::new(self.entropy.fraction());
            let wait = drawn.part_of(until.since(now)).max(RAMP_WAIT_MIN);
            ramps.keep_place(&recovering, &route.target, now + wait);
            return Err(EntryVerdict::Postponed {
                not_before: now + wait,
            });
        }
        route.ramps = entered;
        Ok(())
    }

    /// The bound of a recovering subscription of its own, whatever its link's is.
    fn ramp_of_subscription(&self, target: &DeliveryTarget, now: Timestamp) -> Option<u32> {
        let condition = self.links.condition(target);
        let own = decide_for_subscription(None, condition.as_ref(), now, self.links.settings());
        ramp_bound(stricter_decision(
            own,
            self.counts.pauses.decide(target, now),
        ))
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
    use crate::circuit::record::CompletedRequest;
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
        let plan = plan(with_fallback());
        let circuit = world.circuit();
        let mut route = circuit.choose_route(&plan).await.unwrap();
        circuit.admit(&plan, &mut route).await.unwrap();
        assert!(!route.is_fallback && route.probe.is_none() && route.ramps.is_empty());
        assert_eq!(world.calls.all().len(), 0);
    }

    #[tokio::test]
    async fn an_event_that_has_waited_looks_its_target_up_first() {
        let world = World::new();
        let plan = RequestPlan {
            has_waited: true,
            ..plan(json!({}))
        };
        world.circuit().choose_route(&plan).await.unwrap();
        assert_eq!(world.calls.all().len(), 1);
    }

    #[tokio::test]
    async fn after_a_first_failure_requests_wait_in_the_queue() {
        let world = World::new();
        let plan = plan(with_fallback());
        let circuit = world.circuit();
        fail(&world, &circuit, &plan, 1).await;
        let verdict = circuit
            .choose_route(&plan)
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
            let plan = plan(settings);
            let circuit = world.circuit();
            fail(&world, &circuit, &plan, 4).await;
            assert_eq!(
                circuit
                    .choose_route(&plan)
                    .await
                    .map(|route| route.is_fallback),
                expected
            );
        }
    }

    /// It would probe with each of its attempts, as its waits are longer than the holds.
    #[tokio::test]
    async fn delivery_that_was_tried_often_leaves_the_probe_to_others() {
        for (attempts_before, is_fallback) in [(1, false), (2, true)] {
            let world = World::new();
            let mut plan = plan(with_fallback());
            plan.kind.attempts_before = attempts_before;
            let circuit = world.circuit();
            fail(&world, &circuit, &plan, 4).await;
            let down = circuit.links.condition(&target(&plan.subscription));
            world.clock.advance_to(down.expect("a hold").until);
            let route = circuit.choose_route(&plan).await.expect("a route");
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
            let plan = plan(settings);
            let circuit = world.circuit();
            let mut route = circuit.choose_route(&plan).await.unwrap();
            fail(&world, &circuit, &plan, 4).await;
            assert_eq!(circuit.admit(&plan, &mut route).await, Err(expected));
        }
    }

    /// One request probes, and another waits until the probe is given up.
    #[tokio::test]
    async fn second_request_waits_until_the_probe_is_given_up() {
        let world = World::new();
        let plan = plan(json!({}));
        let circuit = world.circuit();
        fail(&world, &circuit, &plan, 1).await;
        world.clock.advance(secs(61));
        let mut first = circuit.choose_route(&plan).await.unwrap();
        let mut second = circuit.choose_route(&plan).await.unwrap();
        circuit.admit(&plan, &mut first).await.unwrap();
        assert!(first.probe.is_some());
        let not_before = world.clock.now() + PROBE_LOOK_AGAIN;
        let waits = Err(EntryVerdict::Postponed { not_before });
        assert_eq!(circuit.admit(&plan, &mut second).await, waits);
        circuit
            .give_up_probe(&world.invocation(Vec::new()), &mut first)
            .await;
        circuit.admit(&plan, &mut second).await.unwrap();
        assert!(first.probe.is_none() && second.probe.is_some());
    }

    #[tokio::test]
    async fn after_a_probe_has_succeeded_requests_go_one_at_a_time() {
        let world = World::new();
        let plan = plan(json!({}));
        let circuit = world.circuit();
        fail(&world, &circuit, &plan, 1).await;
        world.clock.advance(secs(61));
        let mut routes = Vec::new();
        for _ in 0..3 {
            routes.push(circuit.choose_route(&plan).await.unwrap());
        }
        let [probe, first, second] = &mut routes[..] else {
            panic!("three routes")
        };
        circuit.admit(&plan, probe).await.unwrap();
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
        circuit
            .record_outcome(&world.invocation(Vec::new()), probe, request)
            .await;
        circuit.admit(&plan, first).await.unwrap();
        assert_eq!(first.ramps.len(), 1);
        let waits = circuit.admit(&plan, second).await;
        assert!(
            matches!(waits, Err(EntryVerdict::Postponed { .. })),
            "{waits:?}"
        );
        first.ramps.clear();
        circuit.admit(&plan, second).await.unwrap();
    }

    /// A link and a subscription on it recover, and the link has gone further: it may get four at
    /// once, of which the subscription may get two.
    #[tokio::test]
    async fn recovering_subscription_leaves_its_link_s_ramp_to_the_others() {
        let world = World::new();
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
            let mut route = circuit.choose_route(plan).await.unwrap();
            let is_admitted = circuit.admit(plan, &mut route).await.is_ok();
            routes.push((is_admitted, route));
        }
        let admitted: Vec<_> = routes.iter().map(|(is_admitted, _)| *is_admitted).collect();
        assert_eq!(admitted, [true, true, true, false, true, false]);
    }
}
