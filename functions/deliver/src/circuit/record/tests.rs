//! Counts of this worker, and reports to the other workers.

use std::sync::Arc;

use posthaste_core::circuit::{CircuitDecision, HealthSettings, TargetPhase};
use posthaste_core::model::SendFailure;
use posthaste_ports::ErrorKind;
use posthaste_services::LinkHealth;
use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation, Recorded};
use serde_json::json;

use super::*;
use crate::circuit::CircuitBreaker;
use crate::invocation::Invocation;
use crate::testing::{
    START, TestPorts, World, delivery, job, request_plan, secs, subscription, target,
};

const UNREACHABLE: AttemptOutcome = AttemptOutcome::Failed(SendFailure::Socket);

fn answered(status: u16, retry_after: Option<u64>) -> AttemptOutcome {
    AttemptOutcome::Answered {
        status,
        retry_after: retry_after.map(secs),
    }
}

fn own() -> DeliveryTarget {
    target(&subscription(json!({})))
}

fn link() -> DeliveryTarget {
    DeliveryTarget::Link(own().link().clone())
}

/// Records these outcomes of requests that began now.
async fn record(
    circuit: &CircuitBreaker<TestPorts>,
    invocation: &Invocation,
    outcomes: impl IntoIterator<Item = AttemptOutcome>,
    is_problem: bool,
) {
    let plan = request_plan(&job(delivery(1), &subscription(json!({}))));
    let mut route = CircuitPass::for_request(circuit, invocation, &plan)
        .await
        .expect("a route");
    for outcome in outcomes {
        let request = CompletedRequest {
            began: circuit.clock.now(),
            outcome,
            is_problem,
            is_disabling: false,
            is_split: false,
            events: [None; REFUSED_EVENTS_MIN],
        };
        route.record_outcome(request).await;
    }
}

#[tokio::test]
async fn a_streak_of_failures_is_reported_once_and_drops_the_link() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    record(&circuit, &invocation, [UNREACHABLE; 9], false).await;
    assert_eq!(
        (circuit.links.condition(&link()), world.calls.all().len()),
        (None, 0)
    );
    record(&circuit, &invocation, [UNREACHABLE; 1], false).await;
    assert_eq!(
        circuit.links.condition(&link()).map(|it| it.phase),
        Some(TargetPhase::Glitch)
    );
    // The state, and the signal to wake.
    assert_eq!(
        (
            world.endpoint.links_dropped(),
            world.calls.count(PortOperation::Put)
        ),
        (1, 2)
    );
    assert!(!circuit.counts.is_failing(&own()));
}

/// The invocation that reported it ends later.
#[tokio::test]
async fn reported_streak_is_not_reported_again_at_the_end() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    record(&circuit, &invocation, [UNREACHABLE; 10], false).await;
    let reported = circuit.links.condition(&link());
    let calls = world.calls.all().len();
    circuit.end_invocation(&invocation).await;
    assert_eq!(circuit.links.condition(&link()), reported);
    assert_eq!(world.calls.all().len(), calls);
}

#[tokio::test]
async fn a_success_ends_a_streak() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
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
            world.calls.count(PortOperation::Put)
        ),
        (None, 0)
    );
}

/// Requests that all fail are reported at the end of the invocation.
#[tokio::test]
async fn all_failing_requests_are_reported_when_invocation_ends() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    let failures = usize::try_from(circuit.links.settings().failures_of_invocation).unwrap();
    record(&circuit, &invocation, vec![UNREACHABLE; failures], false).await;
    assert_eq!(world.calls.count(PortOperation::Put), 0);
    circuit.end_invocation(&invocation).await;
    assert!(circuit.links.condition(&link()).is_some());
}

#[tokio::test]
async fn a_problem_event_says_nothing_about_its_subscription() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    record(&circuit, &invocation, vec![answered(503, None); 20], true).await;
    circuit.end_invocation(&invocation).await;
    assert_eq!(
        (
            circuit.links.condition(&own()),
            world.calls.count(PortOperation::Put)
        ),
        (None, 0)
    );
}

/// Too many requests are those of all events.
#[tokio::test]
async fn pause_that_a_problem_event_is_answered_with_is_kept() {
    let paused_until = async |status| {
        let world = World::new();
        let circuit = world.circuit();
        let invocation = world.invocation(Vec::new());
        record(&circuit, &invocation, [answered(status, Some(300))], true).await;
        circuit.links.condition(&own()).map(|it| it.until)
    };
    assert_eq!(paused_until(429).await, Some(START + secs(300)));
    assert_eq!(paused_until(503).await, None);
}

