//! A dead letter as a list shows it, read without its event.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::members::{CLOUD_EVENTS, EVENT_GRID, member_value, read_members};
use super::restore::NotDeadLetters;

/// A dead letter's words about its event and its attempts. A member that is missing, or of another
/// kind, is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownLetter {
    /// The event's id.
    pub id: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// The reason why it was given up; `None` where the object's part is no dead letter.
    pub reason: Option<String>,
    /// The number of attempts.
    pub attempts: Option<u16>,
    /// The HTTP status of the last one.
    pub status: Option<u16>,
}

/// The letters of an object, in order.
pub fn shown_letters(object: &Bytes) -> Result<Vec<ShownLetter>, NotDeadLetters> {
    let records: Vec<&RawValue> = serde_json::from_slice(object).map_err(NotDeadLetters)?;
    Ok(records.into_iter().map(shown_letter).collect())
}

/// Whether a part of an object is a dead letter: it says why its event was given up.
pub(super) fn is_letter(record: &RawValue) -> bool {
    shown_letter(record).reason.is_some()
}

fn shown_letter(record: &RawValue) -> ShownLetter {
    let names = [
        "id",
        "eventType",
        EVENT_GRID.reason,
        EVENT_GRID.attempts,
        EVENT_GRID.status,
        "type",
        CLOUD_EVENTS.reason,
        CLOUD_EVENTS.attempts,
        CLOUD_EVENTS.status,
    ];
    let Some([id, members @ ..]) = read_members(record.get().as_bytes(), names) else {
        return ShownLetter::default();
    };
    let [event_grid @ .., _, _, _, _] = members;
    let [_, _, _, _, cloud_events @ ..] = members;
    let is_event_grid = member_value::<String>(event_grid[1]).is_some();
    let [event_type, reason, attempts, status] = if is_event_grid {
        event_grid
    } else {
        cloud_events
    };
    ShownLetter {
        id: member_value(id),
        event_type: member_value(event_type),
        reason: member_value(reason),
        attempts: member_value(attempts),
        status: member_value(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(record: &str, expected: [&str; 3], numbers: [Option<u16>; 2]) {
        let letters = shown_letters(&Bytes::from(format!("[{record}]"))).unwrap();
        let [letter] = &letters[..] else {
            panic!("one letter")
        };
        let texts = [&letter.id, &letter.event_type, &letter.reason];
        assert_eq!(
            texts.map(|text| text.as_deref().unwrap_or("-")),
            expected,
            "{record}"
        );
        assert_eq!([letter.attempts, letter.status], numbers, "{record}");
    }

    #[test]
    fn letters_of_both_schemas_are_shown() {
        let event_grid = r#"{"id":"1","eventType":"t","deadLetterReason":"EndpointGone","deliveryAttempts":3,
            "lastHttpStatusCode":410}"#;
        check(event_grid, ["1", "t", "EndpointGone"], [Some(3), Some(410)]);
        let cloud_event =
            r#"{"id":"2","type":"u","deadletterreason":"TimeToLiveExceeded","deliveryattempts":0}"#;
        check(
            cloud_event,
            ["2", "u", "TimeToLiveExceeded"],
            [Some(0), None],
        );
    }

    #[test]
    fn missing_or_mistyped_members_are_left_out() {
        check(
            r#"{"id":7,"deadletterreason":"x","deliveryattempts":"many"}"#,
            ["-", "-", "x"],
            [None, None],
        );
        check("{}", ["-", "-", "-"], [None, None]);
        check("17", ["-", "-", "-"], [None, None]);
        assert!(shown_letters(&Bytes::from_static(b"{}")).is_err());
    }
}
