//! The keys of advanced filters, each of which means a part of an event.
//! <https://learn.microsoft.com/azure/event-grid/event-filtering#key>

use super::fold::fold_case;
use crate::model::{EventSchema, FILTER_KEY_CHARS_MAX, FILTER_KEY_PARTS_MAX, is_attribute_name};

/// A part of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum KeyLocation {
    /// An attribute that was read when the event was accepted.
    Attribute(KeyAttribute),
    /// A member of the event's text, by the names on the way to it.
    Member(Box<[Box<str>]>),
    /// A CloudEvent's extension attribute.
    Extension(Box<str>),
}

/// An attribute that was read when the event was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyAttribute {
    Id,
    Type,
    Source,
    Subject,
    /// A custom event's, which its envelope says.
    Topic,
    /// A custom event's, which its envelope says.
    DataVersion,
}

/// A checked key.
///
/// The event's own members are named without regard to case, as Event Grid's examples do
/// (`Subject`, `Data.key1`); what lies in `data_location` is named exactly as it is written there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilterKey(pub(crate) KeyLocation);

/// The reason why a text is not a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FilterKeyError {
    /// A name is missing between two dots, or altogether.
    #[error("expected names with a dot between each two")]
    EmptyPart,
    /// Too long.
    #[error("expected at most {FILTER_KEY_CHARS_MAX} characters")]
    TooLong,
    /// Too many names.
    #[error("expected at most {FILTER_KEY_PARTS_MAX} names")]
    TooDeep,
    /// A member that events of this schema do not have.
    #[error("an event in {0:?} has no such member; expected {known}", known = known_keys(*.0))]
    Unknown(EventSchema),
    /// A name after one that is a text in every event.
    #[error("{0} has no members; only data has")]
    NotNested(String),
}

/// The keys of a schema, as an error names them.
fn known_keys(schema: EventSchema) -> &'static str {
    match schema {
        EventSchema::CloudEvents => {
            "id, source, type, subject, specversion, another attribute's name, or data and what is in it"
        }
        EventSchema::EventGrid | EventSchema::Custom => {
            "id, topic, subject, eventType, dataVersion, or data and what is in it"
        }
    }
}

impl FilterKey {
    /// Reads a key of events in this schema.
    pub fn parse(text: &str, schema: EventSchema) -> Result<Self, FilterKeyError> {
        if text.chars().count() > FILTER_KEY_CHARS_MAX {
            return Err(FilterKeyError::TooLong);
        }
        let parts: Vec<&str> = text.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(FilterKeyError::EmptyPart);
        }
        if parts.len() > FILTER_KEY_PARTS_MAX {
            return Err(FilterKeyError::TooDeep);
        }
        let (first, rest) = parts.split_first().ok_or(FilterKeyError::EmptyPart)?;
        let name = fold_case(first);
        if name == "data" {
            return Ok(Self(data_location(rest, schema)));
        }
        match event_location(&name, schema) {
            None => Err(FilterKeyError::Unknown(schema)),
            Some(_) if !rest.is_empty() => Err(FilterKeyError::NotNested((*first).to_owned())),
            Some(place) => Ok(Self(place)),
        }
    }
}

/// A place in the data. A custom event is the data itself, as in the envelope that Event Grid lays
/// around it.
fn data_location(rest: &[&str], schema: EventSchema) -> KeyLocation {
    let own = (schema != EventSchema::Custom).then_some("data");
    KeyLocation::Member(
        own.into_iter()
            .chain(rest.iter().copied())
            .map(Box::from)
            .collect(),
    )
}

fn member_location(name: &str) -> KeyLocation {
    KeyLocation::Member([Box::from(name)].into())
}

