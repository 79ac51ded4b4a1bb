//! A value as it stands in the file, read as what its key asks for. Anything is taken in at first,
//! so that an error can name the key.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::size::parse_size;
use crate::model::time::parse_duration;

/// Most characters of a value that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// A value of any kind. The first variant that fits is taken.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "of a value that no key takes, only the kind counts"
)]
pub(super) enum SettingValue {
    Flag(bool),
    Number(u64),
    Text(String),
    // No key takes any of these.
    Nothing(Option<()>),
    Negative(i64),
    Fraction(f64),
    List(Vec<IgnoredAny>),
    Object(IgnoredAny),
}

impl SettingValue {
    /// Whether it is as if its key were left out.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }

    pub(super) fn as_flag(&self) -> Option<bool> {
        if let Self::Flag(flag) = self {
            Some(*flag)
        } else {
            None
        }
    }

    pub(super) fn as_number(&self) -> Option<u64> {
        if let Self::Number(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    pub(super) fn as_count(&self) -> Option<u32> {
        u32::try_from(self.as_number()?).ok()
    }

    pub(super) fn as_size(&self) -> Option<u64> {
        match self {
            Self::Number(bytes) => Some(*bytes),
            Self::Text(text) => parse_size(text),
            _ => None,
        }
    }

    pub(super) fn as_length(&self) -> Option<Duration> {
        let Self::Text(text) = self else { return None };
        parse_time_span(text).or_else(|| parse_duration(text).ok())
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(
                f,
                "{:?}",
                text.chars().take(SHOWN_CHARS_MAX).collect::<String>()
            ),
            Self::Nothing(_) => f.write_str("nothing"),
            Self::Negative(_) => f.write_str("a negative number"),
            Self::Fraction(_) => f.write_str("a fraction"),
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

/// `00:00:00.100`, as Exchange writes durations: hours, minutes, seconds with up to seven digits
/// behind the point.
/// <https://learn.microsoft.com/dotnet/standard/base-types/standard-timespan-format-strings>
fn parse_time_span(text: &str) -> Option<Duration> {
    let mut parts = text.split(':');
    let hours = parts.next()?;
    let minutes = parts.next()?;
    let secs = parts.next()?;
    if parts.next().is_some() {
        return None;
    }
    let (whole, fraction) = secs.split_once('.').unwrap_or((secs, "0"));
    let whole =
        two_digits(hours, 23)? * 3600 + two_digits(minutes, 59)? * 60 + two_digits(whole, 59)?;
    Some(Duration::from_secs(whole) + parse_fraction(fraction)?)
}

fn two_digits(text: &str, max: u64) -> Option<u64> {
    let number = (text.len() <= 2 && is_digits(text)).then(|| text.parse().ok())??;
    Some(number).filter(|number| *number <= max)
}

fn parse_fraction(text: &str) -> Option<Duration> {
    /// A `TimeSpan` counts in steps of 100 ns.
    const DIGITS_MAX: usize = 7;
    let tenths_of_micros =
        (text.len() <= DIGITS_MAX && is_digits(text)).then(|| format!("{text:0<7}"))?;
    Some(Duration::from_nanos(
        tenths_of_micros.parse::<u64>().ok()? * 100,
    ))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SettingValue {
        SettingValue::Text(text.to_owned())
    }

    #[test]
    fn duration_is_read_as_in_the_document_or_as_iso_8601() {
        let check = |written: &str, expected: Option<u64>| {
            assert_eq!(
                text(written).as_length(),
                expected.map(Duration::from_millis),
                "{written}"
            );
        };
        check("00:00:02", Some(2000));
        check("00:00:00.100", Some(100));
        check("00:00:00.1", Some(100));
        check("23:59:59.9990000", Some(86_399_999));
        check("0:5:0", Some(300_000));
        check("PT2S", Some(2000));
        check("PT0.1S", Some(100));
        for bad in [
            "",
            "2",
            "2 s",
            "00:02",
            "24:00:00",
            "00:60:00",
            "00:00:60",
            "00:00:-1",
            "00:00:0.",
            "00:00:00:00",
            "00:00:00.12345678",
            "-00:00:02",
            "+1:00:00",
            "1.00:00:00",
            "P1M",
        ] {
            check(bad, None);
        }
        assert_eq!(SettingValue::Number(2).as_length(), None);
    }

    #[test]
    fn a_size_is_a_number_of_bytes_or_has_its_unit() {
        let check =
            |value: SettingValue, expected| assert_eq!(value.as_size(), expected, "{value:?}");
        check(SettingValue::Number(7), Some(7));
        check(text("384 MB"), Some(384 << 20));
        check(text("384mb"), Some(384 << 20));
        check(text("5 GB"), Some(5 << 30));
        check(text("0 B"), Some(0));
        check(text("1TB"), Some(1 << 40));
        for bad in [
            "",
            "MB",
            "384",
            "1.5 GB",
            "-1 MB",
            "384 MiB",
            "384 M B",
            "99999999999999 TB",
        ] {
            check(text(bad), None);
        }
        check(SettingValue::Flag(true), None);
    }
}
