//! Points in time as people write them: an RFC 3339 date-time, or one that is relative to now.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::pasted::trim_unseen;
use super::time::{format_duration, parse_duration};
use super::{TimeError, Timestamp};
use crate::model::time::whole_millis;

/// The length of a day. Every day has it in UTC.
const DAY: Duration = Duration::from_hours(24);

/// The length of `2026-11-21T10:00:00` in bytes: an offset is behind it.
const SECONDS_END: usize = 19;

/// A point in time as it was written. What is relative becomes a point once it is known when now
/// is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum WrittenTime {
    /// The point itself.
    At(Timestamp),
    /// So long before now: `1h`.
    Ago(Duration),
    /// The last time that it was so late in UTC: `14:00`, as the time since the day's beginning.
    Clock(Duration),
    /// So many days before the beginning of this day in UTC: `today`, `yesterday`.
    Day(u32),
}

/// Error of a text that is no time.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "expected a time such as 2026-11-21T10:00:00Z (in a URL, + is %2B), 1h for an hour ago, 14:00, today or \
     yesterday, in UTC"
)]
pub struct WrittenTimeError;

impl WrittenTime {
    /// Parses a time. Everything that takes a point in time of the past takes the same.
    pub fn parse(text: &str) -> Result<Self, WrittenTimeError> {
        let text = trim_unseen(text);
        match text {
            "now" => return Ok(Self::Ago(Duration::ZERO)),
            "today" => return Ok(Self::Day(0)),
            "yesterday" => return Ok(Self::Day(1)),
            _ => {}
        }
        if let Ok(length) = parse_duration(text) {
            return Ok(Self::Ago(length));
        }
        if let Some(since_midnight) = parse_clock(text) {
            return Ok(Self::Clock(since_midnight));
        }
        let of_day = format!("{text}T00:00:00Z");
        Timestamp::parse(text)
            .or_else(|_| Timestamp::parse(&with_plus(text)))
            .or_else(|_| {
                if text.len() == 10 {
                    Timestamp::parse(&of_day)
                } else {
                    Err(TimeError::NotATimestamp)
                }
            })
            .map(Self::At)
            .map_err(|_| WrittenTimeError)
    }

    /// The point in time, where it is `now`.
    pub fn resolve_at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(length) => time_before(now, length),
            Self::Clock(since_midnight) => {
                let today = midnight_before(now) + since_midnight;
                if today <= now {
                    today
                } else {
                    time_before(today, DAY)
                }
            }
            Self::Day(days) => time_before(midnight_before(now), DAY * days),
        }
    }

    /// The points in time of a period. A time of day that ends one is the first that comes after its
    /// beginning: from 14:00 to 16:00 is the same period at 15:00 and at 17:00.
    pub fn resolve_period(
        from: Option<Self>,
        to: Option<Self>,
        now: Timestamp,
    ) -> (Option<Timestamp>, Option<Timestamp>) {
        let from = from.map(|from| from.resolve_at(now));
        let to = to.map(|to| match (to, from) {
            (Self::Clock(since_midnight), Some(from)) => {
                let same_day = midnight_before(from) + since_midnight;
                if same_day > from {
                    same_day
                } else {
                    same_day + DAY
                }
            }
            (to, _) => to.resolve_at(now),
        });
        (from, to)
    }

    /// The same period with both ends fixed: it means the same whenever it is read again.
    pub fn fixed_period(
        from: Option<Self>,
        to: Option<Self>,
        now: Timestamp,
    ) -> (Option<Self>, Option<Self>) {
        let (from, to) = Self::resolve_period(from, to, now);
        (from.map(Self::At), to.map(Self::At))
    }
}

fn time_before(from: Timestamp, length: Duration) -> Timestamp {
    let length = whole_millis(length);
    Timestamp::from_millis(from.as_millis().saturating_sub(length))
}

fn midnight_before(of: Timestamp) -> Timestamp {
    let day = whole_millis(DAY);
    Timestamp::from_millis(of.as_millis() / day * day)
}

fn parse_clock_part(text: &str, most: u64) -> Option<u64> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = text.parse().ok().filter(|_| is_number)?;
    (number <= most).then_some(number)
}

/// The time since the beginning of the day of `14:00` or `14:00:30`.
fn parse_clock(text: &str) -> Option<Duration> {
    let mut parts = text.split(':');
    let hours = parse_clock_part(parts.next()?, 23)?;
    let minutes = parse_clock_part(parts.next()?, 59)?;
    let seconds = if text.len() > 5 {
        parse_clock_part(parts.next()?, 59)?
    } else {
        0
    };
    let is_whole = parts.next().is_none();
    is_whole.then(|| Duration::from_secs(hours * 3600 + minutes * 60 + seconds))
}

/// The text with the `+` of its offset, which a query that was not escaped turns into a space.
fn with_plus(text: &str) -> String {
    match text.rfind(' ') {
        Some(space) if space >= SECONDS_END => format!("{}+{}", &text[..space], &text[space + 1..]),
        Some(_) | None => text.to_owned(),
    }
}

