//! Event Grid's input schema mapping: the places of its members in the custom events of a topic.
//! <https://learn.microsoft.com/azure/event-grid/input-mappings>

use crate::model::limits::{SOURCE_FIELD_BYTES_MAX, SOURCE_FIELD_LEVELS_MAX};

/// The places of Event Grid's members in a custom event. A member that is not mapped is made when
/// the event is accepted: a new id, the topic's own path, the time, [`EVENT_TYPE_DEFAULT`], and an
/// empty subject and version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputMapping {
    /// `id`.
    pub id: Option<SourceField>,
    /// `topic`; the `source` of a CloudEvent.
    pub topic: Option<SourceField>,
    /// `eventTime`.
    pub event_time: Option<SourceField>,
    /// `eventType`.
    pub event_type: MappedField,
    /// `subject`.
    pub subject: MappedField,
    /// `dataVersion`.
    pub data_version: MappedField,
}

/// The type of a custom event whose topic maps none. Event Grid has no default for it; ours looks
/// like the types of our own notices.
pub const EVENT_TYPE_DEFAULT: &str = "dev.posthaste.custom";

/// A member with a source, a constant, or both: then the constant stands for events that lack the
/// source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedField {
    /// The place in the event.
    pub source: Option<SourceField>,
    /// The value if the event does not have the source.
    pub default: Option<Box<str>>,
}

/// The name of a member of the event, or with dots the way to one in nested objects. A member whose
/// name itself has a dot comes before a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceField(Box<str>);

/// Why a text is not a source field.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "expected the name of a member of at most {SOURCE_FIELD_BYTES_MAX} bytes and {SOURCE_FIELD_LEVELS_MAX} \
        levels, such as order.id"
)]
pub struct SourceFieldError;

impl SourceField {
    /// Accepts a name that is not empty and within the limits.
    pub fn parse(text: &str) -> Result<Self, SourceFieldError> {
        let levels = text.split('.').count();
        if text.is_empty()
            || text.len() > SOURCE_FIELD_BYTES_MAX
            || levels > SOURCE_FIELD_LEVELS_MAX
        {
            return Err(SourceFieldError);
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_field_is_short_and_not_empty() {
        let check =
            |text: &str, is_taken: bool| assert_eq!(SourceField::parse(text).is_ok(), is_taken);
        check("id", true);
        check("order.id", true);
        check(".", true);
        check("", false);
        check(&"x".repeat(SOURCE_FIELD_BYTES_MAX), true);
        check(&"x".repeat(SOURCE_FIELD_BYTES_MAX + 1), false);
        check(&["a"; SOURCE_FIELD_LEVELS_MAX].join("."), true);
        check(&["a"; SOURCE_FIELD_LEVELS_MAX + 1].join("."), false);
    }
}
