//! Units of values: how they are written, and where an axis ends.

use crate::display::number;

/// The unit of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartUnit {
    /// A number of things.
    Count,
    /// A number for each second.
    PerSecond,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// A share in per cent.
    Percent,
    /// A level of pressure: 0, 1 or 2.
    Level,
}

/// The least end of an axis of milliseconds.
const MILLIS_TOP_MIN: f64 = 10.0;

/// The greatest share with one digit after the point that is not the whole.
const PERCENT_BELOW_WHOLE: f64 = 99.9;

impl ChartUnit {
    /// A value as it is written.
    pub(crate) fn format_value(self, value: f64) -> String {
        match self {
            Self::Count => three_digits(value),
            Self::PerSecond => format!("{}/s", three_digits(value)),
            Self::Millis => format_millis(value),
            Self::Seconds => format!("{} s", three_digits(value)),
            Self::Percent => format!("{} %", three_digits(shown_percent(value))),
            Self::Level => level_name(value).to_owned(),
        }
    }

    /// The end of an axis on which this value has room.
    pub(super) fn axis_top(self, most: f64) -> f64 {
        match self {
            Self::Percent => 100.0,
            Self::Level => 2.0,
            Self::Millis => round_up(most).max(MILLIS_TOP_MIN),
            Self::Count | Self::PerSecond | Self::Seconds => round_up(most).max(1.0),
        }
    }
}

/// The least of 1, 2, 4, 5 and 10, times a power of ten, that is not less than the value.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 4.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= value)
        .unwrap_or(10.0);
    factor * power
}

/// A value with about three digits.
fn three_digits(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        return number(round_to_u64(value));
    }
    let text = if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share that is not whole, at most the greatest that is written as less than the whole.
const fn shown_percent(percent: f64) -> f64 {
    if percent < 100.0 {
        percent.min(PERCENT_BELOW_WHOLE)
    } else {
        percent
    }
}

/// A length of time, given in milliseconds.
fn format_millis(ms: f64) -> String {
    if ms < 1_000.0 {
        format!("{} ms", three_digits(ms))
    } else {
        format!("{} s", three_digits(ms / 1_000.0))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest number of the type"
)]
fn round_to_u64(value: f64) -> u64 {
    value.round() as u64
}

fn level_name(value: f64) -> &'static str {
    match round_to_u64(value) {
        0 => "normal",
        1 => "medium",
        _ => "high",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_about_three_digits() {
        let check =
            |unit: ChartUnit, value, expected| assert_eq!(unit.format_value(value), expected);
        for (value, text) in [
            (0.0, "0"),
            (0.123, "0.12"),
            (9.5, "9.5"),
            (12.34, "12.3"),
            (1234.5, "1,235"),
        ] {
            check(ChartUnit::Count, value, text);
        }
        check(ChartUnit::PerSecond, 3.0, "3/s");
        check(ChartUnit::Millis, 12.0, "12 ms");
        check(ChartUnit::Millis, 55_000.0, "55 s");
        for (percent, text) in [
            (99.94, "99.9 %"),
            (99.954, "99.9 %"),
            (99.9999, "99.9 %"),
            (100.0, "100 %"),
        ] {
            check(ChartUnit::Percent, percent, text);
        }
        check(ChartUnit::Percent, 0.004, "0 %");
        for (level, word) in [(0.0, "normal"), (1.0, "medium"), (2.0, "high")] {
            check(ChartUnit::Level, level, word);
        }
    }

    #[test]
    fn an_axis_ends_at_a_round_number_above_its_values() {
        let check = |unit: ChartUnit, most, expected: f64| {
            assert_eq!(unit.axis_top(most).to_bits(), expected.to_bits());
        };
        for (most, top) in [
            (0.0, 1.0),
            (0.2, 1.0),
            (1.0, 1.0),
            (3.0, 4.0),
            (4.1, 5.0),
            (51.0, 100.0),
        ] {
            check(ChartUnit::Count, most, top);
        }
        check(ChartUnit::Millis, 0.3, 10.0);
        check(ChartUnit::Millis, 10_001.0, 20_000.0);
        check(ChartUnit::Percent, 3.0, 100.0);
        check(ChartUnit::Level, 0.0, 2.0);
    }
}