impl TryFrom<String> for WrittenTime {
    type Error = WrittenTimeError;
    fn try_from(text: String) -> Result<Self, WrittenTimeError> {
        Self::parse(&text)
    }
}

impl From<WrittenTime> for String {
    fn from(time: WrittenTime) -> Self {
        time.to_string()
    }
}

impl From<Timestamp> for WrittenTime {
    fn from(time: Timestamp) -> Self {
        Self::At(time)
    }
}

impl fmt::Display for WrittenTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) => time.fmt(f),
            Self::Ago(length) => f.write_str(&format_duration(*length)),
            Self::Clock(since_midnight) => {
                let seconds = since_midnight.as_secs();
                let hours = seconds / 3600;
                let minutes = seconds / 60 % 60;
                write!(f, "{hours:02}:{minutes:02}:{:02}", seconds % 60)
            }
            Self::Day(0) => f.write_str("today"),
            Self::Day(_) => f.write_str("yesterday"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-21T15:30:00Z";

    fn at(text: &str) -> String {
        let now = Timestamp::parse(NOW).unwrap();
        match WrittenTime::parse(text) {
            Ok(time) => time.resolve_at(now).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let check = |text: &str, expected: &str| assert_eq!(at(text), expected, "{text}");
        check("2026-11-21T10:00:00Z", "2026-11-21T10:00:00.000Z");
        check("2026-11-21T10:00:00.5+01:00", "2026-11-21T09:00:00.500Z");
        check("2026-11-21T10:00:00-01:00", "2026-11-21T11:00:00.000Z");
        check("\u{feff}2026-11-21T10:00:00Z\n", "2026-11-21T10:00:00.000Z");
        check("2026-11-21", "2026-11-21T00:00:00.000Z");
        check("1h", "2026-11-21T14:30:00.000Z");
        check("1d12h", "2026-11-20T03:30:00.000Z");
        check("PT10M", "2026-11-21T15:20:00.000Z");
        check("now", "2026-11-21T15:30:00.000Z");
        check("14:00", "2026-11-21T14:00:00.000Z");
        check("15:30", "2026-11-21T15:30:00.000Z");
        check("15:30:01", "2026-11-20T15:30:01.000Z");
        check("today", "2026-11-21T00:00:00.000Z");
        check("yesterday", "2026-11-20T00:00:00.000Z");
        check("99999d", "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn plus_that_became_a_space_in_a_query_is_read() {
        let check = |text: &str, expected: &str| assert_eq!(at(text), expected, "{text}");
        check("2026-11-21T10:00:00 01:00", "2026-11-21T09:00:00.000Z");
        check("2026-11-21T10:00:00.123 01:00", "2026-11-21T09:00:00.123Z");
        check("2026-11-21T10:00:00 0100", "2026-11-21T09:00:00.000Z");
        check("2026-11-21 10:00:00 01:00", "2026-11-21T09:00:00.000Z");
    }

    #[test]
    fn malformed_time_is_refused_with_the_accepted_forms() {
        for text in [
            "",
            "1",
            "-1h",
            "24:00",
            "14:60",
            "1:00",
            "14",
            "14:00:00:00",
            "14:00:",
            "tomorrow",
            "2026-11",
            "2026-13-01",
            "2026-11-21T10:00:00",
            "2026-11-21T10:00",
            "2026-11-21T10:00:00 Z01",
            "1h ago",
        ] {
            assert_eq!(at(text), WrittenTimeError.to_string(), "{text}");
        }
    }

    #[test]
    fn time_of_day_ends_the_period_that_it_is_written_with() {
        let check = |from: &str, to: &str, expected: [&str; 2]| {
            let read = |text: &str| Some(WrittenTime::parse(text).unwrap());
            let now = Timestamp::parse(NOW).unwrap();
            let (from, to) = WrittenTime::resolve_period(read(from), read(to), now);
            let found = [from, to].map(|time| time.unwrap().to_string());
            assert_eq!(found, expected.map(|time| format!("{time}:00.000Z")));
        };
        check("14:00", "16:00", ["2026-11-21T14:00", "2026-11-21T16:00"]);
        check("16:00", "14:00", ["2026-11-20T16:00", "2026-11-21T14:00"]);
        check(
            "yesterday",
            "today",
            ["2026-11-20T00:00", "2026-11-21T00:00"],
        );
        check(
            "yesterday",
            "09:00",
            ["2026-11-20T00:00", "2026-11-20T09:00"],
        );
        check("2h", "1h", ["2026-11-21T13:30", "2026-11-21T14:30"]);
    }

    #[test]
    fn written_form_is_read_back() {
        for text in [
            "2026-11-21T10:00:00Z",
            "1h30m",
            "14:00",
            "14:00:01",
            "today",
            "yesterday",
            "now",
        ] {
            let time = WrittenTime::parse(text).unwrap();
            assert_eq!(WrittenTime::parse(&time.to_string()), Ok(time), "{text}");
        }
    }
}