/// The place of a member of the event itself, by its folded name.
fn event_location(name: &str, schema: EventSchema) -> Option<KeyLocation> {
    match (schema, name) {
        (_, "id") => Some(KeyLocation::Attribute(KeyAttribute::Id)),
        (_, "subject") => Some(KeyLocation::Attribute(KeyAttribute::Subject)),
        (EventSchema::CloudEvents, "type")
        | (EventSchema::EventGrid | EventSchema::Custom, "eventtype") => {
            Some(KeyLocation::Attribute(KeyAttribute::Type))
        }
        (EventSchema::CloudEvents, "source") => Some(KeyLocation::Attribute(KeyAttribute::Source)),
        (EventSchema::CloudEvents, "specversion" | "time" | "datacontenttype" | "dataschema")
        | (EventSchema::EventGrid, "topic") => Some(member_location(name)),
        (EventSchema::CloudEvents, _) => {
            is_attribute_name(name).then(|| KeyLocation::Extension(name.into()))
        }
        (EventSchema::EventGrid, "dataversion") => Some(member_location("dataVersion")),
        (EventSchema::Custom, "topic") => Some(KeyLocation::Attribute(KeyAttribute::Topic)),
        (EventSchema::Custom, "dataversion") => {
            Some(KeyLocation::Attribute(KeyAttribute::DataVersion))
        }
        (EventSchema::EventGrid | EventSchema::Custom, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: EventSchema, text: &str, expected: Result<KeyLocation, &str>) {
        let parsed = FilterKey::parse(text, schema)
            .map(|key| key.0)
            .map_err(|error| error.to_string());
        assert_eq!(parsed, expected.map_err(str::to_owned), "{text}");
    }

    fn member(names: &[&str]) -> KeyLocation {
        KeyLocation::Member(names.iter().copied().map(Box::from).collect())
    }

    #[test]
    fn the_members_of_a_schema_are_keys_in_any_case() {
        let attribute = KeyLocation::Attribute;
        for (schema, text, expected) in [
            (EventSchema::EventGrid, "ID", attribute(KeyAttribute::Id)),
            (
                EventSchema::EventGrid,
                "Subject",
                attribute(KeyAttribute::Subject),
            ),
            (
                EventSchema::EventGrid,
                "eventType",
                attribute(KeyAttribute::Type),
            ),
            (EventSchema::EventGrid, "Topic", member(&["topic"])),
            (
                EventSchema::EventGrid,
                "DataVersion",
                member(&["dataVersion"]),
            ),
            (EventSchema::CloudEvents, "id", attribute(KeyAttribute::Id)),
            (
                EventSchema::CloudEvents,
                "Source",
                attribute(KeyAttribute::Source),
            ),
            (
                EventSchema::CloudEvents,
                "type",
                attribute(KeyAttribute::Type),
            ),
            (
                EventSchema::CloudEvents,
                "subject",
                attribute(KeyAttribute::Subject),
            ),
            (
                EventSchema::CloudEvents,
                "specversion",
                member(&["specversion"]),
            ),
            (EventSchema::Custom, "id", attribute(KeyAttribute::Id)),
            (
                EventSchema::Custom,
                "EventType",
                attribute(KeyAttribute::Type),
            ),
            (EventSchema::Custom, "topic", attribute(KeyAttribute::Topic)),
            (
                EventSchema::Custom,
                "dataVersion",
                attribute(KeyAttribute::DataVersion),
            ),
            (
                EventSchema::CloudEvents,
                "comExampleOther1",
                KeyLocation::Extension("comexampleother1".into()),
            ),
        ] {
            check(schema, text, Ok(expected));
        }
    }

    #[test]
    fn data_is_reached_into_by_its_own_names() {
        check(
            EventSchema::EventGrid,
            "Data.Key1",
            Ok(member(&["data", "Key1"])),
        );
        check(
            EventSchema::CloudEvents,
            "data.a.b c.d",
            Ok(member(&["data", "a", "b c", "d"])),
        );
        check(EventSchema::CloudEvents, "data", Ok(member(&["data"])));
        check(EventSchema::Custom, "data.a.b", Ok(member(&["a", "b"])));
        check(EventSchema::Custom, "data", Ok(member(&[])));
    }

    /// A key that no event of the schema can have is refused.
    #[test]
    fn key_of_an_impossible_member_is_refused() {
        let parts = "expected names with a dot between each two";
        for text in ["", ".", "data.", ".data", "data..a"] {
            check(EventSchema::CloudEvents, text, Err(parts));
        }
        let grid = "an event in EventGrid has no such member; \
                    expected id, topic, subject, eventType, dataVersion, or data and what is in it";
        for text in [
            "source",
            "type",
            "eventTime",
            "metadataVersion",
            "x.y",
            "data_base64",
        ] {
            check(EventSchema::EventGrid, text, Err(grid));
        }
        check(
            EventSchema::EventGrid,
            "subject.x",
            Err("subject has no members; only data has"),
        );
        check(
            EventSchema::CloudEvents,
            "mine.x",
            Err("mine has no members; only data has"),
        );
        let cloud = "an event in CloudEvents has no such member; expected id, source, type, subject, \
                     specversion, another attribute's name, or data and what is in it";
        for text in ["data_base64", "my-extension", "späße", "a_b.c"] {
            check(EventSchema::CloudEvents, text, Err(cloud));
        }
    }

    #[test]
    fn the_limits_are_exact() {
        let names = |count: usize| vec!["data"; count].join(".");
        assert!(FilterKey::parse(&names(FILTER_KEY_PARTS_MAX), EventSchema::EventGrid).is_ok());
        let too_deep = FilterKey::parse(&names(FILTER_KEY_PARTS_MAX + 1), EventSchema::EventGrid);
        assert_eq!(too_deep, Err(FilterKeyError::TooDeep));
        let long = |chars: usize| format!("data.{}", "ä".repeat(chars - 5));
        assert!(FilterKey::parse(&long(FILTER_KEY_CHARS_MAX), EventSchema::EventGrid).is_ok());
        let too_long = FilterKey::parse(&long(FILTER_KEY_CHARS_MAX + 1), EventSchema::EventGrid);
        assert_eq!(too_long, Err(FilterKeyError::TooLong));
    }
}
