//! Times of which the log may lack records: after a copy of the data folder was started, where
//! files of the log are gone, and where a process ended before what it did was written down.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// Least time without a process, after one that did not end in order, of which the log says that it
/// may lack records. It counts from when the process would have written again. A supervisor starts
/// a process again sooner. A snapshot of a disk that is put back looks like a process that was
/// killed, and is seldom put back within a minute.
const UNSEEN_MIN: Duration = Duration::from_mins(1);

/// A time of which the log may lack records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogGap {
    /// The last time up to which the log is known to be complete.
    pub from: Timestamp,
    /// The time from which on it is complete again.
    pub to: Timestamp,
    /// The reason.
    pub cause: GapCause,
    /// The most attempts that may lack a record. `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_max: Option<u64>,
}

/// The reason why the log may lack records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GapCause {
    /// The data folder is a copy. What its original did later is not in it.
    Copy,
    /// Files of the log that were there are not.
    MissingFiles,
    /// The process before ended in the middle of its work.
    Killed,
    /// A word of a newer version.
    #[serde(other)]
    Unknown,
}

/// The process before, as far as it wrote itself down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormerRun {
    /// The first start on the data folder.
    pub first_started_at: Timestamp,
    /// The last time at which it certainly ran.
    pub seen_at: Timestamp,
    /// The end, if it ended in order, with the number of messages that it was working on.
    pub ended: Option<(Timestamp, u64)>,
    /// The newest record that was seen in the log.
    pub log_end: Option<Timestamp>,
}

/// The findings of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartLook {
    /// The time of the start.
    pub now: Timestamp,
    /// Whether the database is a copy of the one that the process before had open.
    pub is_copy: bool,
    /// The moment of the backup of which the data folder was made, if it was made of one of the
    /// process before.
    pub copied_at: Option<Timestamp>,
    /// The newest record in the log. `None` if the log is empty.
    pub log_end: Option<Timestamp>,
    /// The most attempts that were under way when the process before ended.
    pub under_way_max: u64,
    /// The longest time between two writes of a process that has nothing to do.
    pub quiet_max: Duration,
}

impl LogGap {
    /// The gaps that a start finds.
    pub fn found_at_start(former: FormerRun, look: StartLook) -> Vec<Self> {
        let StartLook { now, log_end, .. } = look;
        let ended_at = former.ended.map(|(at, _)| at);
        let last_seen = ended_at.unwrap_or(former.seen_at).min(now);
        let is_short = log_end < former.log_end;
        let known_until = if is_short {
            log_end.unwrap_or(former.first_started_at).min(last_seen)
        } else {
            // All that was written before the backup is in it.
            look.copied_at
                .filter(|_| look.is_copy)
                .map_or(last_seen, |copied_at| copied_at.min(now))
        };
        if look.is_copy {
            return vec![Self {
                from: known_until,
                to: now,
                cause: GapCause::Copy,
                attempts_max: None,
            }];
        }
        let missing = is_short.then_some(Self {
            from: known_until,
            to: last_seen,
            cause: GapCause::MissingFiles,
            attempts_max: None,
        });
        let under_way_max = match former.ended {
            Some((_, 0)) => 0,
            _ => look.under_way_max,
        };
        let is_unseen =
            former.ended.is_none() && now.since(last_seen) >= UNSEEN_MIN + look.quiet_max;
        let killed = (under_way_max > 0 || is_unseen).then_some(Self {
            from: last_seen,
            to: now,
            cause: GapCause::Killed,
            attempts_max: Some(under_way_max),
        });
        missing.into_iter().chain(killed).collect()
    }

