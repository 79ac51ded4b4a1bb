//! The next step of a mark.

use std::time::Duration;

use crate::api::{IsoTimestamp, RecoveredOutage, ReplayReason, ReplayRequest, ReplayState};
use crate::model::{Created, LetterPlace, RecoveryPolicy, Timestamp, WrittenTime};
use crate::stored::{
    ENDED_STANDS, LetterProbe, RecoveryJob, RecoveryMark, RecoveryOrigin, ReplayRecord,
};

/// The time without new letters after which a replay begins, so that one replay has all of them:
/// clocks of those that write and list may differ by as much.
const QUIET: Duration = Duration::from_mins(2);

/// The longest wait for that. Letters are written up to 15 minutes after they were given up.
const QUIET_WAIT_MAX: Duration = Duration::from_mins(30);

/// The time after which another letter is sent as a probe, if the last one came to nothing.
const PROBE_AGAIN_AFTER: Duration = Duration::from_mins(30);

/// The time for which a letter that was sent as a probe may be on its way: as long as an event
/// lives, which is given up after its last wait of 12 hours, and until its new letter is written.
const PROBE_UNDER_WAY: Duration = Duration::from_mins((24 + 12) * 60 + 30);

/// The time within which the record of a replay follows the mark that names it.
const RECORD_FOLLOWS_WITHIN: Duration = Duration::from_hours(1);

/// What wake knows of a mark's subscription.
#[derive(Debug, Clone, Copy)]
pub struct RecoveryFacts<'a> {
    /// The policy; `None` if the subscription is gone, or another creation.
    pub policy: Option<RecoveryPolicy>,
    /// Whether events are delivered to it, and arrive.
    pub is_well: bool,
    /// Whether it could be probed and nothing does.
    pub is_unprobed: bool,
    /// The record of the mark's replay.
    pub job: Option<&'a ReplayRecord>,
    /// The time for which it must have been well.
    pub recover_after: Duration,
    /// The time of the look.
    pub now: Timestamp,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryStep {
    /// There is nothing to do until letters come.
    Idle,
    /// The endpoint is not well, or not for long enough.
    Waits,
    /// One letter is sent to find out whether the endpoint is well.
    Probes,
    /// A replay begins.
    Begins,
    /// The replay that the mark names is written, because a run was cut before that.
    Opens,
    /// The replay goes on.
    Runs,
    /// The replay waits until the endpoint has been well.
    Rests,
    /// The mark is deleted.
    Ends,
}

impl RecoveryMark {
    /// Whether it has no letters: an operator has cancelled their recovery, or they were sent, and
    /// some are on their way as probes.
    pub fn is_empty(&self) -> bool {
        self.letters == 0
    }

    /// Its next step, and the mark as it is from then on.
    #[must_use]
    pub fn step(mut self, facts: &RecoveryFacts<'_>) -> (Self, RecoveryStep) {
        let now = facts.now;
        if let Some(ended_at) = self.ended_at {
            let is_left = now >= ended_at + ENDED_STANDS;
            return if is_left {
                self.ending(now)
            } else {
                (self, RecoveryStep::Idle)
            };
        }
        let Some(policy) = facts.policy.filter(|policy| policy.enabled) else {
            return self.ending(now);
        };
        self.well_since = facts.is_well.then(|| self.well_since.unwrap_or(now));
        if self.job.is_some() {
            return self.step_of_job(policy, facts);
        }
        if self.is_empty() {
            let is_over = self.cancelled_at.is_none_or(|at| now >= at + policy.within);
            self.well_since = None;
            return if is_over && self.letters_on_their_way(now).is_empty() {
                self.ending(now)
            } else {
                (self, RecoveryStep::Idle)
            };
        }
        if now >= self.last_at + policy.within {
            return self.ending(now);
        }
        let Some(well_since) = self.well_since else {
            let step = if self.is_to_probe(facts) {
                RecoveryStep::Probes
            } else {
                RecoveryStep::Waits
            };
            return (self, step);
        };
        let begins_at = well_since + facts.recover_after;
        let is_quiet = now >= self.last_at + QUIET || now >= begins_at + QUIET_WAIT_MAX;
        let step = if now >= begins_at && is_quiet {
            RecoveryStep::Begins
        } else {
            RecoveryStep::Waits
        };
        (self, step)
    }

