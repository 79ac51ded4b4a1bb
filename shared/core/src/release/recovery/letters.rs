//! Letters of an outage, as deadletter counts them.

use crate::model::{Identity, SubscriptionName, Timestamp, TopicName};
use crate::stored::{ENDED_STANDS, RecoveryMark};

const MILLIS_PER_HOUR: u64 = 3_600_000;

/// Letters of an outage that were written into one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageLetters {
    /// The topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// The creation of the subscription that they were accepted for.
    pub identity: Option<Identity>,
    /// The first time since which the endpoint was not well.
    pub outage_since: Timestamp,
    /// Their number.
    pub letters: u64,
    /// The time at which they were written.
    pub written_at: Timestamp,
}

/// The mark has just ended, and may still be deleted: what is written now would be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mark of the outage is being deleted")]
pub struct MarkIsGoing;

impl OutageLetters {
    /// The mark with these letters; `None` if it stays as it is, because an operator has cancelled
    /// the recovery of their outage.
    pub fn mark(&self, found: Option<RecoveryMark>) -> Result<Option<RecoveryMark>, MarkIsGoing> {
        let Some(found) = found.filter(|found| found.identity == self.identity) else {
            return Ok(Some(self.new_mark()));
        };
        if let Some(ended_at) = found.ended_at {
            let is_going = self.written_at < ended_at + ENDED_STANDS;
            return if is_going {
                Err(MarkIsGoing)
            } else {
                Ok(Some(self.new_mark()))
            };
        }
        if found.cancelled_at.is_some_and(|at| self.outage_since <= at) {
            return Ok(None);
        }
        Ok(Some(if found.is_empty() {
            RecoveryMark {
                cancelled_at: found.cancelled_at,
                probes: found.probes,
                told_of: found.told_of,
                ..self.new_mark()
            }
        } else {
            RecoveryMark {
                outage_since: found.outage_since.min(self.outage_since),
                from: found.from.min(hour_of(self.written_at)),
                last_at: found.last_at.max(self.written_at),
                letters: found.letters.saturating_add(self.letters),
                ..found
            }
        }))
    }

    fn new_mark(&self) -> RecoveryMark {
        RecoveryMark {
            topic: self.topic.clone(),
            subscription: self.subscription.clone(),
            identity: self.identity,
            outage_since: self.outage_since,
            // Also letters of this outage whose mark could not be written.
            from: hour_of(self.outage_since),
            last_at: self.written_at,
            letters: self.letters,
            well_since: None,
            probes: Vec::new(),
            job: None,
            queued: 0,
            cancelled_at: None,
            told_of: None,
            ended_at: None,
        }
    }
}

/// The beginning of an hour: keys of letters have hours.
fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis() / MILLIS_PER_HOUR * MILLIS_PER_HOUR)
}