    /// Whether a question about this period is also about the gap. `None` for an open end.
    pub fn is_within(&self, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
        from.is_none_or(|from| from <= self.to) && to.is_none_or(|to| self.from < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis((DAY + second) * 1000)
    }

    fn former() -> FormerRun {
        FormerRun {
            first_started_at: at(0),
            seen_at: at(100),
            ended: None,
            log_end: Some(at(90)),
        }
    }

    fn look() -> StartLook {
        StartLook {
            now: at(110),
            is_copy: false,
            copied_at: None,
            log_end: Some(at(90)),
            under_way_max: 0,
            quiet_max: Duration::ZERO,
        }
    }

    fn check(former: FormerRun, look: StartLook, expected: &[(u64, u64, GapCause, Option<u64>)]) {
        let found = LogGap::found_at_start(former, look);
        let expected = expected
            .iter()
            .map(|(from, to, cause, attempts_max)| LogGap {
                from: at(*from),
                to: at(*to),
                cause: *cause,
                attempts_max: *attempts_max,
            });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{former:?} {look:?}");
    }

    #[test]
    fn process_that_left_nothing_leaves_no_gap() {
        let ended = Some((at(105), 0));
        check(former(), look(), &[]);
        check(FormerRun { ended, ..former() }, look(), &[]);
        // It ended in order long ago, and what waits was not under way.
        let later = StartLook {
            now: at(10_000),
            under_way_max: 7,
            ..look()
        };
        check(FormerRun { ended, ..former() }, later, &[]);
        // More was written to the log than was noted.
        let more = StartLook {
            log_end: Some(at(99)),
            ..look()
        };
        check(former(), more, &[]);
    }

    #[test]
    fn killed_process_leaves_the_attempts_that_were_under_way() {
        let look = StartLook {
            under_way_max: 3,
            ..look()
        };
        check(former(), look, &[(100, 110, GapCause::Killed, Some(3))]);
        // Work that was cut short at the end of the drain.
        let ended = Some((at(105), 2));
        let cut = FormerRun { ended, ..former() };
        check(cut, look, &[(105, 110, GapCause::Killed, Some(3))]);
    }

    #[test]
    fn killed_process_that_stayed_away_may_have_been_a_snapshot() {
        let after = |seconds: u64| StartLook {
            now: at(100 + seconds),
            ..look()
        };
        check(former(), after(59), &[]);
        check(
            former(),
            after(60),
            &[(100, 160, GapCause::Killed, Some(0))],
        );
        // One that writes every four minutes was there until shortly before its next write.
        let seldom = |seconds: u64| StartLook {
            quiet_max: Duration::from_mins(4),
            ..after(seconds)
        };
        check(former(), seldom(299), &[]);
        let killed = (100, 400, GapCause::Killed, Some(0));
        check(former(), seldom(300), &[killed]);
    }

    #[test]
    fn copy_knows_nothing_of_the_time_since() {
        let copy = StartLook {
            now: at(5000),
            is_copy: true,
            under_way_max: 3,
            ..look()
        };
        check(former(), copy, &[(100, 5000, GapCause::Copy, None)]);
        let ended = Some((at(105), 0));
        let moved = FormerRun { ended, ..former() };
        check(moved, copy, &[(105, 5000, GapCause::Copy, None)]);
        // Its log is older than its database, or is not there.
        let older = StartLook {
            log_end: Some(at(40)),
            ..copy
        };
        check(former(), older, &[(40, 5000, GapCause::Copy, None)]);
        let without = StartLook {
            log_end: None,
            ..copy
        };
        check(former(), without, &[(0, 5000, GapCause::Copy, None)]);
    }

    #[test]
    fn restored_backup_knows_all_up_to_its_moment() {
        let restored = |copied_at| StartLook {
            now: at(5000),
            is_copy: true,
            copied_at: Some(at(copied_at)),
            ..look()
        };
        check(
            former(),
            restored(300),
            &[(300, 5000, GapCause::Copy, None)],
        );
        // Something was written while the backup began.
        check(former(), restored(99), &[(99, 5000, GapCause::Copy, None)]);
        // A clock that was set back, and a log that is not whole.
        check(
            former(),
            restored(9000),
            &[(5000, 5000, GapCause::Copy, None)],
        );
        let short = StartLook {
            log_end: Some(at(40)),
            ..restored(300)
        };
        check(former(), short, &[(40, 5000, GapCause::Copy, None)]);
        // The folder is used where it was restored.
        let again = StartLook {
            is_copy: false,
            now: at(110),
            ..restored(105)
        };
        check(former(), again, &[]);
    }

    #[test]
    fn log_that_ends_before_it_ended_has_lost_files() {
        let short = |log_end| StartLook { log_end, ..look() };
        let ended = Some((at(105), 0));
        let ended = FormerRun { ended, ..former() };
        let missing = |from, to| [(from, to, GapCause::MissingFiles, None)];
        check(former(), short(Some(at(40))), &missing(40, 100));
        check(ended, short(Some(at(40))), &missing(40, 105));
        check(ended, short(None), &missing(0, 105));
        let both = StartLook {
            under_way_max: 1,
            ..short(Some(at(40)))
        };
        let killed = (100, 110, GapCause::Killed, Some(1));
        check(former(), both, &[missing(40, 100)[0], killed]);
    }

    #[test]
    fn clock_set_back_makes_no_gap_that_ends_before_it_begins() {
        let early = StartLook {
            now: at(50),
            under_way_max: 1,
            ..look()
        };
        check(former(), early, &[(50, 50, GapCause::Killed, Some(1))]);
        let copy = StartLook {
            is_copy: true,
            ..early
        };
        check(former(), copy, &[(50, 50, GapCause::Copy, None)]);
    }

    #[test]
    fn gap_belongs_to_the_questions_about_its_time() {
        let gap = LogGap {
            from: at(10),
            to: at(20),
            cause: GapCause::Copy,
            attempts_max: None,
        };
        let check = |from: Option<u64>, to: Option<u64>, expected| {
            assert_eq!(
                gap.is_within(from.map(at), to.map(at)),
                expected,
                "{from:?} {to:?}"
            );
        };
        check(None, None, true);
        check(Some(20), None, true);
        check(Some(21), None, false);
        check(None, Some(10), false);
        check(None, Some(11), true);
        check(Some(12), Some(13), true);
    }
}
