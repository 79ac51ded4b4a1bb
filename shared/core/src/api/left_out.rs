//! The events that a count of dead letters, or of deliveries of the log, left out, by reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A reason for which an event or an object was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeftOutReason {
    /// An event of an earlier subscription of this name.
    Former,
    /// An event that was given up for another reason.
    OtherReason,
    /// An event of another type.
    OtherType,
    /// An object that was written at another time.
    OtherTime,
    /// An object whose key tells no time.
    NoTime,
    /// A delivery that has not ended.
    NotEnded,
    /// A delivery that a replay or a resend made.
    SentAgain,
    /// A delivery that ended in another way.
    OtherResult,
    /// A delivery whose last attempt had another status.
    OtherStatus,
    /// An event that was given up while its endpoint was well.
    NoOutage,
    /// An event that was accepted longer ago than recovery goes back.
    TooOld,
    /// An event that recovery has sent as often as it does.
    RecoveredOften,
    /// A reason that only a newer posthaste knows.
    #[serde(other)]
    Unknown,
}

/// The numbers of what was left out, by their reasons.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeftOutCounts(BTreeMap<LeftOutReason, u64>);

impl LeftOutReason {
    /// The noun for the things that are left out for this reason: events, or whole objects.
    pub const fn counted_noun(self) -> &'static str {
        match self {
            Self::OtherTime | Self::NoTime => "object",
            _ => "event",
        }
    }

    /// The reason in words, behind "left out: 3 events".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Former => "accepted for an earlier subscription of this name",
            Self::OtherReason => "given up for another reason",
            Self::OtherType => "of another type",
            Self::OtherTime => "written at another time",
            Self::NoTime => {
                "without a time in the key, which is TOPIC/SUBSCRIPTION/year/month/day/hour/name"
            }
            Self::NotEnded => "still tried",
            Self::SentAgain => "sent by a replay or a resend",
            Self::OtherResult => "that ended in another way",
            Self::OtherStatus => "with another status",
            Self::NoOutage => "given up while the endpoint was well",
            Self::TooOld => "accepted too long ago",
            Self::RecoveredOften => "that recovery has sent three times",
            Self::Unknown => "for a reason that only a newer posthaste knows",
        }
    }
}

impl LeftOutCounts {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts one more.
    pub fn add(&mut self, reason: LeftOutReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Counts all of another one too.
    pub fn add_all(&mut self, other: &Self) {
        for (reason, number) in &other.0 {
            *self.0.entry(*reason).or_default() += number;
        }
    }

    /// The numbers by their reasons.
    pub fn iter(&self) -> impl Iterator<Item = (LeftOutReason, u64)> {
        self.0.iter().map(|(reason, number)| (*reason, *number))
    }
}

impl FromIterator<LeftOutReason> for LeftOutCounts {
    fn from_iter<I: IntoIterator<Item = LeftOutReason>>(reasons: I) -> Self {
        let mut left_out = Self::default();
        reasons.into_iter().for_each(|reason| left_out.add(reason));
        left_out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_under_the_words_of_their_reasons() {
        use LeftOutReason::{Former, NoTime, OtherType};
        let mut left_out = LeftOutCounts::from_iter([Former, NoTime, Former]);
        left_out.add_all(&LeftOutCounts::from_iter([Former, OtherType]));
        let json = json!({ "former": 3, "otherType": 1, "noTime": 1 });
        assert_eq!(serde_json::to_value(&left_out).unwrap(), json);
        assert_eq!(
            serde_json::from_value::<LeftOutCounts>(json).unwrap(),
            left_out
        );
    }

    #[test]
    fn reason_of_a_newer_program_is_read() {
        let read: LeftOutCounts = serde_json::from_value(json!({ "later": 2 })).unwrap();
        assert_eq!(
            read.iter().collect::<Vec<_>>(),
            [(LeftOutReason::Unknown, 2)]
        );
    }
}
