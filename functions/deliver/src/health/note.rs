//! What an outcome says about its link and its subscription: counted here, and told to the link book when that makes a
//! difference.

use posthaste_core::decide::Outcome;
use posthaste_core::health::{Failure, Observation, Sign, Signs, Target, signs};
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueReceiver, QueueSender, WebhookClient};

use super::route::{Probe, Route};
use super::sign_of;
use crate::Deliver;
use crate::intake::Planned;
use crate::invocation::Invocation;
use crate::report;

impl<Q, S, W, C, E> Deliver<Q, S, W, C, E>
where
    Q: QueueReceiver + QueueSender,
    S: ObjectStore,
    W: WebhookClient,
    C: Clock,
    E: Entropy,
{
    /// Notes the outcome of a request. What is left of its probe is used up.
    pub(crate) async fn note_outcome(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        route: &mut Route<'_>,
        outcome: Outcome,
    ) {
        let probe = route.probe.take();
        let Some(signs) = signs(outcome) else { return };
        let link = Target::Link(route.target.link().clone());
        let seen: Vec<_> = [link, route.target.clone()]
            .into_iter()
            .filter_map(|target| {
                let sees = self.sees(invocation, planned, &target, signs, probe.as_ref(), outcome)?;
                Some((target, sees))
            })
            .collect();
        self.tell(invocation, &seen).await;
    }

    /// Tells of the targets all of whose requests failed in this invocation.
    pub(crate) async fn note_invocation(&self, invocation: &Invocation) {
        let least = self.ports.links.settings().failures_of_invocation;
        for (target, failures, last) in invocation.all_failed(least) {
            self.tell(invocation, &[(target, Observation::Failing { failures, last })]).await;
        }
    }

    /// What a request says about one of the two, as far as it is worth telling.
    fn sees(
        &self,
        invocation: &Invocation,
        planned: &Planned,
        target: &Target,
        signs: Signs,
        probe: Option<&Probe>,
        outcome: Outcome,
    ) -> Option<Observation> {
        let sign = sign_of(signs, target);
        if let Some(probe) = probe.filter(|probe| probe.asks(target)) {
            return Some(match Failure::of(outcome) {
                Some(last) if matches!(sign, Sign::Bad | Sign::Unknown) => {
                    Observation::ProbeFailed { by: probe.by.clone(), last }
                }
                _ => Observation::Succeeded,
            });
        }
        // Its own problem says nothing about where it goes.
        if planned.is_problem && sign == Sign::Bad && matches!(target, Target::Subscription { .. }) {
            return None;
        }
        let failures = self.health.count(target, sign, self.ports.clock.now());
        let last = Failure::of(outcome);
        invocation.tally(target, sign, last);
        let is_streak = failures >= self.ports.links.settings().failures_in_a_row;
        match (sign, last) {
            (Sign::Good, _) => Some(Observation::Succeeded),
            (Sign::Bad, Some(last)) if is_streak => Some(Observation::Failing { failures, last }),
            _ => None,
        }
    }

    /// Tells the other workers. What could not be told is told with the next failure.
    async fn tell(&self, invocation: &Invocation, seen: &[(Target, Observation)]) {
        if seen.is_empty() {
            return;
        }
        let links = &self.ports.links;
        match self.before(invocation.parking_ends(), links.observe(seen)).await {
            Some(Ok(changed)) => {
                let is_failing = |it: &&(Target, Observation)| matches!(it.1, Observation::Failing { .. });
                seen.iter().filter(is_failing).for_each(|(target, _)| self.health.begin_anew(target));
                changed.iter().for_each(|target| self.turned(target));
            }
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "state of an endpoint not noted");
            }
            None => tracing::warn!("state of an endpoint not noted in time"),
        }
    }

    /// A target has gone from one state to another.
    fn turned(&self, target: &Target) {
        let Some(condition) = self.ports.links.condition(target) else { return };
        report::turned(target, &condition);
        if let Target::Link(link) = target
            && condition.next_probe().is_some()
        {
            self.ports.webhook.drop_link(link);
        }
    }
}
