//! The speed of what is long.

use std::time::Duration;

use posthaste_core::model::Timestamp;

use crate::display::number;

/// The number done per second between two times, if these are apart.
pub(crate) fn speed_text(done: u64, from: Timestamp, to: Timestamp) -> Option<String> {
    let elapsed = to.since(from);
    if done == 0 || elapsed < Duration::from_secs(1) {
        return None;
    }
    let per_second = u128::from(done) * 1_000 / elapsed.as_millis();
    Some(match u64::try_from(per_second).unwrap_or(u64::MAX) {
        0 => "less than one a second".to_owned(),
        speed => format!("{} a second", number(speed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_told_where_times_are_apart() {
        let from = Timestamp::from_millis(1_000_000);
        let speed = |done, millis: u64| {
            let to = Timestamp::from_millis(1_000_000 + millis);
            speed_text(done, from, to)
        };
        assert_eq!(speed(3_000, 2_000).as_deref(), Some("1,500 a second"));
        assert_eq!(speed(1, 2_000).as_deref(), Some("less than one a second"));
        assert_eq!(speed(0, 2_000), None);
        assert_eq!(speed(5, 999), None);
        // The clocks of two processes differ.
        let later = Timestamp::from_millis(2_000_000);
        assert_eq!(speed_text(5, later, from), None);
    }
}
