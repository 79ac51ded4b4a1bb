//! The origin of an attempt, from its delivery.

use super::AttemptOrigin;
use crate::model::EventMarks;

impl AttemptOrigin {
    /// The origin of the next attempt of an event with these marks, after this number of attempts.
    /// All attempts of a replay are the replay's, and all of a resend are the resend's.
    pub const fn from_marks(attempts: u16, marks: &EventMarks) -> Self {
        match (marks.resent, marks.replayed, attempts) {
            (true, ..) => Self::Resend,
            (false, true, _) => Self::Replay,
            (false, false, 0) => Self::First,
            (false, false, _) => Self::Retry,
        }
    }

    /// Whether the event had a delivery before, of which this is a copy.
    pub const fn is_sent_again(self) -> bool {
        matches!(self, Self::Replay | Self::Resend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_before_the_number_of_attempts() {
        let check = |attempts, replayed, resent, expected| {
            let marks = EventMarks {
                replayed,
                resent,
                ..EventMarks::default()
            };
            assert_eq!(AttemptOrigin::from_marks(attempts, &marks), expected);
        };
        check(0, false, false, AttemptOrigin::First);
        check(1, false, false, AttemptOrigin::Retry);
        check(0, true, false, AttemptOrigin::Replay);
        check(7, true, false, AttemptOrigin::Replay);
        check(0, true, true, AttemptOrigin::Resend);
        check(7, true, true, AttemptOrigin::Resend);
    }
}
