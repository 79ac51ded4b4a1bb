//! Where a request goes: to its endpoint, to the second one while the first is down, or nowhere for now.

use std::time::Duration;

use posthaste_core::attempt::retry::Jitter;
use posthaste_core::attempt::settle::EntryVerdict;
use posthaste_core::circuit::{Gate, PROBE_LOOK_AGAIN, Phase, Probed, Target, stricter};
use posthaste_core::model::endpoint::EndpointUrl;
use posthaste_core::model::time::Timestamp;
use posthaste_ports::{Clock, Entropy, Ports};

use super::ramps::RampPermit;
use crate::Deliver;
use crate::intake::Planned;

/// How long a look at what is known of a link may take. What is not known by then counts as well.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The least time after which a request looks again that found no room on a ramp.
const RAMP_WAIT_MIN: Duration = Duration::from_secs(1);

/// The way of one request.
#[derive(Debug)]
pub(crate) struct Route<'a> {
    /// Where it goes.
    pub(crate) endpoint: &'a EndpointUrl,
    /// The subscription there.
    pub(crate) target: Target,
    /// Whether that is the second endpoint.
    pub(crate) is_fallback: bool,
    /// The right to find out whether the target is well again.
    pub(super) probe: Option<Probe>,
    ramp: Option<RampPermit>,
}

/// The right to a probe.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) by: String,
    probed: Probed,
}

/// What came of asking for that right.
enum Claimed {
    Probe(Probe),
    /// Somebody else is asking, or has been answered.
    ByAnother,
    /// It cannot be written down.
    Unknown,
}

impl Probe {
    /// Whether it asks this target.
    pub(super) fn asks(&self, target: &Target) -> bool {
        match target {
            Target::Link(_) => self.probed.link,
            Target::Subscription { .. } => self.probed.subscription,
        }
    }
}

impl<P: Ports> Deliver<P> {
    /// The way of a request, or the verdict over its events where there is none now.
    pub(crate) async fn route<'a>(&self, planned: &'a Planned) -> Result<Route<'a>, EntryVerdict> {
        let subscription = &*planned.subscription;
        let mut asking = None;
        for (index, endpoint) in subscription.endpoints().enumerate() {
            let target = Target::on(endpoint.link(), subscription);
            // What was tried before, delayed or held is suspected: a worker that knows nothing yet does not find out by
            // sending it, and sends it as the probe that it may be.
            let is_suspected = planned.has_waited || self.health.is_failing(&target);
            match self.look(&target, is_suspected).await {
                // Who comes back to it counts from the beginning.
                Gate::Hold => self.health.leave_alone(&target),
                Gate::Delay { until } => {
                    self.health.leave_alone(&target);
                    return asking.ok_or(EntryVerdict::Postponed { not_before: until });
                }
                gate @ (Gate::Open | Gate::Ramp { .. } | Gate::Probe(_)) => {
                    let is_left_to_others = matches!(gate, Gate::Probe(_)) && self.is_worn(planned, &target);
                    let is_fallback = index > 0;
                    let route = Route { endpoint, target, is_fallback, probe: None, ramp: None };
                    if is_fallback || !is_left_to_others {
                        return Ok(route);
                    }
                    asking = Some(route);
                }
            }
        }
        asking.ok_or(EntryVerdict::Held)
    }

    /// Whether a delivery has asked an endpoint that is down often enough. It would do so with each of its attempts, for its
    /// waits are longer than the holds, and be given up though there is another way.
    fn is_worn(&self, planned: &Planned, target: &Target) -> bool {
        let links = &self.ports.links;
        let is_down = |target| links.condition(target).is_some_and(|it| it.phase == Phase::Retry);
        u32::from(planned.attempts_before) >= links.settings().problem_failures
            && (is_down(target) || is_down(&Target::Link(target.link().clone())))
    }

    /// Whether a request may be sent its way at this moment, for which it may have waited; if not, the verdict over its
    /// events.
    pub(crate) async fn admit(&self, planned: &Planned, route: &mut Route<'_>) -> Result<(), EntryVerdict> {
        let is_suspected = planned.has_waited || self.health.is_failing(&route.target);
        let mut gate = self.look(&route.target, is_suspected).await;
        if let Gate::Probe(_) = gate {
            match self.claim(&route.target).await {
                Claimed::Probe(probe) => {
                    route.probe = Some(probe);
                    return Ok(());
                }
                Claimed::ByAnother => gate = self.look(&route.target, true).await,
                // One at a time, as far as this worker can tell.
                Claimed::Unknown => {
                    let until = self.ports.clock.now() + PROBE_LOOK_AGAIN;
                    return self.enter_ramp(route, 1, until).await;
                }
            }
        }
        match gate {
            Gate::Open => Ok(()),
            Gate::Ramp { at_once, until } => self.enter_ramp(route, at_once, until).await,
            Gate::Delay { until } => Err(EntryVerdict::Postponed { not_before: until }),
            Gate::Probe(_) => {
                Err(EntryVerdict::Postponed { not_before: self.ports.clock.now() + PROBE_LOOK_AGAIN })
            }
            // There may be another way.
            Gate::Hold if planned.subscription.fallback.is_some() => Err(EntryVerdict::NotStarted),
            Gate::Hold => Err(EntryVerdict::Held),
        }
    }

    async fn look(&self, target: &Target, is_suspected: bool) -> Gate {
        let end = self.ports.clock.monotonic() + LOOK_TIME;
        let gate = self.before(end, self.ports.links.gate(target, is_suspected)).await;
        let gate = gate.unwrap_or_else(|| {
            tracing::warn!(link = %target, "links not looked up in time, they count as well");
            Gate::Open
        });
        stricter(gate, self.health.pauses.gate(target, self.ports.clock.now()))
    }

    async fn claim(&self, target: &Target) -> Claimed {
        let by = self.ports.entropy.uuid().to_string();
        let end = self.ports.clock.monotonic() + LOOK_TIME;
        match self.before(end, self.ports.links.claim(target, &by)).await {
            Some(Ok(Some(probed))) => {
                tracing::info!(link = %target, "asking whether it is well again");
                Claimed::Probe(Probe { by, probed })
            }
            Some(Ok(None)) => Claimed::ByAnother,
            Some(Err(error)) => {
                tracing::warn!(link = %target, error = &error as &dyn std::error::Error, "probe not noted");
                Claimed::Unknown
            }
            None => Claimed::Unknown,
        }
    }

    /// One of the requests that may be under way at once to a target that is recovering. The others come back at some
    /// time before its ramp has ended, when more of them may.
    async fn enter_ramp(
        &self,
        route: &mut Route<'_>,
        at_once: u32,
        until: Timestamp,
    ) -> Result<(), EntryVerdict> {
        if route.ramp.is_some() {
            return Ok(());
        }
        let link = Target::Link(route.target.link().clone());
        // Where the link is recovering, all of its subscriptions share what it may get.
        let is_link = matches!(self.look(&link, false).await, Gate::Ramp { .. });
        let recovering = if is_link { link } else { route.target.clone() };
        route.ramp = self.health.ramps.try_enter(recovering, at_once);
        if route.ramp.is_some() {
            return Ok(());
        }
        let now = self.ports.clock.now();
        let drawn = Jitter::new(self.ports.entropy.fraction());
        let wait = drawn.part_of(until.since(now)).max(RAMP_WAIT_MIN);
        Err(EntryVerdict::Postponed { not_before: now + wait })
    }
}
