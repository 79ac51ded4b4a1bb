//! Letters of an outage, as deadletter counts them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::model::{Identity, SubscriptionName, Timestamp, TopicName};
use crate::stored::{ENDED_STANDS, NewestOutage, RecoveryMark};

const MILLIS_PER_HOUR: u64 = 3_600_000;

/// Letters of outages that were written into one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageLetters {
    /// The topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// The creation of the subscription that they were accepted for.
    pub identity: Option<Identity>,
    /// The time at which the last of them was accepted: creations of a subscription follow one
    /// another.
    pub accepted_at: Timestamp,
    /// Their numbers, by the times since which the endpoint was not well. One object may have
    /// letters of several outages.
    pub outages: BTreeMap<Timestamp, u64>,
    /// The time at which they were written.
    pub written_at: Timestamp,
}

/// The mark has just ended, and may still be deleted: what is written now would be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mark of the outage is being deleted")]
pub struct MarkIsGoing;

/// The letters that are counted.
struct CountedLetters {
    /// The first time since which the endpoint was not well.
    outage_since: Timestamp,
    letters: u64,
    newest: NewestOutage,
}

impl OutageLetters {
    /// The mark with these letters; `None` if it stays as it is: an operator has cancelled the
    /// recovery of their outages, or they are of a former creation of the subscription.
    pub fn updated_mark(
        &self,
        found: Option<RecoveryMark>,
    ) -> Result<Option<RecoveryMark>, MarkIsGoing> {
        let Some(found) = found else {
            return Ok(self.new_mark());
        };
        if let Some(ended_at) = found.ended_at {
            let is_going = self.written_at < ended_at + ENDED_STANDS;
            return if is_going {
                Err(MarkIsGoing)
            } else {
                Ok(self.new_mark())
            };
        }
        Ok(match self.creation_beside(&found) {
            Ordering::Less => None,
            Ordering::Equal => self.widen_mark(found),
            Ordering::Greater => self.new_mark(),
        })
    }

    /// The number of those whose recovery was not cancelled by an operator at this time.
    pub fn count_uncancelled(&self, cancelled_at: Option<Timestamp>) -> u64 {
        self.uncancelled_letters(cancelled_at)
            .map_or(0, |counted| counted.letters)
    }

    fn uncancelled_letters(&self, cancelled_at: Option<Timestamp>) -> Option<CountedLetters> {
        let left = self
            .outages
            .iter()
            .filter(|(since, _)| cancelled_at.is_none_or(|at| **since > at));
        let (&outage_since, _) = left.clone().next()?;
        let (&since, &letters) = left.clone().next_back()?;
        Some(CountedLetters {
            outage_since,
            letters: left.map(|(_, letters)| letters).sum(),
            newest: NewestOutage { since, letters },
        })
    }

    /// Their creation of the subscription beside that of the mark. One that is not known is that of
    /// the mark: older programs, and former records of a topic, have none.
    fn creation_beside(&self, found: &RecoveryMark) -> Ordering {
        match (self.identity, found.identity) {
            (Some(own), Some(other)) if own != other => {
                let is_former = found.accepted_at.is_some_and(|at| self.accepted_at < at);
                if is_former {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            _ => Ordering::Equal,
        }
    }

    fn widen_mark(&self, found: RecoveryMark) -> Option<RecoveryMark> {
        let counted = self.uncancelled_letters(found.cancelled_at)?;
        let is_empty = found.is_empty();
        let mut mark = RecoveryMark {
            identity: found.identity.or(self.identity),
            accepted_at: self.latest_acceptance(&found),
            last_at: found.last_at.max(self.written_at),
            letters: found.letters.saturating_add(counted.letters),
            newest: Some(newest_of(found.newest, counted.newest)),
            ..found
        };
        if is_empty {
            mark.outage_since = counted.outage_since;
            mark.from = hour_of(counted.outage_since);
        } else {
            mark.outage_since = mark.outage_since.min(counted.outage_since);
            mark.from = mark.from.min(hour_of(self.written_at));
        }
        // What a replay has passed may be on its way, and is not sent again beside that.
        if let Some(passed) = mark.passed {
            mark.from = mark.from.max(passed.until);
        }
        Some(mark)
    }

    fn latest_acceptance(&self, found: &RecoveryMark) -> Option<Timestamp> {
        let own = self.identity.map(|_| self.accepted_at);
        found.accepted_at.max(own)
    }

    fn new_mark(&self) -> Option<RecoveryMark> {
        let counted = self.uncancelled_letters(None)?;
        Some(RecoveryMark {
            topic: self.topic.clone(),
            subscription: self.subscription.clone(),
            identity: self.identity,
            accepted_at: self.identity.map(|_| self.accepted_at),
            outage_since: counted.outage_since,
            // Also letters of this outage whose mark could not be written.
            from: hour_of(counted.outage_since),
            last_at: self.written_at,
            letters: counted.letters,
            newest: Some(counted.newest),
            well_since: None,
            probes: Vec::new(),
            job: None,
            queued: 0,
            passed: None,
            cancelled_at: None,
            told_of: None,
            ended_at: None,
        })
    }
}

fn newest_of(found: Option<NewestOutage>, counted: NewestOutage) -> NewestOutage {
    let Some(found) = found else {
        return counted;
    };
    match found.since.cmp(&counted.since) {
        Ordering::Less => counted,
        Ordering::Equal => NewestOutage {
            letters: found.letters.saturating_add(counted.letters),
            ..found
        },
        Ordering::Greater => found,
    }
}

/// The beginning of an hour: keys of letters have hours.
pub(super) fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis() / MILLIS_PER_HOUR * MILLIS_PER_HOUR)
}
