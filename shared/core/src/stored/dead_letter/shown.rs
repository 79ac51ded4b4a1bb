//! What a list shows of a dead letter, read without its event.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::restore::{NotDeadLetters, member_text};

/// What a dead letter says of its event and of its attempts. What is missing or of another kind is
/// `None`.
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

/// The members under both their names: CloudEvents know lower case only.
#[derive(Deserialize)]
struct ShownMembers<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(rename = "eventType", borrow)]
    event_grid_type: Option<&'a RawValue>,
    #[serde(rename = "type", borrow)]
    cloud_events_type: Option<&'a RawValue>,
    #[serde(rename = "deadLetterReason", borrow)]
    event_grid_reason: Option<&'a RawValue>,
    #[serde(rename = "deadletterreason", borrow)]
    cloud_events_reason: Option<&'a RawValue>,
    #[serde(rename = "deliveryAttempts", borrow)]
    event_grid_attempts: Option<&'a RawValue>,
    #[serde(rename = "deliveryattempts", borrow)]
    cloud_events_attempts: Option<&'a RawValue>,
    #[serde(rename = "lastHttpStatusCode", borrow)]
    event_grid_status: Option<&'a RawValue>,
    #[serde(rename = "lasthttpstatuscode", borrow)]
    cloud_events_status: Option<&'a RawValue>,
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
    let Ok(members) = serde_json::from_str::<ShownMembers<'_>>(record.get()) else {
        return ShownLetter::default();
    };
    let id = member_text(members.id);
    if let Some(reason) = member_text(members.event_grid_reason) {
        return ShownLetter {
            id,
            event_type: member_text(members.event_grid_type),
            reason: Some(reason),
            attempts: member_number(members.event_grid_attempts),
            status: member_number(members.event_grid_status),
        };
    }
    ShownLetter {
        id,
        event_type: member_text(members.cloud_events_type),
        reason: member_text(members.cloud_events_reason),
        attempts: member_number(members.cloud_events_attempts),
        status: member_number(members.cloud_events_status),
    }
}

fn member_number(raw: Option<&RawValue>) -> Option<u16> {
    serde_json::from_str(raw?.get()).ok()
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
