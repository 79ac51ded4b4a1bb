//! The process that has a data folder open, as the next one must know it: when it ran, on which
//! file, how far the delivery log went, and of which times the log may lack records.
//!
//! Key `serve-run.json`. Version 1; written by `serve` when it starts, at most once a minute while
//! records are written to the log, when it deletes the newest of them, and when it ends; read by
//! `serve` when it starts. Fixture: `serve-run-v1.json`.

use serde::{Deserialize, Serialize};

use super::format::versioned_object;
use crate::delivery_log::{FormerRun, LogGap};
use crate::model::Timestamp;

/// The key of the object.
pub const SERVE_RUN: &str = "serve-run.json";

/// Most gaps that are kept, the newest: a process that is killed every minute makes 1,440 a day.
const GAPS_MAX: usize = 1000;

/// A process on a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeRun {
    /// The first start on this data folder.
    pub first_started_at: Timestamp,
    /// The start of the process.
    pub started_at: Timestamp,
    /// The file of the database.
    pub database: FileMark,
    /// The newest record in the log, as far as it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_end: Option<Timestamp>,
    /// The end in order. Left out while the process runs, and forever if it is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<RunEnd>,
    /// The times of which the log may lack records, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<LogGap>,
}

/// A file that can be told from a copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileMark {
    /// The inode.
    pub inode: u64,
    /// The time at which the file was made, in nanoseconds since the epoch: an inode is used again.
    /// Zero where the file system does not say.
    pub created_ns: u64,
}

/// The end of a process in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// The time.
    pub at: Timestamp,
    /// The number of delivery messages on which it was still working.
    pub in_flight: u64,
}

versioned_object!(ServeRun, 1, "a run of serve");

impl ServeRun {
    /// The facts that the start after this run must know of it. `written_until` is the last time at
    /// which something was written to the store.
    pub fn as_former_run(&self, written_until: Option<Timestamp>) -> FormerRun {
        FormerRun {
            first_started_at: self.first_started_at,
            seen_at: self.started_at.max(written_until.unwrap_or_default()),
            ended: self.ended.map(|end| (end.at, end.in_flight)),
            log_end: self.log_end,
        }
    }

    /// The gaps of before with those that were found, without those that ended before `oldest`, the
    /// time before which the log has nothing.
    pub fn gaps_with(&self, found: Vec<LogGap>, oldest: Timestamp) -> Vec<LogGap> {
        let all = self.gaps.iter().cloned().chain(found);
        let kept: Vec<_> = all.filter(|gap| gap.to >= oldest).collect();
        let too_many = kept.len().saturating_sub(GAPS_MAX);
        kept.into_iter().skip(too_many).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery_log::GapCause;
    use crate::model::FormatError;

    const FIXTURE: &str = include_str!("fixtures/serve-run-v1.json");

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis((1_700_000_000 + second) * 1000)
    }

    fn gap(from: u64, to: u64) -> LogGap {
        LogGap {
            from: at(from),
            to: at(to),
            cause: GapCause::Killed,
            attempts_max: Some(3),
        }
    }

    fn run() -> ServeRun {
        ServeRun {
            first_started_at: at(0),
            started_at: at(60),
            database: FileMark {
                inode: 4711,
                created_ns: 1_700_000_000_000_000_001,
            },
            log_end: Some(at(70)),
            ended: Some(RunEnd {
                at: at(80),
                in_flight: 2,
            }),
            gaps: vec![gap(50, 60)],
        }
    }

    #[test]
    fn run_is_written_as_it_always_was_and_read_back() {
        assert_eq!(run().render(), FIXTURE.trim_end());
        assert_eq!(ServeRun::parse(FIXTURE.as_bytes()).unwrap(), run());
    }

    #[test]
    fn newer_version_is_told_apart_and_newer_cause_is_read() {
        assert!(matches!(
            ServeRun::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
        assert!(matches!(
            ServeRun::parse(b"{}"),
            Err(FormatError::Malformed(..))
        ));
        let newer = FIXTURE.replace("killed", "eaten");
        let read = ServeRun::parse(newer.as_bytes()).unwrap();
        assert_eq!(read.gaps[0].cause, GapCause::Unknown);
    }

    #[test]
    fn run_was_seen_when_it_last_wrote() {
        let seen = |written| run().as_former_run(written).seen_at;
        assert_eq!(seen(None), at(60));
        assert_eq!(seen(Some(at(59))), at(60));
        assert_eq!(seen(Some(at(75))), at(75));
        assert_eq!(run().as_former_run(None).ended, Some((at(80), 2)));
    }

    #[test]
    fn gaps_are_kept_as_long_as_the_log_and_are_bounded() {
        let kept = |oldest| run().gaps_with(vec![gap(90, 100)], at(oldest));
        assert_eq!(kept(0), [gap(50, 60), gap(90, 100)]);
        assert_eq!(kept(61), [gap(90, 100)]);
        assert_eq!(kept(101), []);
        let many = (0..GAPS_MAX as u64).map(|it| gap(100 + it, 101 + it));
        let all = run().gaps_with(many.collect(), at(0));
        assert_eq!((all.len(), &all[0]), (GAPS_MAX, &gap(100, 101)));
    }
}
