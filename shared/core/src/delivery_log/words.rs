//! The words of the log: closed lists of today, each with a stable text in messages, files and
//! answers.
//!
//! A word of a newer program reads as `Unknown`. Nothing writes that: files are merged column by
//! column, as they lie, so a word that this program does not know is kept.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident as $schema_name:literal { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
            /// A word of a newer program.
            #[default]
            Unknown,
        }

        impl $name {
            /// All words that this program writes.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word in messages, files and answers.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unknown => "unknown",
                }
            }

            /// Reads a word. `Unknown` if it is none that this program writes.
            pub fn parse(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = Self::ALL.iter().map(|word| word.as_str()).chain([Self::Unknown.as_str()]);
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($schema_name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::parse(&String::deserialize(deserializer)?))
            }
        }
    };
}

words! {
    /// The kind of a record: an attempt, or a change of an event without one.
    RecordKind as "Kind" {
        /// A request was sent, or the attempt to send it failed.
        Attempt = "attempt",
        /// The event was accepted. One record, of no subscription, says for all of them.
        Accepted = "accepted",
        /// The event was received, and went back without its first attempt.
        Waiting = "waiting",
        /// The event waits until its endpoint recovers or an operator resumes its subscription.
        Held = "held",
        /// The endpoint took the event after all, in answer to an earlier request that had timed out.
        AnsweredLate = "answered-late",
        /// The event's time was over before the next attempt.
        Expired = "expired",
        /// The event was given up without an attempt, for another reason.
        GivenUp = "given-up",
        /// The event was written into a dead-letter object.
        DeadLettered = "dead-lettered",
        /// The event was dropped.
        Dropped = "dropped",
    }
}

words! {
    /// The result of an attempt or a change: where the event is after it.
    LogResult as "LogResult" {
        /// The endpoint took it.
        Delivered = "delivered",
        /// It is meant for the subscriptions that the record names.
        Pending = "pending",
        /// It matched no subscription.
        Unmatched = "unmatched",
        /// It will be tried, or tried again.
        Retry = "retry",
        /// It is held.
        Held = "held",
        /// It is a dead letter, or on its way to become one.
        DeadLettered = "dead-lettered",
        /// It was given up, and its subscription keeps no such dead letters.
        Dropped = "dropped",
    }
}

words! {
    /// The origin of an attempt.
    AttemptOrigin as "Origin" {
        /// The first attempt of a published event.
        First = "first",
        /// A later attempt.
        Retry = "retry",
        /// An attempt of a replay.
        Replay = "replay",
        /// An attempt of an event that was sent again by its id.
        Resend = "resend",
    }
}

words! {
    /// The state of an event, towards one subscription or as a whole.
    DeliveryState as "DeliveryState" {
        /// It is meant for the subscription, and there is no record of a delivery yet.
        Pending = "pending",
        /// It matched no subscription. Only of an event as a whole.
        Unmatched = "unmatched",
        /// It will be tried, or tried again.
        Waiting = "waiting",
        /// It waits for its endpoint or an operator.
        Held = "held",
        /// The endpoint took it.
        Delivered = "delivered",
        /// It is a dead letter.
        DeadLettered = "dead-lettered",
        /// It was given up without a dead letter.
        Dropped = "dropped",
    }
}

words! {
    /// The word of a record about its delivery's wait for another attempt. `Unknown` where the
    /// record does not say it, as those of release 0.1 do not.
    WaitTransition as "Wait" {
        /// It did not wait before, and does not after it.
        None = "none",
        /// It waits from now on.
        Begins = "begins",
        /// It waited before, and goes on.
        Lasts = "lasts",
        /// It waited before, and does not wait any more.
        Ends = "ends",
    }
}

impl WaitTransition {
    /// The wait of a delivery that did or did not wait `before` a record and does or does not
    /// `after` it.
    pub const fn between(before: bool, after: bool) -> Self {
        match (before, after) {
            (false, false) => Self::None,
            (false, true) => Self::Begins,
            (true, true) => Self::Lasts,
            (true, false) => Self::Ends,
        }
    }

    /// The change of the number of events that wait.
    pub const fn count_change(self) -> i64 {
        match self {
            Self::Begins => 1,
            Self::Ends => -1,
            Self::None | Self::Lasts | Self::Unknown => 0,
        }
    }

    /// Whether the record does not say it.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl LogResult {
    /// Whether a delivery whose last record has this result waits for another attempt.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Retry | Self::Held)
    }

    /// The state of an event whose last record has this result. A result of a newer program says
    /// nothing else than that the event is not at its end as far as this program knows.
    pub const fn delivery_state(self) -> DeliveryState {
        match self {
            Self::Delivered => DeliveryState::Delivered,
            Self::Pending => DeliveryState::Pending,
            Self::Unmatched => DeliveryState::Unmatched,
            Self::Retry => DeliveryState::Waiting,
            Self::Held => DeliveryState::Held,
            Self::DeadLettered => DeliveryState::DeadLettered,
            Self::Dropped => DeliveryState::Dropped,
            Self::Unknown => DeliveryState::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stable() {
        let words = |words: &[&str]| words.join(" ");
        let check = |actual: Vec<&str>, expected: &str| assert_eq!(words(&actual), expected);
        check(
            RecordKind::ALL.iter().map(|word| word.as_str()).collect(),
            "attempt accepted waiting held answered-late expired given-up dead-lettered dropped",
        );
        check(
            LogResult::ALL.iter().map(|word| word.as_str()).collect(),
            "delivered pending unmatched retry held dead-lettered dropped",
        );
        check(
            AttemptOrigin::ALL
                .iter()
                .map(|word| word.as_str())
                .collect(),
            "first retry replay resend",
        );
        check(
            WaitTransition::ALL
                .iter()
                .map(|word| word.as_str())
                .collect(),
            "none begins lasts ends",
        );
        check(
            DeliveryState::ALL
                .iter()
                .map(|word| word.as_str())
                .collect(),
            "pending unmatched waiting held delivered dead-lettered dropped",
        );
    }

    #[test]
    fn a_word_is_read_back_and_a_newer_one_is_unknown() {
        for word in LogResult::ALL {
            assert_eq!(LogResult::parse(word.as_str()), *word);
        }
        assert_eq!(LogResult::parse("teleported"), LogResult::Unknown);
        assert_eq!(LogResult::parse("Delivered"), LogResult::Unknown);
    }

    #[test]
    fn every_pair_of_before_and_after_is_a_change() {
        let pairs = [(false, false), (false, true), (true, true), (true, false)];
        let changes =
            pairs.map(|(before, after)| WaitTransition::between(before, after).count_change());
        assert_eq!(changes, [0, 1, 0, -1]);
        for (before, after) in pairs {
            let change = i64::from(after) - i64::from(before);
            assert_eq!(
                WaitTransition::between(before, after).count_change(),
                change
            );
        }
        assert_eq!(WaitTransition::parse("naps").count_change(), 0);
        assert!(WaitTransition::default().is_unknown());
    }

    #[test]
    fn only_what_is_tried_again_or_held_waits() {
        let waits = LogResult::ALL.iter().filter(|result| result.is_waiting());
        let waits: Vec<_> = waits.map(|result| result.as_str()).collect();
        assert_eq!(waits, ["retry", "held"]);
    }

    #[test]
    fn every_result_is_a_state() {
        let states: Vec<_> = LogResult::ALL
            .iter()
            .map(|result| result.delivery_state().as_str())
            .collect();
        assert_eq!(
            states,
            [
                "delivered",
                "pending",
                "unmatched",
                "waiting",
                "held",
                "dead-lettered",
                "dropped"
            ]
        );
    }
}
