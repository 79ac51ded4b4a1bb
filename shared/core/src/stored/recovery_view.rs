//! The mark of an outage and the replay for it, as users see them.

use super::{RecoveryMark, ReplayProgress, ReplayRecord};
use crate::api::{IsoTimestamp, LeftOutReason, RecoveryView, ReplayReason};

impl RecoveryView {
    /// The recovery of a mark, whose replay has this record; `None` if it has no letters.
    pub fn from_mark(mark: &RecoveryMark, job: Option<&ReplayRecord>) -> Option<Self> {
        if mark.is_empty() || mark.ended_at.is_some() {
            return None;
        }
        let progress = job.map(|job| &job.progress);
        let queued = progress.map_or(0, |progress| progress.queued);
        let done_with = progress.map_or(0, settled_letters);
        let queued = mark.queued.saturating_add(queued);
        let rests = job.is_some_and(|job| job.reason == Some(ReplayReason::Outage));
        Some(Self {
            topic: mark.topic.clone(),
            subscription: mark.subscription.clone(),
            outage_since: IsoTimestamp(mark.outage_since),
            letters: mark.letters.saturating_sub(done_with).max(queued),
            queued,
            replay: job.map(|job| job.id.clone()),
            since: job.map(|job| IsoTimestamp(job.created_at)),
            waits: job.is_none() || rests,
        })
    }
}

/// The letters that a replay has passed and need not send: another letter stands for them, or their
/// event has arrived, or is on its way as a probe.
fn settled_letters(progress: &ReplayProgress) -> u64 {
    let left_out = progress.left_out.iter();
    let sent_again = left_out.filter(|(reason, _)| *reason == LeftOutReason::SentAgain);
    progress.resolved + sent_again.map(|(_, letters)| letters).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{LeftOutCounts, ReplayState};
    use crate::model::{
        RecoveryPolicy, SubscriptionCreation, SubscriptionName, Timestamp, TopicName,
    };
    use crate::release::recovery::OutageLetters;
    use crate::stored::RecoveryJob;

    const START: Timestamp = Timestamp::from_millis(1_795_256_100_000);

    fn mark() -> RecoveryMark {
        let letters = OutageLetters {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            identity: None,
            accepted_at: START,
            outages: [(START, 5_000)].into(),
            written_at: START,
        };
        letters.updated_mark(None).unwrap().unwrap()
    }

    #[test]
    fn recovery_is_told_in_a_line() {
        let check = |view: Option<RecoveryView>, expected: &str| {
            assert_eq!(view.unwrap().in_words(), expected);
        };
        let mut mark = mark();
        check(
            RecoveryView::from_mark(&mark, None),
            "recovers by itself once the endpoint is well: 5,000 dead letters of the outage since \
             2026-11-21T10:15:00.000Z",
        );
        let job = RecoveryJob {
            id: "r".to_owned(),
            created_at: START,
        };
        let mut record =
            mark.replay_record(&job, &SubscriptionCreation::UNKNOWN, RecoveryPolicy::OFF);
        record.progress.queued = 1_200;
        check(
            RecoveryView::from_mark(&mark, Some(&record)),
            "recovers by itself since 2026-11-21T10:15:00.000Z, 1,200 of 5,000",
        );
        // Of the event of a probe that was given up again there are two letters, one of them resolved.
        record.progress.resolved = 300;
        (0..2).for_each(|_| record.progress.left_out.add(LeftOutReason::SentAgain));
        check(
            RecoveryView::from_mark(&mark, Some(&record)),
            "recovers by itself since 2026-11-21T10:15:00.000Z, 1,200 of 4,698",
        );
        record.progress.resolved = 0;
        record.progress.left_out = LeftOutCounts::default();
        let rests = record.with_state(ReplayState::Waiting, Some(ReplayReason::Outage), START);
        check(
            RecoveryView::from_mark(&mark, Some(&rests)),
            "recovers by itself since 2026-11-21T10:15:00.000Z, 1,200 of 5,000, rests until the \
             endpoint is well",
        );
        mark.letters = 0;
        assert_eq!(RecoveryView::from_mark(&mark, None), None);
    }
}
