//! The keys of advanced filters: which part of an event each means.
//! <https://learn.microsoft.com/azure/event-grid/event-filtering#key>

use super::fold::fold;
use crate::events::{Event, is_attribute_name};
use crate::model::{FILTER_KEY_CHARS_MAX, FILTER_KEY_PARTS_MAX, Schema};

/// A part of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// An attribute that was read when the event was accepted.
    Attribute(Attribute),
    /// A member of the event's text, by the names on the way to it.
    Member(Box<[Box<str>]>),
    /// A CloudEvent's extension attribute.
    Extension(Box<str>),
}

/// An attribute that was read when the event was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Attribute {
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
/// (`Subject`, `Data.key1`); what lies in `data` is named exactly as it is written there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(pub(super) Place);

/// The reason why a text is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
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
    #[error("an event in {0:?} has no such member; expected {known}", known = known(*.0))]
    Unknown(Schema),
    /// A name after one that is a text in every event.
    #[error("{0} has no members; only data has")]
    NotNested(String),
}

/// The keys of a schema, as an error names them.
fn known(schema: Schema) -> &'static str {
    match schema {
        Schema::CloudEvents => {
            "id, source, type, subject, specversion, another attribute's name, or data and what is in it"
        }
        Schema::EventGrid | Schema::Custom => {
            "id, topic, subject, eventType, dataVersion, or data and what is in it"
        }
    }
}

impl Key {
    /// Reads a key of events in this schema.
    pub fn parse(text: &str, schema: Schema) -> Result<Self, KeyError> {
        if text.chars().count() > FILTER_KEY_CHARS_MAX {
            return Err(KeyError::TooLong);
        }
        let parts: Vec<&str> = text.split('.').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(KeyError::EmptyPart);
        }
        if parts.len() > FILTER_KEY_PARTS_MAX {
            return Err(KeyError::TooDeep);
        }
        let (first, rest) = parts.split_first().ok_or(KeyError::EmptyPart)?;
        let name = fold(first);
        if name == "data" {
            return Ok(Self(data(rest, schema)));
        }
        match envelope(&name, schema) {
            None => Err(KeyError::Unknown(schema)),
            Some(_) if !rest.is_empty() => Err(KeyError::NotNested((*first).to_owned())),
            Some(place) => Ok(Self(place)),
        }
    }
}

/// A place in the data. A custom event is the data itself, as in the envelope that Event Grid lays
/// around it.
fn data(rest: &[&str], schema: Schema) -> Place {
    let own = (schema != Schema::Custom).then_some("data");
    Place::Member(
        own.into_iter()
            .chain(rest.iter().copied())
            .map(Box::from)
            .collect(),
    )
}

/// The place of a member of the event itself, by its folded name.
fn envelope(name: &str, schema: Schema) -> Option<Place> {
    let member = |name: &str| Place::Member([Box::from(name)].into());
    match (schema, name) {
        (_, "id") => Some(Place::Attribute(Attribute::Id)),
        (_, "subject") => Some(Place::Attribute(Attribute::Subject)),
        (Schema::CloudEvents, "type") | (Schema::EventGrid | Schema::Custom, "eventtype") => {
            Some(Place::Attribute(Attribute::Type))
        }
        (Schema::CloudEvents, "source") => Some(Place::Attribute(Attribute::Source)),
        (Schema::CloudEvents, "specversion" | "time" | "datacontenttype" | "dataschema")
        | (Schema::EventGrid, "topic") => Some(member(name)),
        (Schema::CloudEvents, _) => is_attribute_name(name).then(|| Place::Extension(name.into())),
        (Schema::EventGrid, "dataversion") => Some(member("dataVersion")),
        (Schema::Custom, "topic") => Some(Place::Attribute(Attribute::Topic)),
        (Schema::Custom, "dataversion") => Some(Place::Attribute(Attribute::DataVersion)),
        (Schema::EventGrid | Schema::Custom, _) => None,
    }
}

