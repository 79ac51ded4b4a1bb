//! What an outcome says about its link and its subscription: counted here, and told to the link book when that makes a
//! difference.

use std::time::Duration;

use posthaste_core::attempt::decide::Outcome;
use posthaste_core::circuit::{Asked, Failure, Observation, Phase, Sign, Signs, Target, brief, pause, signs};
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{Clock, Ports, WebhookClient};

use super::route::{Probe, Route};
use crate::Deliver;
use crate::intake::Planned;
use crate::invocation::Invocation;
use crate::report;

/// How long telling the others may take. The request's events wait for it, and its lane.
const TELL_TIME: Duration = Duration::from_secs(5);

/// A request that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made<'a> {
    pub(crate) planned: &'a Planned,
    pub(crate) began: Timestamp,
    pub(crate) outcome: Outcome,
}

impl<P: Ports> Deliver<P> {
    /// Notes what came of a request. What is left of its probe is used up.
    pub(crate) async fn note(&self, invocation: &Invocation, route: &mut Route<'_>, made: Made<'_>) {
        let Some(signs) = signs(made.outcome) else { return self.give_up_probe(invocation, route).await };
        let probe = route.probe.take();
        let link = Target::Link(route.target.link().clone());
        let asked = self.asked(route, signs, made);
        let of_both = [(link, signs.link), (route.target.clone(), signs.subscription)];
        let seen = of_both.into_iter().filter_map(|(target, sign)| {
            let probe = probe.as_ref().filter(|probe| probe.asks(&target));
            let seen = match (&asked, probe) {
                (Some(asked), probe) if target == route.target => {
                    Observation::Asked(Asked { probe: probe.map(|probe| probe.by.clone()), ..asked.clone() })
                }
                (_, Some(probe)) => answer(probe, &target, sign, made),
                (_, None) => self.count(invocation, &target, sign, made)?,
            };
            Some((target, seen))
        });
        let seen: Vec<_> = seen.collect();
        self.tell(invocation, &seen).await;
    }

    /// The pause that the endpoint asked for, if others are to be told of it. A brief one stays here.
    fn asked(&self, route: &Route<'_>, signs: Signs, made: Made<'_>) -> Option<Asked> {
        let (now, pauses) = (self.ports.clock.now(), &self.health.pauses);
        if matches!(signs.subscription, Sign::Good | Sign::Answers) {
            pauses.succeeded(&route.target, now);
        }
        let pause = pause(made.outcome, now)?;
        if pause.is_brief {
            tracing::debug!(link = %route.target, until = %pause.until, "the endpoint asked for a brief pause");
            pauses.begin(&route.target, pause.until, now);
            return None;
        }
        let last = Failure::of(made.outcome)?;
        Some(Asked { until: pause.until, last, began: made.began, probe: None })
    }

    /// Lets somebody else probe: this request was not made, or says nothing.
    pub(crate) async fn give_up_probe(&self, invocation: &Invocation, route: &mut Route<'_>) {
        let Some(probe) = route.probe.take() else { return };
        let link = Target::Link(route.target.link().clone());
        let asked = [link, route.target.clone()].into_iter().filter(|target| probe.asks(target));
        let given_up = |target| (target, Observation::ProbeGivenUp { by: probe.by.clone() });
        let seen: Vec<_> = asked.map(given_up).collect();
        self.tell(invocation, &seen).await;
    }

    /// Tells of the targets all of whose requests failed in this invocation.
    pub(crate) async fn note_invocation(&self, invocation: &Invocation) {
        let least = self.ports.links.settings().failures_of_invocation;
        for seen in invocation.all_failed(least) {
            self.tell(invocation, &[seen]).await;
        }
    }

    /// Counts what a request that was no probe says about one of the two, and answers what is worth telling.
    fn count(
        &self,
        invocation: &Invocation,
        target: &Target,
        sign: Sign,
        made: Made<'_>,
    ) -> Option<Observation> {
        if is_own_problem(target, sign, made) {
            return None;
        }
        let failures = self.health.count(target, sign, self.ports.clock.now());
        let last = Failure::of(made.outcome);
        invocation.tally(target, sign, last, made.began);
        let is_streak = failures >= self.ports.links.settings().failures_in_a_row;
        match (sign, last) {
            (Sign::Good, _) => Some(Observation::Succeeded),
            (Sign::Bad, Some(last)) if is_streak => {
                Some(Observation::Failing { failures, last, began: made.began })
            }
            _ => None,
        }
    }

    /// Tells the other workers. What could not be told is told with the next failure.
    async fn tell(&self, invocation: &Invocation, seen: &[(Target, Observation)]) {
        if seen.is_empty() {
            return;
        }
        let links = &self.ports.links;
        let end = invocation.parking_ends().min(self.ports.clock.monotonic() + TELL_TIME);
        match self.before(end, links.observe(seen)).await {
            Some(Ok(changed)) => {
                let is_failing = |it: &&(Target, Observation)| {
                    matches!(it.1, Observation::Failing { .. } | Observation::Asked(_))
                };
                for (target, _) in seen.iter().filter(is_failing) {
                    self.health.begin_anew(target);
                    invocation.end_tally(target);
                }
                for target in &changed {
                    self.turned(target);
                }
            }
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "state of an endpoint not noted");
                self.pause_here(seen);
            }
            None => {
                tracing::warn!("state of an endpoint not noted in time");
                self.pause_here(seen);
            }
        }
    }

    /// A pause that others could not be told of is kept here for a moment; the next answer is told again.
    fn pause_here(&self, seen: &[(Target, Observation)]) {
        let now = self.ports.clock.now();
        for (target, observation) in seen {
            if let Observation::Asked(asked) = observation {
                self.health.pauses.begin(target, brief(asked.until, now), now);
            }
        }
    }

    /// A target has gone from one state to another.
    fn turned(&self, target: &Target) {
        let Some(condition) = self.ports.links.condition(target) else { return };
        // A probe that was given up has changed nothing else.
        if condition.phase == Phase::Recovering || condition.until > self.ports.clock.now() {
            report::turned(target, &condition);
        }
        if let Target::Link(link) = target
            && condition.next_probe().is_some()
        {
            self.ports.webhook.drop_link(link);
        }
    }
}

/// Its own problem says nothing about where an event goes.
fn is_own_problem(target: &Target, sign: Sign, made: Made<'_>) -> bool {
    made.planned.is_problem && sign == Sign::Bad && matches!(target, Target::Subscription { .. })
}

/// What the answer to a probe says about a target that it asked.
fn answer(probe: &Probe, target: &Target, sign: Sign, made: Made<'_>) -> Observation {
    let by = probe.by.clone();
    match Failure::of(made.outcome) {
        _ if made.outcome.is_unknown_name() => Observation::ProbeFoundNoName { by },
        _ if is_own_problem(target, sign, made) => Observation::ProbeGivenUp { by },
        Some(last) if matches!(sign, Sign::Bad | Sign::Unknown) => Observation::ProbeFailed { by, last },
        _ => Observation::ProbeSucceeded { by },
    }
}
