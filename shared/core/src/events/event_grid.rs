//! Azure Event Grid's own event schema: which members an event must have, and which ones a topic
//! adds. <https://learn.microsoft.com/azure/event-grid/event-schema>
//!
//! `id`, `eventType`, `subject`, `eventTime` and `data` are required. Members that the schema does
//! not know are kept.

use std::ops::Range;

use super::date_time::{self, OffsetForm};
use super::members::{EventAttributes, EventMembers, MemberValue};
use super::{EventError, EventExpectation};
use crate::model::TopicName;

/// Reads and checks the attributes of an event as it was kept.
pub(super) fn read_attributes(json: &str) -> Result<EventAttributes, EventError> {
    read_draft(json)?.finish()
}

/// Reads and checks an event that a producer sent to `topic`. The second part is its text with the
/// members that Event Grid adds where they are absent or null, if there was anything to add; the
/// rest is as the producer wrote it.
pub(super) fn accept_event(
    json: &str,
    topic: &TopicName,
) -> Result<(EventAttributes, Option<String>), EventError> {
    let draft = read_draft(json)?;
    let added = [
        ("topic", &draft.topic, format!("\"/topics/{topic}\"")),
        ("dataVersion", &draft.data_version, "\"\"".to_owned()),
        (
            "metadataVersion",
            &draft.metadata_version,
            "\"1\"".to_owned(),
        ),
    ];
    let completed = fill_members(json, &added);
    Ok((draft.finish()?, completed))
}

/// A member that a topic fills in.
#[derive(Default)]
enum MemberSlot {
    #[default]
    Absent,
    /// Written, but void: these bytes of the text are to be replaced.
    Void(Range<usize>),
    Filled,
}

#[derive(Default)]
struct EventGridDraft {
    attributes: EventAttributes,
    has_data: bool,
    topic: MemberSlot,
    data_version: MemberSlot,
    metadata_version: MemberSlot,
}

fn read_draft(json: &str) -> Result<EventGridDraft, EventError> {
    let members = EventMembers::parse(json)?;
    let mut draft = EventGridDraft::default();
    for (name, value) in members.iter() {
        draft
            .take_member(json, name, value)
            .map_err(|expected| value.to_error(name, expected))?;
    }
    Ok(draft)
}