impl Attribute {
    /// The attribute of this event.
    pub(super) fn of(self, event: &Event) -> Option<&str> {
        match self {
            Self::Id => Some(event.id()),
            Self::Type => Some(event.event_type()),
            Self::Source => event.source(),
            Self::Subject => event.subject(),
            Self::Topic => event.envelope().map(|envelope| &*envelope.topic),
            Self::DataVersion => event.envelope().map(|envelope| &*envelope.data_version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Schema, text: &str, expected: Result<Place, &str>) {
        let parsed = Key::parse(text, schema)
            .map(|key| key.0)
            .map_err(|error| error.to_string());
        assert_eq!(parsed, expected.map_err(str::to_owned), "{text}");
    }

    fn member(names: &[&str]) -> Place {
        Place::Member(names.iter().copied().map(Box::from).collect())
    }

    #[test]
    fn the_members_of_a_schema_are_keys_in_any_case() {
        let attribute = Place::Attribute;
        for (schema, text, expected) in [
            (Schema::EventGrid, "ID", attribute(Attribute::Id)),
            (Schema::EventGrid, "Subject", attribute(Attribute::Subject)),
            (Schema::EventGrid, "eventType", attribute(Attribute::Type)),
            (Schema::EventGrid, "Topic", member(&["topic"])),
            (Schema::EventGrid, "DataVersion", member(&["dataVersion"])),
            (Schema::CloudEvents, "id", attribute(Attribute::Id)),
            (Schema::CloudEvents, "Source", attribute(Attribute::Source)),
            (Schema::CloudEvents, "type", attribute(Attribute::Type)),
            (
                Schema::CloudEvents,
                "subject",
                attribute(Attribute::Subject),
            ),
            (Schema::CloudEvents, "specversion", member(&["specversion"])),
            (Schema::Custom, "id", attribute(Attribute::Id)),
            (Schema::Custom, "EventType", attribute(Attribute::Type)),
            (Schema::Custom, "topic", attribute(Attribute::Topic)),
            (
                Schema::Custom,
                "dataVersion",
                attribute(Attribute::DataVersion),
            ),
            (
                Schema::CloudEvents,
                "comExampleOther1",
                Place::Extension("comexampleother1".into()),
            ),
        ] {
            check(schema, text, Ok(expected));
        }
    }

    #[test]
    fn data_is_reached_into_by_its_own_names() {
        check(
            Schema::EventGrid,
            "Data.Key1",
            Ok(member(&["data", "Key1"])),
        );
        check(
            Schema::CloudEvents,
            "data.a.b c.d",
            Ok(member(&["data", "a", "b c", "d"])),
        );
        check(Schema::CloudEvents, "data", Ok(member(&["data"])));
        check(Schema::Custom, "data.a.b", Ok(member(&["a", "b"])));
        check(Schema::Custom, "data", Ok(member(&[])));
    }

    #[test]
    fn what_an_event_cannot_have_is_refused() {
        let parts = "expected names with a dot between each two";
        for text in ["", ".", "data.", ".data", "data..a"] {
            check(Schema::CloudEvents, text, Err(parts));
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
            check(Schema::EventGrid, text, Err(grid));
        }
        check(
            Schema::EventGrid,
            "subject.x",
            Err("subject has no members; only data has"),
        );
        check(
            Schema::CloudEvents,
            "mine.x",
            Err("mine has no members; only data has"),
        );
        let cloud = "an event in CloudEvents has no such member; expected id, source, type, subject, \
                     specversion, another attribute's name, or data and what is in it";
        for text in ["data_base64", "my-extension", "späße", "a_b.c"] {
            check(Schema::CloudEvents, text, Err(cloud));
        }
    }

    #[test]
    fn the_limits_are_exact() {
        let names = |count: usize| vec!["data"; count].join(".");
        assert!(Key::parse(&names(FILTER_KEY_PARTS_MAX), Schema::EventGrid).is_ok());
        let too_deep = Key::parse(&names(FILTER_KEY_PARTS_MAX + 1), Schema::EventGrid);
        assert_eq!(too_deep, Err(KeyError::TooDeep));
        let long = |chars: usize| format!("data.{}", "ä".repeat(chars - 5));
        assert!(Key::parse(&long(FILTER_KEY_CHARS_MAX), Schema::EventGrid).is_ok());
        let too_long = Key::parse(&long(FILTER_KEY_CHARS_MAX + 1), Schema::EventGrid);
        assert_eq!(too_long, Err(KeyError::TooLong));
    }
}
