//! The times that ids tell: those of events and those of requests.

use std::time::Duration;

use super::LogHour;
use crate::model::time::whole_millis;
use crate::model::{Timestamp, WEBHOOK_ID_PREFIX, hex};

/// The time by which the clock of a producer that put it into an id may be ahead.
const ID_CLOCK_AHEAD_MAX: Duration = Duration::from_hours(1);

/// The time after an event's acceptance for which its `webhook-id` says where its records are: most
/// events have all of them by then. The hours of later records have the id in their filters.
const WEBHOOK_ID_TOLD_FOR: Duration = Duration::from_hours(1);

/// The time by which the clock that accepted an event may be ahead of the one that recorded its
/// attempt.
const WEBHOOK_ID_CLOCKS_DIFFER_MAX: Duration = Duration::from_mins(1);

/// The time in an id, if it is a UUID of version 7.
pub fn time_in_id(id: &str) -> Option<Timestamp> {
    let groups: Vec<&str> = id.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let digits = id.to_ascii_lowercase().replace('-', "");
    time_in_digits(&digits).filter(|_| lengths == [8, 4, 4, 4, 12])
}

/// The time before which no record of an event can be, by its id.
pub(super) fn earliest_of_id(id: &str) -> Option<Timestamp> {
    time_in_id(id).map(|time| time_before(time, ID_CLOCK_AHEAD_MAX))
}

/// The time at which the event of a `webhook-id` was accepted, if the id tells it. Those of version
/// 0.1.0 and of batches do not, and one in 64 of these looks as if it did.
pub fn time_in_webhook_id(id: &str) -> Option<Timestamp> {
    let (digits, index) = id.strip_prefix(WEBHOOK_ID_PREFIX)?.split_once('-')?;
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    time_in_digits(digits).filter(|_| is_index)
}

/// Whether the summary of an hour has the `webhook-id` of a record in it. It has not where the id
/// itself tells the hour, so that its filter is half as large.
pub fn is_webhook_id_summarized(id: &str, hour: LogHour) -> bool {
    time_in_webhook_id(id).is_none_or(|accepted| {
        let from = time_before(accepted, WEBHOOK_ID_CLOCKS_DIFFER_MAX);
        !hour.overlaps(Some(from), Some(accepted + WEBHOOK_ID_TOLD_FOR))
    })
}

/// The time in a UUID of version 7 without hyphens.
fn time_in_digits(digits: &str) -> Option<Timestamp> {
    let bytes: [u8; 16] = hex::parse(digits)?;
    let is_version_7 = bytes[6] >> 4 == 7 && bytes[8] >> 6 == 0b10;
    let ms = bytes[..6]
        .iter()
        .fold(0_u64, |ms, byte| ms << 8 | u64::from(*byte));
    is_version_7.then_some(Timestamp::from_millis(ms))
}

fn time_before(time: Timestamp, by: Duration) -> Timestamp {
    let by = whole_millis(by);
    Timestamp::from_millis(time.as_millis().saturating_sub(by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2023-11-14T22:13:20Z.
    const TIME: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn webhook_id_of_version_7_tells_its_time() {
        let tells = |id: &str| time_in_webhook_id(id);
        assert_eq!(tells("msg_018bcfe568007abc8def0123456789ab-0"), Some(TIME));
        assert_eq!(
            tells("msg_018bcfe568007abc8def0123456789ab-417"),
            Some(TIME)
        );
        for other in [
            "",
            "msg_",
            "msg_0b0e-0",
            "018bcfe568007abc8def0123456789ab-0",
            // As version 0.1.0 made them: of version 4.
            "msg_d696566cadfa433ea894554ff54dd785-0",
            // Of a batch.
            "msg_018bcfe568007abc8def0123456789ab",
            "msg_018bcfe568007abc8def0123456789ab-",
            "msg_018bcfe568007abc8def0123456789ab-x",
            "msg_018bcfe5-6800-7abc-8def-0123456789ab-0",
            "msg_018bcfe568007abcddef0123456789ab-0",
        ] {
            assert_eq!(tells(other), None, "{other}");
        }
    }

    #[test]
    fn webhook_id_is_summarized_but_where_it_tells_the_hour() {
        let hour = LogHour::containing(TIME);
        let next = LogHour::containing(hour.end());
        let is_summarized =
            |hour| is_webhook_id_summarized("msg_018bcfe568007abc8def0123456789ab-0", hour);
        assert!(!is_summarized(hour) && !is_summarized(next));
        assert!(is_summarized(hour.previous()) && is_summarized(LogHour::containing(next.end())));
        assert!(is_webhook_id_summarized("msg_0b0e-0", hour));
    }

    #[test]
    fn webhook_id_just_after_the_hour_tells_the_hour_before_too() {
        let hour = LogHour::containing(TIME);
        let just_after = format!("{:012x}", hour.end().as_millis() + 59_000);
        let id = format!("msg_{just_after}7abc8def0123456789ab-0");
        assert!(!is_webhook_id_summarized(&id, hour));
        let later = format!("{:012x}", hour.end().as_millis() + 60_000);
        let id = format!("msg_{later}7abc8def0123456789ab-0");
        assert!(is_webhook_id_summarized(&id, hour));
    }

    proptest! {
        #[test]
        fn no_id_makes_it_panic(text: String, ms: u64) {
            let hour = LogHour::containing(Timestamp::from_millis(ms));
            let _ = (time_in_id(&text), time_in_webhook_id(&text), is_webhook_id_summarized(&text, hour));
            let _ = time_in_webhook_id(&format!("msg_{text}-0"));
        }
    }
}
