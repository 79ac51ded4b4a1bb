//! Points in time and lengths of time as the rest of the program uses them. It never reads a clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: whole milliseconds since 1970-01-01T00:00:00Z. Never negative.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

/// Why a text is not a time or a duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TimeError {
    /// Not an RFC 3339 date-time.
    #[error("expected an RFC 3339 date-time such as 2026-11-21T10:00:00Z")]
    NotATimestamp,
    /// Not a duration of fixed length.
    #[error("expected a duration such as 10s, 5m, 1h30m or 1d, or in ISO 8601 such as PT10S")]
    NotADuration,
}

impl Timestamp {
    /// The earliest point in time.
    pub const EPOCH: Self = Self(0);

    /// The point `ms` milliseconds after the epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Whole minutes since the epoch, rounded up: the minute in which this point has certainly
    /// come.
    pub const fn minute_rounded_up(self) -> u64 {
        self.0.div_ceil(60_000)
    }

    /// The beginning of that minute.
    pub const fn rounded_up_to_minute(self) -> Self {
        Self(self.minute_rounded_up().saturating_mul(60_000))
    }

    /// Whole minutes since the epoch, rounded down.
    pub const fn minute_rounded_down(self) -> u64 {
        self.0 / 60_000
    }

    /// The time from `earlier` to this; zero if it is not later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Parses an RFC 3339 date-time, with any offset.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| TimeError::NotATimestamp)?;
        u64::try_from(parsed.as_millisecond())
            .map(Self)
            .map_err(|_| TimeError::NotATimestamp)
    }

    /// The time in UTC in a form of `strftime`, as object keys need it.
    pub fn strftime(self, form: &str) -> String {
        self.to_jiff().strftime(form).to_string()
    }

    /// RFC 3339 in UTC with seven digits of the second, as Event Grid writes times:
    /// `2026-11-21T10:00:00.0000000Z`.
    pub fn to_event_grid(self) -> String {
        format!("{:.7}", self.to_jiff())
    }

    fn to_jiff(self) -> jiff::Timestamp {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(whole_millis(length)))
    }
}

/// RFC 3339 in UTC with milliseconds: `2026-11-21T10:00:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

/// A length in whole milliseconds, at most `u64::MAX`.
pub fn whole_millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time in milliseconds, to the hundredth, as log lines have it.
pub fn log_millis(length: Duration) -> f64 {
    (length.as_secs_f64() * 100_000.0).round() / 100.0
}

/// The units of a duration as people write it, the largest first, with their lengths.
const UNITS: [(&str, Duration); 5] = [
    ("d", Duration::from_hours(24)),
    ("h", Duration::from_hours(1)),
    ("m", Duration::from_mins(1)),
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
];

/// Parses a duration as people write it (`10s`, `1h30m`, `1d`), or as ISO 8601 does; a day is 24
/// hours. Weeks, months and years are refused, because their length depends on the calendar or on
/// habit. A negative duration is refused. Every setting, option and header takes the same.
pub fn parse_duration(text: &str) -> Result<Duration, TimeError> {
    if text.starts_with('P') {
        parse_iso_duration(text)
    } else {
        parse_plain_duration(text).ok_or(TimeError::NotADuration)
    }
}

/// Parses whole numbers with a unit each, the largest first and each once; spaces may be between
/// them.
fn parse_plain_duration(text: &str) -> Option<Duration> {
    let mut units = UNITS.iter();
    let mut length = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|it: char| !it.is_ascii_lowercase());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let (_, of_unit) = units.find(|(name, _)| *name == unit)?;
        length = length.checked_add(of_unit.checked_mul(number.parse().ok()?)?)?;
        rest = after.trim_start_matches(' ');
    }
    (!text.is_empty() && !text.ends_with(' ')).then_some(length)
}

