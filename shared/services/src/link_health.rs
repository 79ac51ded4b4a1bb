//! The shared knowledge of all workers about failing links and subscriptions: reads its parts,
//! keeps them for a few seconds, and writes transitions.
//!
//! All parts are read once, before the first request. After that nothing is read for a target that
//! is healthy and not suspected. A worker writes only if no other has written since its read. If
//! another has, it reads again and applies its observations to the newer state, so that no
//! transition is lost. A part that cannot be read counts as healthy.

mod change;
mod start;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use posthaste_core::circuit::{
    CircuitDecision, DeliveryTarget, HealthSettings, LINK_SHARDS, LinkShard, Observation,
    ProbedTargets, RequestedPause, TargetCondition, TargetPhase, shard_index,
};
use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::layout;

use crate::{ArrivalTracker, SingleFlight, get_newer};
use posthaste_ports::{Clock, ETag, ObjectStore, PortError, RevalidatedObject};
use start::StartReads;

/// The age at which the state of a failing target is read again when it is needed.
pub const LINKS_MAX_AGE: Duration = Duration::from_secs(3);

/// Reasons for which a transition was not written, or a part not read.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The store.
    #[error("failed to reach what is known of links")]
    Store(#[from] PortError),
    /// The object.
    #[error("failed to understand what is known of links")]
    Object(#[from] FormatError),
    /// Others wrote again and again in between.
    #[error("lost {0} races for what is known of links")]
    Contended(u32),
}

/// The knowledge about links. Clones share it.
#[derive(Debug, Clone)]
pub struct LinkHealth<S, C> {
    store: S,
    clock: C,
    settings: Arc<HealthSettings>,
    shared: Arc<SharedLinks>,
    arrivals: ArrivalTracker<S, C>,
}

#[derive(Debug, Default)]
struct SharedLinks {
    shards: Mutex<[KnownShard; LINK_SHARDS]>,
    /// Whether any part knows an unhealthy target. As a rule none does, and then no delivery has to
    /// find its part.
    is_any_failing: AtomicBool,
    reads: SingleFlight<Result<(), Arc<LinksError>>>,
    start: StartReads,
}

#[derive(Debug, Clone, Default)]
struct KnownShard {
    shard: Arc<LinkShard>,
    /// `None` where there is no object.
    etag: Option<ETag>,
    /// By the clock's `monotonic`; `None` before the first read.
    checked_at: Option<Duration>,
    /// The last read failed: everything counts as healthy until the next.
    is_blind: bool,
    /// The number of times that something was learned, so that a response that comes late does not
    /// undo a newer write.
    times: u64,
}

impl<S: ObjectStore + Clone, C: Clock> LinkHealth<S, C> {
    /// The knowledge in this state bucket.
    pub fn new(store: S, clock: C, settings: HealthSettings) -> Self {
        Self {
            arrivals: ArrivalTracker::new(store.clone(), clock.clone()),
            store,
            clock,
            settings: Arc::new(settings),
            shared: Arc::default(),
        }
    }

    /// The same, for a process that runs wake too: deliver notes here which tries arrive.
    #[must_use]
    pub fn counting_arrivals(self) -> Self {
        Self {
            arrivals: self.arrivals.with_counting(),
            ..self
        }
    }
}

impl<S: ObjectStore, C: Clock> LinkHealth<S, C> {
    /// The tries of subscriptions, and the book of those that fail.
    pub fn arrivals(&self) -> &ArrivalTracker<S, C> {
        &self.arrivals
    }

    /// Whether all parts were read since this process began.
    pub fn is_start_known(&self) -> bool {
        self.shared.start.is_known()
    }

    /// Reads all parts if that has not succeeded yet, once for all callers that need it. If it
    /// fails, a later call tries again, and what is not known counts as healthy.
    pub async fn read_start_once(&self) {
        let reads = &self.shared.start.reads;
        reads.run("start", || self.read_start_if_due()).await;
    }

    async fn read_start_if_due(&self) {
        let start = &self.shared.start;
        if self.is_start_known() || !start.begin_try(self.clock.monotonic(), LINKS_MAX_AGE) {
            return;
        }
        if let Err(error) = self.read_all().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "states of links not read at the start, they count as healthy"
            );
        }
    }

    /// The thresholds and times of the circuit.
    pub fn settings(&self) -> &HealthSettings {
        &self.settings
    }

    /// The decision about a delivery to a target. The store is read only if the target is
    /// suspected, or known to be failing, and the knowledge is some seconds old.
    pub async fn decide(&self, target: &DeliveryTarget, is_suspected: bool) -> CircuitDecision {
        if !is_suspected && !self.is_any_failing() {
            return CircuitDecision::Open;
        }
        let index = shard_index(target.link());
        let known = self.known_shard(index);
        let gate = self.decision_for(&known, target);
        if (!is_suspected && gate == CircuitDecision::Open) || self.is_fresh(&known) {
            return gate;
        }
        self.refresh_shard(index).await;
        self.decision_for(&self.known_shard(index), target)
    }

    /// The time since which a target, or its link, has been recovering, as far as is known; `None`
    /// if neither is.
    pub fn recovering_since(&self, target: &DeliveryTarget) -> Option<Timestamp> {
        let shard = self.known_shard(shard_index(target.link())).shard;
        let link = DeliveryTarget::Link(target.link().clone());
        let conditions = [target, &link]
            .into_iter()
            .filter_map(|target| shard.condition(target));
        conditions
            .filter(|it| it.phase == TargetPhase::Recovering)
            .map(|it| it.since)
            .max()
    }

    /// The last known condition of a failing target, without a read.
    pub fn condition(&self, target: &DeliveryTarget) -> Option<TargetCondition> {
        self.known_shard(shard_index(target.link()))
            .shard
            .condition(target)
            .cloned()
    }

    /// Asks for the right to probe a target, under this name. `None` if there is nothing to probe
    /// any more, or another worker has the right; an error if it cannot be written.
    pub async fn claim_probe(
        &self,
        target: &DeliveryTarget,
        by: &str,
    ) -> Result<Option<ProbedTargets>, LinksError> {
        let mut probed = None;
        let settings = &*self.settings;
        let change = self.change_shard(shard_index(target.link()), |shard| {
            probed = shard.claim_probe(target, by, self.clock.now(), settings);
            probed.is_some()
        });
        change.await?;
        Ok(probed)
    }

    /// Notes observations of targets that are all on one link, and returns the targets that
    /// changed. A success of a target that is known to be healthy costs no request.
    pub async fn observe(
        &self,
        seen: &[(DeliveryTarget, Observation)],
    ) -> Result<Vec<DeliveryTarget>, LinksError> {
        let Some((first, _)) = seen.first() else {
            return Ok(Vec::new());
        };
        if !self.is_any_failing()
            && seen
                .iter()
                .all(|(_, seen)| matches!(seen, Observation::Succeeded))
        {
            return Ok(Vec::new());
        }
        let index = shard_index(first.link());
        let known = self.known_shard(index);
        let now = self.clock.now();
        let seen: Vec<_> = seen
            .iter()
            .filter(|(target, observation)| self.is_news(&known, target, observation, now))
            .collect();
        let mut changed = Vec::new();
        if seen.is_empty() {
            return Ok(changed);
        }
        let settings = &*self.settings;
        let change = self.change_shard(index, |shard| {
            changed.clear();
            for (target, observation) in &seen {
                if shard.apply_observation(target, observation, now, settings) {
                    changed.push(target.clone());
                }
            }
            !changed.is_empty()
        });
        change.await?;
        Ok(changed)
    }

    /// Whether an observation may change what is known of its target.
    fn is_news(
        &self,
        known: &KnownShard,
        target: &DeliveryTarget,
        observation: &Observation,
        now: Timestamp,
    ) -> bool {
        match observation {
            // One more success is no news of a target that is healthy, or known to succeed again.
            Observation::Succeeded => {
                let condition = known.shard.condition(target);
                condition.is_some_and(|it| match it.phase {
                    TargetPhase::Recovering => it.forced,
                    TargetPhase::Glitch | TargetPhase::Retry => !it.is_asked(now),
                })
            }
            Observation::Asked(asked) => !self.is_known_pause(known, target, asked),
            _ => true,
        }
    }

    /// Whether a pause is known. Of many requests under way, the first that is asked to wait
    /// reports it for all.
    fn is_known_pause(
        &self,
        known: &KnownShard,
        target: &DeliveryTarget,
        asked: &RequestedPause,
    ) -> bool {
        let waits = matches!(
            self.decision_for(known, target),
            CircuitDecision::Delay { .. }
        );
        let condition = known.shard.condition(target);
        let ends_later =
            condition.is_some_and(|it| it.phase == TargetPhase::Glitch && it.until >= asked.until);
        waits && asked.probe.is_none() && ends_later
    }

    /// Every part that is not empty, read again. A part that a newer program wrote is left out.
    pub async fn read_all(&self) -> Result<Vec<(usize, Arc<LinkShard>)>, LinksError> {
        let listed = self
            .store
            .list(layout::LINKS, None, LINK_SHARDS * 2)
            .await?;
        let listed = (0..LINK_SHARDS).filter(|index| {
            let key = layout::link_shard_key(*index);
            listed.objects.iter().any(|object| object.key == key)
        });
        let reads = join_all(listed.map(async |index| (index, self.read_shard(index).await))).await;
        let mut all = Vec::new();
        for (index, read) in reads {
            match read {
                Err(error @ LinksError::Object(_)) => {
                    let key = layout::link_shard_key(index);
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(%key, error, "states of links left out, a newer program wrote them");
                    continue;
                }
                read => read?,
            }
            let shard = self.known_shard(index).shard;
            if !shard.is_empty() {
                all.push((index, shard));
            }
        }
        self.shared.start.mark_known();
        Ok(all)
    }

    fn decision_for(&self, known: &KnownShard, target: &DeliveryTarget) -> CircuitDecision {
        if known.is_blind {
            CircuitDecision::Open
        } else {
            known
                .shard
                .decide_for_target(target, self.clock.now(), &self.settings)
        }
    }

    fn is_fresh(&self, known: &KnownShard) -> bool {
        known
            .checked_at
            .is_some_and(|at| self.clock.monotonic().saturating_sub(at) < LINKS_MAX_AGE)
    }

    /// Reads a part, once for all callers that need it at the same time. A part that cannot be read
    /// counts as healthy until the next read.
    async fn refresh_shard(&self, index: usize) {
        let key = layout::link_shard_key(index);
        let read = self
            .shared
            .reads
            .run(&key, || async {
                self.read_shard(index).await.map_err(Arc::new)
            })
            .await;
        if let Err(error) = read {
            let error = &*error as &dyn std::error::Error;
            tracing::warn!(%key, error, "states of links not read, they count as healthy");
            let mut shards = self.shared.shards.lock();
            let known = &mut shards[index % LINK_SHARDS];
            known.is_blind = true;
            known.checked_at = Some(self.clock.monotonic());
        }
    }

    async fn read_shard(&self, index: usize) -> Result<(), LinksError> {
        let key = layout::link_shard_key(index);
        let known = self.known_shard(index);
        match get_newer(&self.store, &key, known.etag.as_ref()).await? {
            RevalidatedObject::Unchanged => {
                self.remember_shard(index, known.times, known.shard, known.etag);
            }
            RevalidatedObject::Missing => {
                self.remember_shard(index, known.times, Arc::default(), None);
            }
            RevalidatedObject::Changed(object) => {
                let shard = match LinkShard::parse(&object.bytes) {
                    // The next transition replaces it.
                    Err(error @ FormatError::Malformed(..)) => {
                        tracing::error!(
                            %key, error = &error as &dyn std::error::Error,
                            "states of links not understood, they count as healthy"
                        );
                        LinkShard::default()
                    }
                    parsed => parsed?,
                };
                self.remember_shard(index, known.times, Arc::new(shard), Some(object.etag));
            }
        }
        Ok(())
    }

    /// Whether any target is known to be unhealthy.
    pub fn is_any_failing(&self) -> bool {
        self.shared.is_any_failing.load(Ordering::Relaxed)
    }

    fn known_shard(&self, index: usize) -> KnownShard {
        self.shared.shards.lock()[index % LINK_SHARDS].clone()
    }

    /// Keeps a read of the object, unless something newer was learned during the read.
    fn remember_shard(&self, index: usize, times: u64, shard: Arc<LinkShard>, etag: Option<ETag>) {
        let mut shards = self.shared.shards.lock();
        let known = &mut shards[index % LINK_SHARDS];
        if known.times == times {
            let checked_at = Some(self.clock.monotonic());
            *known = KnownShard {
                shard,
                etag,
                checked_at,
                is_blind: false,
                times: times + 1,
            };
            let is_any_failing = shards.iter().any(|known| !known.shard.is_empty());
            self.shared
                .is_any_failing
                .store(is_any_failing, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