impl EventGridDraft {
    fn take_member(
        &mut self,
        json: &str,
        name: &str,
        value: MemberValue<'_>,
    ) -> Result<(), EventExpectation> {
        let attributes = &mut self.attributes;
        match name {
            "id" => attributes.id = non_empty(value)?,
            "eventType" => attributes.event_type = non_empty(value)?,
            "subject" => attributes.subject = Some(value.decode_string()?.into()),
            "eventTime" => {
                let text = value
                    .decode_string()
                    .map_err(|_| EventExpectation::DateTime)?;
                let time = date_time::parse(&text, OffsetForm::ColonOptional)
                    .ok_or(EventExpectation::DateTime)?;
                attributes.time = Some(time);
            }
            "data" => self.has_data = true,
            "topic" => self.topic = slot_state(json, value, true)?,
            "dataVersion" => self.data_version = slot_state(json, value, false)?,
            "metadataVersion" => {
                self.metadata_version = slot_state(json, value, false)
                    .map_err(|_| EventExpectation::MetadataVersion)?;
                if matches!(self.metadata_version, MemberSlot::Filled)
                    && value.decode_string()? != "1"
                {
                    return Err(EventExpectation::MetadataVersion);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<EventAttributes, EventError> {
        let attributes = self.attributes;
        let missing = [
            (
                "id",
                attributes.id.is_empty(),
                EventExpectation::NonEmptyString,
            ),
            (
                "eventType",
                attributes.event_type.is_empty(),
                EventExpectation::NonEmptyString,
            ),
            (
                "subject",
                attributes.subject.is_none(),
                EventExpectation::String,
            ),
            (
                "eventTime",
                attributes.time.is_none(),
                EventExpectation::DateTime,
            ),
            ("data", !self.has_data, EventExpectation::Present),
        ];
        match missing.into_iter().find(|(_, is_missing, _)| *is_missing) {
            Some((name, _, expected)) => Err(EventError::for_member(name, expected)),
            None => Ok(attributes),
        }
    }
}

fn non_empty(value: MemberValue<'_>) -> Result<Box<str>, EventExpectation> {
    match value.decode_string() {
        Ok(text) if !text.is_empty() => Ok(text.into()),
        Err(EventExpectation::Unicode) => Err(EventExpectation::Unicode),
        _ => Err(EventExpectation::NonEmptyString),
    }
}

/// The state of a member that a topic fills in: null is void, and so may be an empty string.
fn slot_state(
    json: &str,
    value: MemberValue<'_>,
    empty_is_void: bool,
) -> Result<MemberSlot, EventExpectation> {
    if value.is_null() || (empty_is_void && value.json() == "\"\"") {
        let start = value.json().as_ptr().addr() - json.as_ptr().addr();
        return Ok(MemberSlot::Void(start..start + value.json().len()));
    }
    value.decode_string().map(|_| MemberSlot::Filled)
}

/// The text with every absent or void member filled in, unless none is.
fn fill_members(json: &str, members: &[(&str, &MemberSlot, String)]) -> Option<String> {
    let mut void: Vec<(&Range<usize>, &str)> = members
        .iter()
        .filter_map(|(_, slot, value)| match slot {
            MemberSlot::Void(range) => Some((range, value.as_str())),
            _ => None,
        })
        .collect();
    void.sort_unstable_by_key(|(range, _)| range.start);
    let mut absent = String::new();
    for (name, _, value) in members
        .iter()
        .filter(|(_, slot, _)| matches!(slot, MemberSlot::Absent))
    {
        absent.extend([",\"", name, "\":", value]);
    }
    if void.is_empty() && absent.is_empty() {
        return None;
    }
    // An event without any member is refused by its missing ones, so there is always one before the
    // comma.
    let open = json.trim_end().strip_suffix('}')?;
    let mut text = String::with_capacity(json.len() + absent.len() + 128);
    let mut copied = 0;
    for (range, value) in void {
        text.extend([&open[copied..range.start], value]);
        copied = range.end;
    }
    text.extend([&open[copied..], &absent, "}"]);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use proptest::prelude::*;

    const BASE: &str =
        r#""id":"1","eventType":"t","subject":"/s","eventTime":"2026-11-21T10:00:00Z","data":{}"#;

    fn completed(members: &str) -> Option<String> {
        let topic = TopicName::parse("orders").unwrap();
        accept_event(&format!("{{{BASE}{members}}}"), &topic)
            .unwrap()
            .1
    }

    fn refused(json: &str, expected: &str) {
        assert_eq!(
            read_attributes(json).map_err(|e| e.to_string()),
            Err(expected.to_owned()),
            "{json}"
        );
    }

    #[test]
    fn the_five_required_members_are_required() {
        let expectations = [
            ("id", "\"1\"", "a non-empty string"),
            ("eventType", "\"t\"", "a non-empty string"),
            ("subject", "\"/s\"", "a string"),
            (
                "eventTime",
                "\"2026-11-21T10:00:00Z\"",
                "an RFC 3339 date-time such as 2026-11-21T10:00:00Z",
            ),
            ("data", "{}", "to be present"),
        ];
        for (missing, _, expected) in expectations {
            for instead in [None, Some("null"), Some("7"), Some("{}")] {
                if missing == "data" && instead.is_some() {
                    continue;
                }
                let members: Vec<String> = expectations
                    .iter()
                    .filter_map(|(name, value, _)| {
                        let value = if *name == missing {
                            instead
                        } else {
                            Some(*value)
                        };
                        value.map(|value| format!("\"{name}\":{value}"))
                    })
                    .collect();
                let found = match instead {
                    Some("null") => ", found null",
                    Some("7") => ", found a number",
                    Some(_) => ", found an object",
                    None => "",
                };
                refused(
                    &format!("{{{}}}", members.join(",")),
                    &format!("{missing}: expected {expected}{found}"),
                );
            }
        }
    }

    #[test]
    fn every_malformed_member_is_named() {
        let refused_with =
            |members: &str, expected: &str| refused(&format!("{{{BASE}{members}}}"), expected);
        refused_with(
            r#","metadataVersion":"2""#,
            "metadataVersion: expected \"1\"",
        );
        refused_with(
            r#","metadataVersion":"""#,
            "metadataVersion: expected \"1\"",
        );
        refused_with(
            r#","metadataVersion":1"#,
            "metadataVersion: expected \"1\", found a number",
        );
        refused_with(
            r#","dataVersion":1"#,
            "dataVersion: expected a string, found a number",
        );
        refused_with(
            r#","topic":{}"#,
            "topic: expected a string, found an object",
        );
        refused_with(r#","id":"2""#, "id: expected at most once");
        refused(
            r#"{"id":"\ud800"}"#,
            "id: expected valid Unicode, found a lone surrogate",
        );
        refused(
            r#"{"subject":"\ud800"}"#,
            "subject: expected valid Unicode, found a lone surrogate",
        );
        refused(r#"{"id":""}"#, "id: expected a non-empty string");
        refused("{}", "id: expected a non-empty string");
    }

    #[test]
    fn absent_members_are_added_behind_the_rest() {
        let added = r#","topic":"/topics/orders","dataVersion":"","metadataVersion":"1""#;
        assert_eq!(completed(""), Some(format!("{{{BASE}{added}}}")));
        assert_eq!(
            completed(r#", "dataVersion" : "2.0" "#),
            Some(format!(
                r#"{{{BASE}, "dataVersion" : "2.0" ,"topic":"/topics/orders","metadataVersion":"1"}}"#
            ))
        );
    }

    #[test]
    fn void_members_are_filled_in_where_they_stand() {
        assert_eq!(
            completed(r#","metadataVersion": null ,"x":1,"topic":"","dataVersion":null"#),
            Some(format!(
                r#"{{{BASE},"metadataVersion": "1" ,"x":1,"topic":"/topics/orders","dataVersion":""}}"#
            ))
        );
    }

    #[test]
    fn a_complete_event_is_not_copied() {
        assert_eq!(
            completed(r#","topic":"/mine","dataVersion":"1","metadataVersion":"1""#),
            None
        );
    }

    /// Empty subject, null data and an offset without colon are accepted.
    #[test]
    fn empty_subject_null_data_and_bare_offset_are_accepted() {
        let json = r#"{"id":"1","eventType":"t","subject":"","eventTime":"2026-11-21T11:00:00+0100","data":null}"#;
        let expected = EventAttributes {
            id: "1".into(),
            event_type: "t".into(),
            subject: Some("".into()),
            time: Some(Timestamp::from_millis(1_795_255_200_000)),
            ..EventAttributes::default()
        };
        assert_eq!(
            read_attributes(json).map_err(|e| e.to_string()),
            Ok(expected)
        );
    }

    proptest! {
        #[test]
        fn completing_keeps_every_other_member(
            extra in proptest::collection::btree_map("[a-c\"\\\\é]{1,3}", ".{0,5}", 0..4),
            topic in proptest::option::of("null|\"\"|\"/mine\""),
            version in proptest::option::of("null|\"1\""),
        ) {
            let json = |text: &str| serde_json::Value::from(text).to_string();
            let mut members: Vec<String> =
                extra.iter().map(|(name, value)| format!(", {} :{} ", json(name), json(value))).collect();
            members.extend(topic.map(|value| format!(",\"topic\":{value}")));
            members.extend(version.map(|value| format!(",\"metadataVersion\":{value}")));
            let text = completed(&members.concat()).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&value["metadataVersion"], "1");
            prop_assert!(value["topic"] == "/mine" || value["topic"] == "/topics/orders");
            for (name, expected) in &extra {
                prop_assert_eq!(&value[name], expected);
            }
            prop_assert!(matches!(accept_event(&text, &TopicName::parse("x").unwrap()), Ok((_, None))));
        }
    }
}
