//! Numbers as JSON writes them, compared without loss: numbers that 64 bits or a double cannot hold
//! are never rounded.

use std::cmp::Reverse;

/// The number of digits that fit into a word.
const HEAD_DIGITS: usize = 19;

/// A decimal number of any length.
///
/// Order and equality are those of the numbers themselves: `1`, `1.0` and `10e-1` are equal.
/// Exponents beyond 64 bits count as the last that 64 bits hold, on their side of zero.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecimalNumber {
    /// Less than zero.
    Negative(Reverse<NumberMagnitude>),
    /// Zero, whatever its sign.
    Zero,
    /// Greater than zero.
    Positive(NumberMagnitude),
}

/// A number greater than zero, `0.{head}{tail} × 10^exponent`. The order of the members makes the
/// derived order that of the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NumberMagnitude {
    exponent: i64,
    /// The first digits, of which the first is not 0, filled up with zeros.
    head: u64,
    /// The digits after those, as bytes, without zeros at the end.
    tail: Box<[u8]>,
}

impl DecimalNumber {
    /// Reads a number as JSON writes it; `None` if it is not a number.
    /// <https://www.rfc-editor.org/rfc/rfc8259#section-6>
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let point = mantissa.split_once('.');
        let (whole, fraction) = point.map_or((mantissa, None), |(whole, fraction)| {
            (whole, Some(fraction))
        });
        let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
        if has_leading_zero || !are_digits(whole) || !fraction.is_none_or(are_digits) {
            return None;
        }
        Some(
            match NumberMagnitude::from_digits(whole, fraction.unwrap_or_default(), exponent) {
                None => Self::Zero,
                Some(magnitude) if is_negative => Self::Negative(Reverse(magnitude)),
                Some(magnitude) => Self::Positive(magnitude),
            },
        )
    }
}

impl NumberMagnitude {
    /// The magnitude of checked digits; `None` if all of them are 0.
    fn from_digits(whole: &str, fraction: &str, exponent: i64) -> Option<Self> {
        let digits = whole.bytes().chain(fraction.bytes());
        let zeros = digits.clone().position(|digit| digit != b'0')?;
        let mut significant = digits.skip(zeros);
        let mut head = 0;
        for _ in 0..HEAD_DIGITS {
            head = head * 10 + u64::from(significant.next().unwrap_or(b'0') - b'0');
        }
        let mut tail: Vec<u8> = significant.collect();
        let kept = tail
            .iter()
            .rposition(|digit| *digit != b'0')
            .map_or(0, |last| last + 1);
        tail.truncate(kept);
        let exponent = exponent
            .saturating_add_unsigned(whole.len() as u64)
            .saturating_sub_unsigned(zeros as u64);
        Some(Self {
            exponent,
            head,
            tail: tail.into_boxed_slice(),
        })
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn parse_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if !are_digits(digits) {
        return None;
    }
    let value = digits.bytes().fold(0_i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    Some(value * sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn number(text: &str) -> DecimalNumber {
        DecimalNumber::parse(text).unwrap()
    }

    fn check(a: &str, b: &str, expected: Ordering) {
        assert_eq!(number(a).cmp(&number(b)), expected, "{a} {b}");
        assert_eq!(number(b).cmp(&number(a)), expected.reverse(), "{b} {a}");
    }

    #[test]
    fn a_number_is_what_it_says_however_it_is_written() {
        for same in [
            "1",
            "1.0",
            "10e-1",
            "0.1e1",
            "1E+0",
            "100000000000000000000000e-23",
        ] {
            check("1", same, Ordering::Equal);
        }
        for zero in ["0", "-0", "0.000", "0e999999", "-0.0E-99999999999999999999"] {
            check("0", zero, Ordering::Equal);
        }
    }

    #[test]
    fn numbers_are_compared_without_rounding() {
        check("9007199254740993", "9007199254740992", Ordering::Greater);
        check(
            "12345678901234567890",
            "12345678901234567891",
            Ordering::Less,
        );
        check("99999999999999999999", "1e20", Ordering::Less);
        check("-99999999999999999999", "-1e20", Ordering::Greater);
        check(
            "0.1",
            "0.1000000000000000055511151231257827",
            Ordering::Less,
        );
        check(
            "123456789012345678901234",
            "123456789012345678901234.0",
            Ordering::Equal,
        );
        check(
            "123456789012345678900",
            "12345678901234567890",
            Ordering::Greater,
        );
    }

    #[test]
    fn numbers_beyond_doubles_are_compared() {
        check("1e999999", "1e999998", Ordering::Greater);
        check("1e999999", "1.7976931348623157e308", Ordering::Greater);
        check("-1e999999", "-1", Ordering::Less);
        check("1e-999999", "0", Ordering::Greater);
        check("1e99999999999999999999", "1e999999", Ordering::Greater);
        check("1e-99999999999999999999", "1e-999999", Ordering::Less);
    }

    #[test]
    fn malformed_number_is_none() {
        for text in [
            "", "-", "+1", "01", ".5", "5.", "1e", "1e+", "0x1", " 1", "1 ", "NaN", "1e1.5", "--1",
            "१",
        ] {
            assert_eq!(DecimalNumber::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn integers_compare_as_integers(a: i128, b: i128) {
            prop_assert_eq!(number(&a.to_string()).cmp(&number(&b.to_string())), a.cmp(&b));
        }

        #[test]
        fn doubles_compare_as_doubles(a in -1e300..1e300, b in -1e-3..1e3) {
            let expected = f64::total_cmp(&a, &b);
            prop_assert_eq!(number(&format!("{a:e}")).cmp(&number(&format!("{b:e}"))), expected);
            prop_assert_eq!(number(&a.to_string()).cmp(&number(&format!("{a:e}"))), Ordering::Equal);
        }
    }
}
