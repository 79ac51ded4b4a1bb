//! The forms of values, each of which says in its error what is expected.

use std::time::Duration;

use serde::Deserialize;

use crate::model::size::parse_size;
use crate::model::time::parse_duration;

/// The reason why a value is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingValueError {
    #[error("expected a duration such as 00:00:02, 00:00:00.100 or PT2S")]
    NotTimeSpan,
    #[error("expected a number of bytes or a size such as 384 MB")]
    NotByteSize,
}

/// A length of time, as Exchange or as we write it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct TimeSpan(Duration);

impl TryFrom<String> for TimeSpan {
    type Error = SettingValueError;

    fn try_from(text: String) -> Result<Self, SettingValueError> {
        parse_time_span(&text)
            .or_else(|| parse_duration(&text).ok())
            .map(Self)
            .ok_or(SettingValueError::NotTimeSpan)
    }
}

impl From<TimeSpan> for Duration {
    fn from(span: TimeSpan) -> Self {
        span.0
    }
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "WrittenSize")]
pub(super) struct ByteSize(u64);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number of bytes or a size such as 384 MB"
)]
enum WrittenSize {
    Bytes(u64),
    Text(String),
}

impl TryFrom<WrittenSize> for ByteSize {
    type Error = SettingValueError;

    fn try_from(written: WrittenSize) -> Result<Self, SettingValueError> {
        let bytes = match written {
            WrittenSize::Bytes(bytes) => Some(bytes),
            WrittenSize::Text(text) => parse_size(&text),
        };
        bytes.map(Self).ok_or(SettingValueError::NotByteSize)
    }
}

impl From<ByteSize> for u64 {
    fn from(size: ByteSize) -> Self {
        size.0
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
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn read<F: DeserializeOwned + Into<T>, T>(written: Value) -> Option<T> {
        serde_json::from_value::<F>(written).ok().map(F::into)
    }

    #[test]
    fn duration_is_read_as_in_the_document_or_as_iso_8601() {
        let check = |written: &str, expected: Option<u64>| {
            assert_eq!(
                read::<TimeSpan, _>(json!(written)),
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
        assert_eq!(read::<TimeSpan, Duration>(json!(2)), None);
    }

    #[test]
    fn a_size_is_a_number_of_bytes_or_has_its_unit() {
        let check = |written: Value, expected: Option<u64>| {
            assert_eq!(read::<ByteSize, _>(written.clone()), expected, "{written}");
        };
        check(json!(7), Some(7));
        check(json!("384 MB"), Some(384 << 20));
        check(json!("384mb"), Some(384 << 20));
        check(json!("5 GB"), Some(5 << 30));
        check(json!("0 B"), Some(0));
        check(json!("1TB"), Some(1 << 40));
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
            check(json!(bad), None);
        }
        check(json!(true), None);
    }
}
