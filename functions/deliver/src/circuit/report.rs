//! Reports to the other workers: what this worker saw of targets, where that makes a difference.

use std::time::Duration;

use posthaste_core::circuit::{
    DeliveryTarget, EXCHANGE_FAILED, LINK_FAILED, Observation, TargetCondition, TargetPhase,
    brief_pause_end,
};
use posthaste_ports::{Clock, Ports, WebhookClient};
use posthaste_services::stop_at;
use tracing::field::display;

use super::breaker::CircuitBreaker;
use crate::invocation::Invocation;

/// The longest report to the other workers. The request's events wait for it.
const REPORT_TIME: Duration = Duration::from_secs(5);

impl<P: Ports> CircuitBreaker<P> {
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
    pub(super) async fn report_observations(
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
