//! The event schemas a topic accepts and a subscription receives.

use serde::de::IntoDeserializer;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::word::display_the_word;

/// A form of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Schema)]
pub enum EventSchema {
    /// CloudEvents 1.0 in its JSON format.
    #[default]
    CloudEvents,
    /// Azure Event Grid's own schema.
    EventGrid,
    /// Any JSON object. An input mapping says what in it is its id, type, subject, time and
    /// version.
    Custom,
}

display_the_word!(EventSchema);

impl EventSchema {
    /// Every schema.
    pub const ALL: [Self; 3] = [Self::CloudEvents, Self::EventGrid, Self::Custom];

    /// Reads the name of a schema, as it is written everywhere. `None` if a newer program wrote it.
    pub fn parse(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// Whether events accepted in this schema can be sent in that one: Event Grid's table.
    /// <https://learn.microsoft.com/azure/event-grid/event-schema-compatibility>
    pub fn converts_to(self, output: Self) -> bool {
        match self {
            Self::CloudEvents => output == Self::CloudEvents,
            Self::EventGrid => output != Self::Custom,
            Self::Custom => true,
        }
    }
}

/// How one CloudEvent lies in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentMode {
    /// The whole event is the body.
    #[default]
    Structured,
    /// Attributes are `ce-*` headers, the body is the data alone.
    Binary,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_converted_where_event_grid_converts_them() {
        let check = |input: EventSchema, expected: [bool; 3]| {
            assert_eq!(
                EventSchema::ALL.map(|output| input.converts_to(output)),
                expected,
                "{input:?}"
            );
        };
        check(EventSchema::CloudEvents, [true, false, false]);
        check(EventSchema::EventGrid, [true, true, false]);
        check(EventSchema::Custom, [true, true, true]);
    }
}