fn parse_iso_duration(text: &str) -> Result<Duration, TimeError> {
    let span: jiff::Span = text.parse().map_err(|_| TimeError::NotADuration)?;
    if span.get_weeks() != 0 || span.get_months() != 0 || span.get_years() != 0 {
        return Err(TimeError::NotADuration);
    }
    let length = span
        .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
        .map_err(|_| TimeError::NotADuration)?;
    Duration::try_from(length).map_err(|_| TimeError::NotADuration)
}

/// Writes a duration as ISO 8601 with the largest units first: `PT10S`, `PT1H30M`, `P1D`.
pub fn format_duration(length: Duration) -> String {
    let secs = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    let time_of_day = jiff::Span::new()
        .hours(secs / 3600 % 24)
        .minutes(secs / 60 % 60)
        .seconds(secs % 60)
        .milliseconds(length.subsec_millis());
    // No program of ours waits longer than a span can hold (about 20,000 years); one that did would
    // be shown so.
    let span = time_of_day.try_days(secs / 86_400).unwrap_or(time_of_day);
    span.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_timestamp_is_written_in_utc_with_milliseconds() {
        let time = Timestamp::parse("2020-08-13T19:18:13.1647262+02:00").unwrap();
        assert_eq!(time.to_string(), "2020-08-13T17:18:13.164Z");
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn minute_is_rounded_up_for_due_times_and_down_for_now() {
        let time = Timestamp::from_millis(60_001);
        assert_eq!(
            (time.minute_rounded_down(), time.minute_rounded_up()),
            (1, 2)
        );
        assert_eq!(Timestamp::from_millis(60_000).minute_rounded_up(), 1);
    }

    #[test]
    fn a_length_is_logged_in_milliseconds_to_the_hundredth() {
        let check = |nanos, expected: &str| {
            assert_eq!(
                log_millis(Duration::from_nanos(nanos)).to_string(),
                expected
            );
        };
        check(0, "0");
        check(94_999, "0.09");
        check(1_526_000, "1.53");
        check(60_000_000_000, "60000");
    }

    #[test]
    fn durations_of_unclear_length_are_refused() {
        for text in [
            "",
            " ",
            "10",
            "P1M",
            "P1Y",
            "P1W",
            "-PT1S",
            "PT-1S",
            "PT",
            "P",
            "1w",
            "1y",
            "1mo",
            "-1s",
            "1.5h",
            "10 s",
            " 10s",
            "10s ",
            "10S",
            "1M",
            "s",
            "1m1h",
            "1s1s",
            "1h 30",
            "1h,30m",
            "99999999999d",
            "٣s",
        ] {
            assert_eq!(parse_duration(text), Err(TimeError::NotADuration), "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let check = |text: &str, iso: &str| {
            let length = parse_duration(text).map(format_duration);
            assert_eq!(length.as_deref(), Ok(iso), "{text}");
        };
        check("10s", "PT10S");
        check("5m", "PT5M");
        check("2h30m", "PT2H30M");
        check("1d", "P1D");
        check("90s", "PT1M30S");
        check("500ms", "PT0.5S");
        check("1m 500ms", "PT1M0.5S");
        check("1d2h3m4s5ms", "P1DT2H3M4.005S");
        check("0s", "PT0S");
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        let check = |secs: f64, text: &str| {
            assert_eq!(format_duration(Duration::from_secs_f64(secs)), text);
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs_f64(secs)),
                "{text}"
            );
        };
        check(10.0, "PT10S");
        check(5400.0, "PT1H30M");
        check(86_400.0, "P1D");
        check(90_000.0, "P1DT1H");
        check(0.0, "PT0S");
        check(0.25, "PT0.25S");
        check(60.0, "PT1M");
        check(61.5, "PT1M1.5S");
    }

    proptest! {
        #[test]
        fn every_duration_survives_writing_and_reading(ms in 0_u64..10_000_000_000) {
            let length = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(length)), Ok(length));
        }

        #[test]
        fn no_text_of_a_duration_panics(text in "[0-9dhmsP T.-]{0,24}") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn every_timestamp_survives_writing_and_reading(ms in 0_u64..250_000_000_000_000) {
            let time = Timestamp::from_millis(ms);
            prop_assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
    }
}
