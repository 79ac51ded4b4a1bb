//! The mark of an outage: dead letters of a subscription wait to be recovered by themselves.
//!
//! Key `recovery/{topic}.{subscription}`, names in lower case. Version 1; made and widened by
//! deadletter when it writes letters of an outage, worked on and deleted by wake, shown by manage.
//! Every write is on condition that nobody else wrote it since. A store deletes without a
//! condition, so wake first writes that the mark has ended, and for [`ENDED_STANDS`] nobody writes
//! it anew. Release 0.1 knows no such prefix and leaves it alone. Fixtures:
//! `recovery-mark-v1.json`, `recovery-mark-v1-rests.json`.
//!
//! The fate of a mark is decided in [`crate::release::recovery`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::format::versioned_object;
use super::keys::subscription_folder;
use crate::model::zero::is_zero;
use crate::model::{Identity, LetterPlace, SubscriptionName, Timestamp, TopicName};

/// The prefix of all marks.
pub const RECOVERY: &str = "recovery/";

/// The time for which a mark that has ended may still be deleted: three times as long as a call of
/// a store may take (20 s on AWS).
pub const ENDED_STANDS: Duration = Duration::from_mins(1);

versioned_object!(RecoveryMark, 1, "the mark of an outage");

/// The key of a subscription's mark.
pub fn recovery_mark_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    [RECOVERY, &subscription_folder(topic, subscription)].concat()
}

/// The prefix of the marks of a topic's subscriptions.
pub fn recovery_marks_of(topic: &TopicName) -> String {
    [RECOVERY, &topic.folded(), "."].concat()
}

/// An outage of a subscription, as its dead letters tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryMark {
    /// The topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// The creation of the subscription that the letters were accepted for; `None` if they say
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The time at which the last of their events was accepted for that creation: letters of a
    /// former one are older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// The time since which the endpoint was not well.
    pub outage_since: Timestamp,
    /// The time from which on letters may have been written that no replay has looked at: the
    /// beginning of an hour, at first that of the outage.
    pub from: Timestamp,
    /// The time of the last letter.
    pub last_at: Timestamp,
    /// The number of letters.
    pub letters: u64,
    /// The letters of the newest outage: a cancel leaves them if that began later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewestOutage>,
    /// The time since which the endpoint has been well; `None` if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub well_since: Option<Timestamp>,
    /// The letters that were sent alone, to find out whether the endpoint is well, and may be on
    /// their way: one in half an hour of a day and a half at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<LetterProbe>,
    /// The replay that sends the letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<RecoveryJob>,
    /// The number of letters that earlier replays of this mark have queued.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued: u64,
    /// The letters that the last replay of this mark has passed; `None` if none has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<PassedLetters>,
    /// The time at which an operator cancelled the recovery: letters of outages that began before
    /// are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<Timestamp>,
    /// The outage of which a notice has told that its letters are recovered, by its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_of: Option<Timestamp>,
    /// The time at which there was nothing more to do: the object is about to be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// The newest of the outages whose letters a mark counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewestOutage {
    /// The time since which the endpoint was not well.
    pub since: Timestamp,
    /// The number of its letters.
    pub letters: u64,
}

/// Letters that a replay has passed. It has sent them, or found a reason not to: they are no part
/// of a later one, also where letters of the same outage come afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassedLetters {
    /// The time before which they were written.
    pub until: Timestamp,
    /// The time at which wake saw that the replay had ended.
    pub at: Timestamp,
}

/// A letter that was sent alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LetterProbe {
    /// The place of the letter.
    pub letter: LetterPlace,
    /// The time at which it was sent.
    pub sent_at: Timestamp,
}

/// A replay that wake began for a mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryJob {
    /// The id.
    pub id: String,
    /// The time at which it was begun: what is written later is no part of it.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form as it was first written. Never edited.
    const V1: &str = include_str!("fixtures/recovery-mark-v1.json");

    /// One with the members that came later.
    const V1_RESTS: &str = include_str!("fixtures/recovery-mark-v1-rests.json");

    fn mark() -> RecoveryMark {
        RecoveryMark {
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            identity: Identity::parse("a1b2c3d4e5f60102030405ff"),
            accepted_at: None,
            outage_since: Timestamp::from_millis(1_795_256_100_000),
            from: Timestamp::from_millis(1_795_255_200_000),
            last_at: Timestamp::from_millis(1_795_342_500_000),
            letters: 5_000,
            newest: None,
            well_since: Some(Timestamp::from_millis(1_795_342_600_000)),
            probes: vec![LetterProbe {
                letter: LetterPlace {
                    object: "ORDERS/BILLING/2026/11/21/10/x.json".to_owned(),
                    index: 2,
                },
                sent_at: Timestamp::from_millis(1_795_342_400_000),
            }],
            job: Some(RecoveryJob {
                id: "20261122T101500Z-0b8b9c5e".to_owned(),
                created_at: Timestamp::from_millis(1_795_342_900_000),
            }),
            queued: 12,
            passed: None,
            cancelled_at: Some(Timestamp::from_millis(1_795_000_000_000)),
            told_of: Some(Timestamp::from_millis(1_795_256_100_000)),
            ended_at: Some(Timestamp::from_millis(1_795_400_000_000)),
        }
    }

    /// A mark that rests after a replay. Its members came later than the first form.
    #[test]
    fn a_mark_that_rests_is_written_as_its_fixture_and_read_back() {
        let rests = RecoveryMark {
            accepted_at: Some(Timestamp::from_millis(1_795_342_400_000)),
            letters: 0,
            newest: Some(NewestOutage {
                since: Timestamp::from_millis(1_795_256_100_000),
                letters: 7,
            }),
            passed: Some(PassedLetters {
                until: Timestamp::from_millis(1_795_342_780_000),
                at: Timestamp::from_millis(1_795_343_500_000),
            }),
            well_since: None,
            job: None,
            queued: 0,
            ended_at: None,
            ..mark()
        };
        assert_eq!(rests.render(), V1_RESTS.trim_end());
        assert_eq!(RecoveryMark::parse(V1_RESTS.as_bytes()).unwrap(), rests);
    }

    #[test]
    fn a_mark_is_written_as_its_fixture_and_read_back() {
        assert_eq!(mark().render(), V1.trim_end());
        assert_eq!(RecoveryMark::parse(V1.as_bytes()).unwrap(), mark());
        let key = recovery_mark_key(&mark().topic, &mark().subscription);
        assert_eq!(key, "recovery/orders.billing");
    }
}
