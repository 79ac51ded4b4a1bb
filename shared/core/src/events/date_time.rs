//! RFC 3339 date-times as producers write them. The calendar is jiff's; only the form is checked
//! here, because jiff also takes forms that other readers of the event would not.

use std::borrow::Cow;

use crate::model::Timestamp;

/// The length of `2026-11-21T10:00:00` in bytes.
const SECONDS_END: usize = 19;

/// Whether an offset may lack its colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffsetForm {
    /// RFC 3339: `Z` or `+01:00`.
    Rfc3339,
    /// Also `+0100`: Event Grid takes it, and its documentation's first example (`date +%z`) sends
    /// it.
    ColonOptional,
}

/// Parses a date-time. Points outside what [`Timestamp`] holds (before 1970, as
/// `0001-01-01T00:00:00Z`, the default of .NET and Go) become the nearest time that it holds: they
/// are valid, and the event's own text keeps them exactly.
pub(super) fn parse(text: &str, offset: OffsetForm) -> Option<Timestamp> {
    let (civil, rest) = text.split_at_checked(SECONDS_END)?;
    let shape = civil
        .bytes()
        .zip(*b"dddd-dd-ddTdd:dd:dd")
        .all(|(found, form)| match form {
            b'd' => found.is_ascii_digit(),
            b'T' => found.eq_ignore_ascii_case(&b'T'),
            _ => found == form,
        });
    if !shape {
        return None;
    }
    let (millis, rest) = parse_fraction(rest)?;
    let east_minutes = offset_minutes(rest, offset)?;
    let civil: jiff::civil::DateTime = civil.parse().ok()?;
    let epoch_days = jiff::civil::date(1970, 1, 1)
        .until(civil.date())
        .ok()?
        .get_days();
    let day_seconds =
        i64::from(civil.hour()) * 3600 + i64::from(civil.minute()) * 60 + i64::from(civil.second());
    let seconds = i64::from(epoch_days) * 86_400 + day_seconds - east_minutes * 60;
    Some(Timestamp::from_millis(
        u64::try_from(seconds * 1000 + millis).unwrap_or(0),
    ))
}

/// A date-time that [`OffsetForm::ColonOptional`] takes as RFC 3339 has it: with a colon in its offset.
pub(super) fn with_colon(text: &str) -> Cow<'_, str> {
    match text
        .len()
        .checked_sub(5)
        .and_then(|at| text.split_at_checked(at))
    {
        Some((before, offset)) if offset.starts_with(['+', '-']) && !offset.contains(':') => {
            let (hours, minutes) = offset.split_at(3);
            format!("{before}{hours}:{minutes}").into()
        }
        _ => text.into(),
    }
}

/// Whole milliseconds of `.123…`, and what follows it.
fn parse_fraction(text: &str) -> Option<(i64, &str)> {
    let Some(digits) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = digits
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .filter(|&end| end > 0)?;
    let (digits, rest) = digits.split_at(end);
    let millis = digits
        .bytes()
        .chain(*b"00")
        .take(3)
        .fold(0, |sum, b| sum * 10 + i64::from(b - b'0'));
    Some((millis, rest))
}

fn parse_digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

/// Minutes east of UTC.
fn offset_minutes(text: &str, offset: OffsetForm) -> Option<i64> {
    let (sign, [h1, h2, m1, m2]) = match *text.as_bytes() {
        [b'Z' | b'z'] => return Some(0),
        [sign, h1, h2, b':', m1, m2] => (sign, [h1, h2, m1, m2]),
        [sign, h1, h2, m1, m2] if offset == OffsetForm::ColonOptional => (sign, [h1, h2, m1, m2]),
        _ => return None,
    };
    let hours = parse_digit(h1)? * 10 + parse_digit(h2)?;
    let minutes = parse_digit(m1)? * 10 + parse_digit(m2)?;
    let east = hours * 60 + minutes;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        b'+' => Some(east),
        b'-' => Some(-east),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(text: &str) -> Option<u64> {
        parse(text, OffsetForm::Rfc3339).map(Timestamp::as_millis)
    }

    #[test]
    fn an_offset_without_its_colon_gets_one() {
        let check = |text: &str, expected: &str| assert_eq!(with_colon(text), expected);
        check("2020-08-13T17:18:13+0200", "2020-08-13T17:18:13+02:00");
        check("2020-08-13T17:18:13.5-0130", "2020-08-13T17:18:13.5-01:30");
        check("2020-08-13T17:18:13+02:00", "2020-08-13T17:18:13+02:00");
        check(
            "2020-08-13T17:18:13.1647262Z",
            "2020-08-13T17:18:13.1647262Z",
        );
        check("", "");
    }

    #[test]
    fn every_form_of_rfc_3339_is_read() {
        assert_eq!(
            millis("2020-08-13T17:18:13.1647262Z"),
            Some(1_597_339_093_164)
        );
        assert_eq!(millis("2020-08-13t17:18:13.1z"), Some(1_597_339_093_100));
        assert_eq!(millis("2020-08-13T19:18:13+02:00"), Some(1_597_339_093_000));
        assert_eq!(
            millis("2020-08-13T17:18:13.000000000000001-00:00"),
            Some(1_597_339_093_000)
        );
        assert_eq!(millis("2016-12-31T23:59:60Z"), Some(1_483_228_799_000));
        assert_eq!(millis("0001-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            millis("9999-12-31T23:59:59.9999999Z"),
            Some(253_402_300_799_999)
        );
    }

    #[test]
    fn forms_outside_rfc_3339_are_refused() {
        for text in [
            "",
            "now",
            "2020-08-13",
            "2020-08-13T17:18:13",
            "2020-08-13T17:18Z",
            "2020-08-13 17:18:13Z",
            "2020-08-13T17:18:13.Z",
            "2020-08-13T17:18:13,5Z",
            "2020-13-13T17:18:13Z",
            "2020-02-30T17:18:13Z",
            "2020-08-13T24:18:13Z",
            "2020-08-13T17:18:13+0200",
            "2020-08-13T17:18:13+02",
            "2020-08-13T17:18:13+24:00",
            "2020-08-13T17:18:13 02:00",
            "2020-08-13T17:18:13Z[UTC]",
            " 2020-08-13T17:18:13Z",
            "2020-08-13T17:18:1é",
            "+002020-08-13T17:18:13Z",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }

    #[test]
    fn event_grid_takes_an_offset_without_its_colon() {
        let time = parse("2020-08-13T19:18:13+0200", OffsetForm::ColonOptional);
        assert_eq!(time, Some(Timestamp::from_millis(1_597_339_093_000)));
    }

    proptest! {
        #[test]
        fn it_agrees_with_jiff(ms in 0_u64..250_000_000_000_000, east in -1439_i32..1440) {
            let sign = if east < 0 { '-' } else { '+' };
            let local = Timestamp::from_millis(ms).to_string();
            let text = format!("{}{sign}{:02}:{:02}", &local[..23], east.abs() / 60, east.abs() % 60);
            let expected = Timestamp::parse(&text).unwrap_or(Timestamp::EPOCH);
            prop_assert_eq!(parse(&text, OffsetForm::Rfc3339), Some(expected), "{}", text);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", tail in "[0-9.:+Zz-]{0,12}") {
            let _ = parse(&text, OffsetForm::Rfc3339);
            let _ = parse(&format!("2020-08-13T17:18:13{tail}"), OffsetForm::ColonOptional);
        }
    }
}