    fn step_of_job(
        self,
        policy: RecoveryPolicy,
        facts: &RecoveryFacts<'_>,
    ) -> (Self, RecoveryStep) {
        let now = facts.now;
        let Some(job) = self.job.clone() else {
            return (self, RecoveryStep::Waits);
        };
        let Some(record) = facts.job else {
            return if now < job.created_at + RECORD_FOLLOWS_WITHIN {
                (self, RecoveryStep::Opens)
            } else {
                self.after_job(&job, 0, now)
            };
        };
        match record.state {
            ReplayState::Cancelled if record.reason == Some(ReplayReason::Requested) => {
                let cancelled = self.cancelled(record.updated_at);
                let is_over = now >= record.updated_at + policy.within;
                if is_over {
                    cancelled.ending(now)
                } else {
                    (cancelled, RecoveryStep::Idle)
                }
            }
            ReplayState::Done | ReplayState::Failed | ReplayState::Cancelled => {
                self.after_job(&job, record.progress.queued, now)
            }
            ReplayState::Running | ReplayState::Waiting | ReplayState::Unknown => {
                let since = self.well_since;
                let may_run = since.is_some_and(|since| now >= since + facts.recover_after);
                let step = if may_run {
                    RecoveryStep::Runs
                } else if since.is_none() && self.is_to_probe(facts) {
                    RecoveryStep::Probes
                } else {
                    RecoveryStep::Rests
                };
                (self, step)
            }
        }
    }

    /// The mark whose replay has ended. Letters that were written since it began are left to
    /// another one.
    fn after_job(self, job: &RecoveryJob, queued: u64, now: Timestamp) -> (Self, RecoveryStep) {
        if self.last_at + QUIET <= job.created_at {
            // A letter that is on its way as a probe may be given up in hours, and begin the mark anew:
            // the others that are on their way would be sent once more.
            let is_over = self.cancelled_at.is_none() && self.letters_on_their_way(now).is_empty();
            return if is_over {
                self.ending(now)
            } else {
                (self.emptied(), RecoveryStep::Idle)
            };
        }
        let after = Self {
            queued: self.queued.saturating_add(queued),
            job: None,
            ..self.behind(job)
        };
        (after, RecoveryStep::Waits)
    }

    /// The mark of those letters alone that this replay leaves to another one.
    #[must_use]
    pub fn behind(&self, job: &RecoveryJob) -> Self {
        let quiet_ms = u64::try_from(QUIET.as_millis()).unwrap_or_default();
        let from = job.created_at.as_millis().saturating_sub(quiet_ms);
        Self {
            from: Timestamp::from_millis(from),
            ..self.clone()
        }
    }

    /// Whether a letter is to be sent as a probe: nothing else probes, and the last one that was
    /// sent came to nothing.
    fn is_to_probe(&self, facts: &RecoveryFacts<'_>) -> bool {
        let last = self.probes.iter().map(|probe| probe.sent_at).max();
        facts.is_unprobed && last.is_none_or(|last| facts.now >= last + PROBE_AGAIN_AFTER)
    }

    /// The mark without letters, and without those of outages that began until `at`.
    fn cancelled(self, at: Timestamp) -> Self {
        Self {
            cancelled_at: Some(at),
            probes: Vec::new(),
            ..self.emptied()
        }
    }

    /// The mark without letters: it remembers what is on its way, and what was cancelled.
    fn emptied(self) -> Self {
        Self {
            letters: 0,
            queued: 0,
            job: None,
            well_since: None,
            ..self
        }
    }

    fn ending(self, now: Timestamp) -> (Self, RecoveryStep) {
        let ended = Self {
            ended_at: Some(now),
            ..self
        };
        (ended, RecoveryStep::Ends)
    }

    /// The letters that may be on their way as probes.
    pub fn letters_on_their_way(&self, now: Timestamp) -> Vec<LetterPlace> {
        let probes = self.probes.iter();
        probes
            .filter(|probe| is_under_way(probe, now))
            .map(|probe| probe.letter.clone())
            .collect()
    }

    /// The mark with another letter that was sent as a probe. Those that have ended are forgotten.
    #[must_use]
    pub fn probed(mut self, probe: LetterProbe) -> Self {
        self.probes.retain(|it| is_under_way(it, probe.sent_at));
        self.probes.push(probe);
        self
    }

    /// The replay of this job, of the letters that no other one has looked at.
    pub fn replay(
        &self,
        job: &RecoveryJob,
        created: &Created,
        policy: RecoveryPolicy,
    ) -> ReplayRecord {
        let request = ReplayRequest {
            from: Some(WrittenTime::At(self.from)),
            rate_per_second: Some(policy.rate_per_second),
            ..ReplayRequest::default()
        };
        let name = (self.subscription.clone(), created);
        let origin = RecoveryOrigin {
            outage: RecoveredOutage {
                outage_since: IsoTimestamp(self.outage_since),
            },
            cancelled_at: self.cancelled_at,
            on_its_way: self.letters_on_their_way(job.created_at),
            ramp_from: job.created_at,
        };
        ReplayRecord::new(
            job.id.clone(),
            self.topic.clone(),
            name,
            request,
            job.created_at,
        )
        .of_recovery(origin)
    }
}

fn is_under_way(probe: &LetterProbe, now: Timestamp) -> bool {
    now < probe.sent_at + PROBE_UNDER_WAY
}
