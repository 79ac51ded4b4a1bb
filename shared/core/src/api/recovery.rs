//! A recovery by itself as users see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, LeftOutReason, ReplayReason};
use crate::model::{SubscriptionName, TopicName};
use crate::stored::{RecoveryMark, ReplayProgress, ReplayRecord};

/// Dead letters of an outage that are sent again by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryView {
    /// The topic.
    #[schema(value_type = String)]
    pub topic: TopicName,
    /// The subscription.
    #[schema(value_type = String)]
    pub subscription: SubscriptionName,
    /// The time since which the endpoint was not well.
    pub outage_since: IsoTimestamp,
    /// The number of dead letters of the outage.
    pub letters: u64,
    /// The number of those that are queued to be delivered again.
    pub queued: u64,
    /// The replay that sends them: `GET /replays/{id}` shows it, `DELETE` cancels the recovery of
    /// this outage. Left out until it begins, once the endpoint has been well for some minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "20261121T101500Z-0b8b9c5e")]
    pub replay: Option<String>,
    /// The time since which they are sent. Left out until that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<IsoTimestamp>,
    /// Whether they wait until the endpoint is well, and has been for some minutes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

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

    /// The recovery in a line, with its subscription.
    pub fn summary_line(&self) -> String {
        format!("{}/{} {}", self.topic, self.subscription, self.in_words())
    }

    /// The recovery in a line, without its subscription.
    pub fn in_words(&self) -> String {
        let letters = group_digits(self.letters);
        let Some(since) = self.since else {
            return format!(
                "recovers by itself once the endpoint is well: {letters} dead letters of the outage since {}",
                self.outage_since.0
            );
        };
        let rests = if self.waits {
            ", rests until the endpoint is well"
        } else {
            ""
        };
        let queued = group_digits(self.queued);
        format!(
            "recovers by itself since {}, {queued} of {letters}{rests}",
            since.0
        )
    }
}

/// The letters that a replay has passed and need not send: another letter stands for them, or their
/// event has arrived, or is on its way as a probe.
fn settled_letters(progress: &ReplayProgress) -> u64 {
    let left_out = progress.left_out.iter();
    let sent_again = left_out.filter(|(reason, _)| *reason == LeftOutReason::SentAgain);
    progress.resolved + sent_again.map(|(_, letters)| letters).sum::<u64>()
}

/// A number with a comma before each group of three digits.
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{LeftOutCounts, ReplayState};
    use crate::model::{RecoveryPolicy, SubscriptionCreation, Timestamp};
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

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        let numbers = [0, 999, 1_000, 12_345, 1_234_567];
        let texts = numbers.map(group_digits);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
