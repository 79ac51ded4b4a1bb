//! The clock of a server against another one.

use std::time::{Duration, UNIX_EPOCH};

use super::check::{CheckResult, CheckView};
use crate::model::Timestamp;
use crate::model::time::whole_millis;

/// The difference of two clocks from which receivers refuse what is signed: five minutes, the
/// tolerance of the libraries for Standard Webhooks.
/// <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>
pub const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_mins(5);

/// The difference that is worth a look: a tenth of that. A clock that is kept by NTP is within a
/// second.
pub const CLOCK_DIFFERENCE_NOTED: Duration = Duration::from_secs(30);

/// `Date` has whole seconds (RFC 9110, section 5.6.7).
const DATE_STEP: Duration = Duration::from_secs(1);

/// A reading of a server's clock: its `Date`, between two looks at the own clock.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading<'a> {
    /// The header `Date` of an answer, if it has one.
    pub date: Option<&'a str>,
    /// The own time when the request was sent.
    pub asked_at: Timestamp,
    /// The own time when the answer was there.
    pub answered_at: Timestamp,
}

/// Whether a server's clock is that of this machine. The time that the request took, and the step
/// of the header, are taken off the difference.
pub fn clock_check(of: &str, reading: &ClockReading<'_>) -> CheckView {
    let date = reading
        .date
        .and_then(|text| httpdate::parse_http_date(text).ok());
    let Some(since_epoch) = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok()) else {
        return CheckView::passed("clock", of, "the answer has no Date that can be read")
            .with_result(
                CheckResult::Unknown,
                "compare `date -u` on the server's machine with this one",
            );
    };
    let theirs = Timestamp::from_millis(whole_millis(since_epoch));
    let behind = reading.asked_at.since(theirs + DATE_STEP);
    let ahead = theirs.since(reading.answered_at);
    let difference = behind.max(ahead);
    let of_it = CheckView::passed("clock", of, clock_offset_text(behind, ahead));
    let advice = format!(
        "set the clocks by NTP (`timedatectl` says whether one is): receivers refuse signatures of \
         more than {} minutes ago or ahead",
        CLOCK_DIFFERENCE_MAX.as_secs() / 60
    );
    if difference >= CLOCK_DIFFERENCE_MAX {
        of_it.with_result(CheckResult::Failed, advice)
    } else if difference >= CLOCK_DIFFERENCE_NOTED {
        of_it.with_result(CheckResult::Warning, advice)
    } else {
        of_it
    }
}

fn clock_offset_text(behind: Duration, ahead: Duration) -> String {
    let secs = behind.max(ahead).as_secs();
    if secs == 0 {
        "the same as this machine's, to the second".to_owned()
    } else if ahead > behind {
        format!("{secs} s ahead of this machine's")
    } else {
        format!("{secs} s behind this machine's")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The date of all these tests.
    const DATE: &str = "Sat, 21 Nov 2026 10:00:00 GMT";

    fn check(date: Option<&str>, asked: &str, answered: &str, expected: (CheckResult, &str)) {
        let time = |text: &str| Timestamp::parse(&format!("2026-11-21T{text}Z")).unwrap();
        let reading = ClockReading {
            date,
            asked_at: time(asked),
            answered_at: time(answered),
        };
        let check = clock_check("http://h", &reading);
        assert_eq!((check.result, &*check.found), expected);
        assert_eq!(check.advice.is_some(), expected.0 != CheckResult::Ok);
    }

    #[test]
    fn clocks_are_compared_within_what_the_header_can_tell() {
        use CheckResult::{Failed, Ok, Warning};
        let same = "the same as this machine's, to the second";
        check(Some(DATE), "10:00:00.400", "10:00:00.402", (Ok, same));
        check(Some(DATE), "10:00:01.900", "10:00:01.902", (Ok, same));
        // A slow answer says less.
        check(Some(DATE), "09:59:40.000", "10:00:20.000", (Ok, same));
        check(
            Some(DATE),
            "10:00:30.900",
            "10:00:31",
            (Ok, "29 s behind this machine's"),
        );
        check(
            Some(DATE),
            "10:00:31",
            "10:00:32",
            (Warning, "30 s behind this machine's"),
        );
        check(
            Some(DATE),
            "09:59:29",
            "09:59:30",
            (Warning, "30 s ahead of this machine's"),
        );
        check(
            Some(DATE),
            "10:06:01",
            "10:06:01",
            (Failed, "360 s behind this machine's"),
        );
        check(
            Some(DATE),
            "10:05:00.999",
            "10:05:01",
            (Warning, "299 s behind this machine's"),
        );
        check(
            Some(DATE),
            "10:05:01",
            "10:05:01",
            (Failed, "300 s behind this machine's"),
        );
        check(
            Some(DATE),
            "09:55:00",
            "09:55:00",
            (Failed, "300 s ahead of this machine's"),
        );
    }

    #[test]
    fn clock_without_a_date_is_unknown() {
        let unknown = (
            CheckResult::Unknown,
            "the answer has no Date that can be read",
        );
        check(None, "10:00:00", "10:00:00", unknown);
        check(Some("noon"), "10:00:00", "10:00:00", unknown);
    }
}
