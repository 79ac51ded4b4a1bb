//! Work that a process has left, and the time at which others may take it up.

use std::time::Duration;

use posthaste_core::model::Timestamp;

/// Age at which work counts as left by its process: longer than a request takes, and short enough
/// that others finish it within two minutes.
pub const LEFT_AFTER: Duration = Duration::from_secs(45);

/// The rule by which work counts as left by its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftWork {
    /// Work of an age that no request reaches: other processes may be at work on the rest.
    Old,
    /// Work of such an age, and all that was there at this time. A process that has its stores to
    /// itself gives the time of its own start: older work was left by a dead process.
    From(Timestamp),
}

impl LeftWork {
    /// Whether work that was last touched at this time was left, where it is at this age.
    pub fn counts_as_left(self, touched_at: Timestamp, now: Timestamp, age: Duration) -> bool {
        now.since(touched_at) >= age || self.is_left_by_dead_process(touched_at)
    }

    /// Whether the process that did the work is known to be dead.
    pub fn is_left_by_dead_process(self, touched_at: Timestamp) -> bool {
        matches!(self, Self::From(began_at) if touched_at <= began_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_work_is_old_or_of_before_the_start() {
        let at = |secs| Timestamp::EPOCH + Duration::from_secs(secs);
        let check = |left: LeftWork, expected: [bool; 3]| {
            let takes =
                [100, 101, 55].map(|secs| left.counts_as_left(at(secs), at(100), LEFT_AFTER));
            assert_eq!(takes, expected, "{left:?}");
        };
        check(LeftWork::Old, [false, false, true]);
        check(LeftWork::From(at(100)), [true, false, true]);
        check(LeftWork::From(at(50)), [false, false, true]);
    }
}