/// Records refusals, each of another event.
async fn refuse(
    circuit: &CircuitBreaker<TestPorts>,
    invocation: &Invocation,
    status: u16,
    count: usize,
) {
    let plan = request_plan(&job(delivery(1), &subscription(json!({}))));
    for number in 0..count {
        let key = number.to_string();
        let mut route = CircuitPass::for_request(circuit, invocation, &plan)
            .await
            .expect("a route");
        let request = CompletedRequest {
            began: circuit.clock.now(),
            outcome: answered(status, None),
            is_problem: false,
            is_disabling: status == 410,
            is_split: false,
            events: [Some(&*key), None, None],
        };
        route.record_outcome(request).await;
    }
}

#[tokio::test]
async fn ten_refusals_of_different_events_are_reported() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    refuse(&circuit, &invocation, 401, 9).await;
    assert_eq!(circuit.links.condition(&own()), None);
    refuse(&circuit, &invocation, 401, 1).await;
    let condition = circuit.links.condition(&own()).unwrap();
    assert_eq!(
        (condition.phase, condition.refused, condition.failures),
        (TargetPhase::Glitch, true, 10)
    );
    assert_eq!(circuit.links.condition(&link()), None);
}

#[tokio::test]
async fn refusals_that_disable_or_are_off_are_not_reported() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    refuse(&circuit, &invocation, 410, 20).await;
    assert_eq!(circuit.links.condition(&own()), None);
    let settings = HealthSettings {
        refusals_in_row: 0,
        ..circuit.links.settings().clone()
    };
    let store = Recorded::new(world.memory.clone(), "links", &world.calls);
    let never = Faulty::new(store, "links", &FaultPlan::none());
    let circuit = world.circuit_over(Arc::new(LinkHealth::new(
        never,
        world.clock.clone(),
        settings,
    )));
    refuse(&circuit, &invocation, 401, 20).await;
    assert_eq!(circuit.links.condition(&own()), None);
}

/// A receiver that crashes on some events is not a host that is down.
#[tokio::test]
async fn closed_connections_of_one_subscription_leave_its_link() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    let closed = AttemptOutcome::Failed(SendFailure::Closed);
    record(&circuit, &invocation, [closed; 10], false).await;
    assert_eq!(circuit.links.condition(&link()), None);
    assert!(circuit.links.condition(&own()).is_some());
}

#[tokio::test]
async fn invocation_of_failures_after_a_success_is_no_streak() {
    for (rest, is_stopped) in [(60, false), (61, true)] {
        let world = World::new();
        let circuit = world.circuit();
        let earlier = world.invocation(Vec::new());
        record(&circuit, &earlier, [answered(204, None)], false).await;
        world.clock.advance(secs(rest));
        let invocation = world.invocation(Vec::new());
        record(&circuit, &invocation, [UNREACHABLE; 3], false).await;
        circuit.end_invocation(&invocation).await;
        let condition = circuit.links.condition(&link());
        assert_eq!(condition.is_some(), is_stopped, "{rest} s");
    }
}

#[tokio::test]
async fn a_brief_pause_stays_here_and_a_longer_one_is_shared() {
    let world = World::new();
    let circuit = world.circuit();
    let invocation = world.invocation(Vec::new());
    record(&circuit, &invocation, [answered(503, Some(2))], false).await;
    let delay = CircuitDecision::Delay {
        until: START + secs(2),
    };
    assert_eq!(circuit.counts.pauses.decide(&own(), START), delay);
    assert_eq!(world.calls.count(PortOperation::Put), 0);
    let circuit = world.circuit();
    record(&circuit, &invocation, [answered(503, Some(300))], false).await;
    assert_eq!(
        circuit.links.condition(&own()).map(|it| it.until),
        Some(START + secs(300))
    );
    assert_eq!(world.calls.count(PortOperation::Put), 2);
}

/// The other subscriptions of the host go on.
#[tokio::test]
async fn pause_that_one_subscription_asked_for_leaves_its_link() {
    for (retry_after, is_shared) in [(2, false), (300, true)] {
        let world = World::new();
        let circuit = world.circuit();
        let invocation = world.invocation(Vec::new());
        let asked = answered(503, Some(retry_after));
        record(&circuit, &invocation, [asked], false).await;
        assert_eq!(circuit.links.condition(&own()).is_some(), is_shared);
        assert_eq!(circuit.links.condition(&link()), None);
        let of_link = circuit.counts.pauses.decide(&link(), START);
        assert_eq!(of_link, CircuitDecision::Open);
    }
}

#[tokio::test]
async fn a_pause_that_cannot_be_shared_is_kept_here_for_a_moment() {
    let world = World::new();
    let plan = FaultPlan::by(|effect| {
        (effect.operation == PortOperation::Put).then_some(CallFault::Before(ErrorKind::Other))
    });
    let broken = Faulty::new(
        Recorded::new(world.memory.clone(), "links", &world.calls),
        "links",
        &plan,
    );
    let settings = world.circuit().links.settings().clone();
    let links = LinkHealth::new(broken, world.clock.clone(), settings);
    let circuit = world.circuit_over(Arc::new(links));
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
