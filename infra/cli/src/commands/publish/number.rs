//! Numbers as people read them.

/// A number with a comma between thousands.
pub(super) fn group_thousands(number: u64) -> String {
    if number < 1000 {
        return number.to_string();
    }
    let thousands = group_thousands(number / 1000);
    format!("{thousands},{:03}", number % 1000)
}

/// `1 event`, `2,000 events`.
pub(super) fn count_with_noun(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", group_thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_the_thousand() {
        let check = |number, expected: &str| assert_eq!(group_thousands(number), expected);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
    }

    #[test]
    fn noun_is_singular_for_one() {
        let check = |number, expected: &str| assert_eq!(count_with_noun(number, "event"), expected);
        check(0, "0 events");
        check(1, "1 event");
        check(1000, "1,000 events");
    }
}
