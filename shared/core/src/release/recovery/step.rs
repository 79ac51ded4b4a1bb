//! The next step of a mark.

use std::time::Duration;

use super::letters::hour_of;
use crate::api::{IsoTimestamp, RecoveredOutage, ReplayReason, ReplayRequest, ReplayState};
use crate::model::{LetterPlace, RecoveryPolicy, SubscriptionCreation, Timestamp, WrittenTime};
use crate::stored::{
    ENDED_STANDS, LetterProbe, PassedLetters, RecoveryJob, RecoveryMark, RecoveryOrigin,
    ReplayRecord,
};

/// The time without new letters after which a replay begins, so that one replay has all of them:
/// clocks of those that write and list may differ by as much.
const QUIET: Duration = Duration::from_mins(2);

/// The longest wait for that. Letters are written up to 15 minutes after they were given up.
const QUIET_WAIT_MAX: Duration = Duration::from_mins(30);

/// The time after which another letter is sent as a probe, if the last one came to nothing.
const PROBE_AGAIN_AFTER: Duration = Duration::from_mins(30);

/// The time for which a letter that was sent again may be on its way: as long as an event lives,
/// which is given up after its last wait of 12 hours, and until its new letter is written.
const UNDER_WAY: Duration = Duration::from_mins((24 + 12) * 60 + 30);

/// The time within which the record of a replay follows the mark that names it.
const RECORD_FOLLOWS_WITHIN: Duration = Duration::from_hours(1);

/// The facts about a mark's subscription, as wake finds them.
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
    /// Whether it has no letters: they are recovered, or an operator has cancelled that.
    pub fn is_empty(&self) -> bool {
        self.letters == 0
    }

    /// The next step, and the mark as it is from then on.
    #[must_use]
    pub fn next_step(mut self, facts: &RecoveryFacts<'_>) -> (Self, RecoveryStep) {
        let now = facts.now;
        if let Some(ended_at) = self.ended_at {
            let is_left = now >= ended_at + ENDED_STANDS;
            return if is_left {
                self.end_now(now)
            } else {
                (self, RecoveryStep::Idle)
            };
        }
        let Some(policy) = facts.policy.filter(|policy| policy.enabled) else {
            return self.end_now(now);
        };
        self.well_since = facts.is_well.then(|| self.well_since.unwrap_or(now));
        if self.job.is_some() {
            return self.step_of_job(policy, facts);
        }
        if self.is_empty() {
            self.well_since = None;
            return if self.is_over(policy, now) {
                self.end_now(now)
            } else {
                (self, RecoveryStep::Idle)
            };
        }
        if now >= self.last_at + policy.within {
            return self.end_now(now);
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
            // One whose record never came, or was deleted, has passed no letters that are known.
            return if now < job.created_at + RECORD_FOLLOWS_WITHIN {
                (self, RecoveryStep::Opens)
            } else {
                self.without_job(0)
            };
        };
        match record.state {
            ReplayState::Cancelled if record.reason == Some(ReplayReason::Requested) => {
                let cancelled = self.after_cancellation(record.updated_at);
                if !cancelled.is_empty() {
                    (cancelled, RecoveryStep::Waits)
                } else if cancelled.is_over(policy, now) {
                    cancelled.end_now(now)
                } else {
                    (cancelled, RecoveryStep::Idle)
                }
            }
            // The subscription recovers all the same: what ended the replay is over.
            ReplayState::Cancelled => self.without_job(record.progress.queued),
            ReplayState::Done | ReplayState::Failed => {
                self.after_job(&job, record.progress.queued, now)
            }
            ReplayState::Running | ReplayState::Waiting | ReplayState::Unknown => {
                let step = if self.may_run(facts) {
                    RecoveryStep::Runs
                } else if self.well_since.is_none() && self.is_to_probe(facts) {
                    RecoveryStep::Probes
                } else {
                    RecoveryStep::Rests
                };
                (self, step)
            }
        }
    }

    /// Whether its replay sends letters: the endpoint has been well for long enough.
    pub fn may_run(&self, facts: &RecoveryFacts<'_>) -> bool {
        let since = self.well_since;
        since.is_some_and(|since| facts.now >= since + facts.recover_after)
    }

    /// Whether a mark without letters says nothing any more that holds: how far a replay has come,
    /// while that is on its way, and what was cancelled, while such letters may come.
    fn is_over(&self, policy: RecoveryPolicy, now: Timestamp) -> bool {
        let passed = self.passed.map(|passed| passed.at + UNDER_WAY);
        let cancelled = self.cancelled_at.map(|at| at + policy.within);
        passed.max(cancelled).is_none_or(|until| now >= until)
    }

    /// The mark whose replay came to no end. Another one begins where it began.
    fn without_job(self, queued: u64) -> (Self, RecoveryStep) {
        let without = Self {
            queued: self.queued.saturating_add(queued),
            job: None,
            ..self
        };
        (without, RecoveryStep::Waits)
    }

    /// The mark whose replay has ended. Letters that were written since it began are left to
    /// another one, and so are later ones of the same outage: what this one has sent waits for its
    /// next attempt for hours.
    fn after_job(self, job: &RecoveryJob, queued: u64, now: Timestamp) -> (Self, RecoveryStep) {
        let is_last = self.last_at + QUIET <= job.created_at;
        let behind = self.left_by_replay(job);
        let after = Self {
            passed: Some(PassedLetters {
                until: behind.from,
                at: now,
            }),
            queued: behind.queued.saturating_add(queued),
            job: None,
            ..behind
        };
        if !is_last {
            return (after, RecoveryStep::Waits);
        }
        let rests = Self {
            letters: 0,
            newest: None,
            queued: 0,
            well_since: None,
            ..after
        };
        (rests, RecoveryStep::Idle)
    }

    /// The mark of those letters alone that this replay leaves to another one.
    #[must_use]
    pub fn left_by_replay(&self, job: &RecoveryJob) -> Self {
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

    /// The mark without letters of outages that began until `at`.
    fn after_cancellation(self, at: Timestamp) -> Self {
        let later = self.newest.filter(|newest| newest.since > at);
        let since = later.map_or(self.outage_since, |newest| newest.since);
        Self {
            cancelled_at: Some(at),
            outage_since: since,
            from: self.from.max(hour_of(since)),
            letters: later.map_or(0, |newest| newest.letters),
            newest: later,
            queued: 0,
            job: None,
            well_since: None,
            ..self
        }
    }

    fn end_now(self, now: Timestamp) -> (Self, RecoveryStep) {
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
    pub fn with_probe(mut self, probe: LetterProbe) -> Self {
        self.probes.retain(|it| is_under_way(it, probe.sent_at));
        self.probes.push(probe);
        self
    }

    /// The replay of this job, of the letters that no other one has looked at.
    pub fn replay_record(
        &self,
        job: &RecoveryJob,
        created: &SubscriptionCreation,
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
        .with_recovery_origin(origin)
    }
}

fn is_under_way(probe: &LetterProbe, now: Timestamp) -> bool {
    now < probe.sent_at + UNDER_WAY
}
