//! The keys of the log's summaries. `{date}` holds one bloom filter for each hour of that day, which
//! says what ids the hour's files do not have.

use super::LogHour;
use crate::model::Timestamp;

/// The hours of a day.
const HOURS: u64 = 24;

/// The prefix of summaries where they stay in the bucket of the log. Readers skip what begins with
/// an underscore, as of [`ASIDE_IN_LOG`](super::ASIDE_IN_LOG).
pub const SUMMARY_IN_LOG: &str = "_summary/";

/// A day of the log, in UTC: the number of days since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogDay(u64);

impl LogDay {
    /// The day of an hour.
    pub const fn containing(hour: LogHour) -> Self {
        Self(hour.since_epoch() / HOURS)
    }

    /// The day as a number: days since the epoch.
    pub const fn since_epoch(self) -> u64 {
        self.0
    }

    /// The place of one of its hours, from 0.
    pub fn hour_index(hour: LogHour) -> usize {
        usize::try_from(hour.since_epoch() % HOURS).unwrap_or_default()
    }

    /// The key of its summary, such as `2026-03-07`.
    pub fn summary_key(self) -> String {
        self.start().strftime("%Y-%m-%d")
    }

    /// Reads the key of a summary. `None` if it is none of ours.
    pub fn parse(key: &str) -> Option<Self> {
        let start = Timestamp::parse(&format!("{key}T00:00:00Z")).ok()?;
        let parsed = Self::containing(LogHour::containing(start));
        (parsed.summary_key() == key).then_some(parsed)
    }

    fn start(self) -> Timestamp {
        LogHour::from_epoch(self.0.saturating_mul(HOURS)).start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn summary_key_is_its_date() {
        let hour = LogHour::containing(Timestamp::parse("2026-03-07T23:59:59.999Z").unwrap());
        let day = LogDay::containing(hour);
        assert_eq!(
            (day.summary_key().as_str(), LogDay::hour_index(hour)),
            ("2026-03-07", 23)
        );
        assert_eq!(LogDay::parse("2026-03-07"), Some(day));
        for foreign in ["", "2026-3-7", "2026-02-30", "2026-03-07.json", "x"] {
            assert_eq!(LogDay::parse(foreign), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn every_summary_key_is_read_back(ms in 0_u64..4_000_000_000_000) {
            let hour = LogHour::containing(Timestamp::from_millis(ms));
            prop_assert_eq!(LogDay::parse(&LogDay::containing(hour).summary_key()), Some(LogDay::containing(hour)));
            prop_assert!(LogDay::hour_index(hour) < 24);
        }
    }
}
