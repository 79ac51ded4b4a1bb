//! Schemas: which one a subscription's events are sent in, and how; which topic has an input
//! mapping, and what a field of it may be.

use super::problem::{SettingsError, SettingsProblem, settings_error};
use crate::api::{InputMappingSettings, JsonFieldSettings, JsonFieldWithDefaultSettings};
use crate::model::{
    BatchPolicy, ContentMode, EventSchema, InputMapping, MAPPED_VALUE_BYTES_MAX, MappedField,
    SourceField,
};

/// The schema of a subscription's requests: what it asks for, if the topic's events can be sent in
/// that.
pub(super) fn delivery_schema(
    input: EventSchema,
    wanted: Option<EventSchema>,
) -> Result<EventSchema, SettingsError> {
    let output = wanted.unwrap_or(input);
    if input.converts_to(output) {
        return Ok(output);
    }
    Err(settings_error(
        "deliverySchema",
        SettingsProblem::Conversion { input, output },
    ))
}

/// Binary mode is for one CloudEvent at a time.
pub(super) fn content_mode(
    wanted: ContentMode,
    schema: EventSchema,
    batching: BatchPolicy,
) -> Result<ContentMode, SettingsError> {
    if wanted == ContentMode::Binary && (batching.enabled || schema != EventSchema::CloudEvents) {
        return Err(settings_error("contentMode", SettingsProblem::BinaryMode));
    }
    Ok(wanted)
}

/// Checks a topic's mapping.
pub(super) fn input_mapping(
    schema: EventSchema,
    settings: Option<&InputMappingSettings>,
) -> Result<InputMapping, SettingsError> {
    let Some(settings) = settings else {
        return Ok(InputMapping::default());
    };
    if schema != EventSchema::Custom {
        return Err(settings_error(
            "inputMapping",
            SettingsProblem::Unmapped(schema),
        ));
    }
    Ok(InputMapping {
        id: compile_field("id", settings.id.as_ref())?,
        topic: compile_field("topic", settings.topic.as_ref())?,
        event_time: compile_field("eventTime", settings.event_time.as_ref())?,
        event_type: compile_mapped_field("eventType", settings.event_type.as_ref(), false)?,
        subject: compile_mapped_field("subject", settings.subject.as_ref(), true)?,
        data_version: compile_mapped_field("dataVersion", settings.data_version.as_ref(), true)?,
    })
}

fn compile_field(
    name: &str,
    settings: Option<&JsonFieldSettings>,
) -> Result<Option<SourceField>, SettingsError> {
    settings
        .map(|field| parse_source_field(name, &field.source_field))
        .transpose()
}

fn compile_mapped_field(
    name: &str,
    settings: Option<&JsonFieldWithDefaultSettings>,
    may_be_empty: bool,
) -> Result<MappedField, SettingsError> {
    let Some(JsonFieldWithDefaultSettings {
        source_field,
        default_value,
    }) = settings
    else {
        return Ok(MappedField::default());
    };
    if source_field.is_none() && default_value.is_none() {
        return Err(settings_error(
            format!("inputMapping.{name}"),
            SettingsProblem::NothingMapped,
        ));
    }
    if let Some(value) = default_value
        && (value.len() > MAPPED_VALUE_BYTES_MAX || value.is_empty() && !may_be_empty)
    {
        return Err(settings_error(
            format!("inputMapping.{name}.defaultValue"),
            SettingsProblem::DefaultValue { may_be_empty },
        ));
    }
    let source = source_field
        .as_ref()
        .map(|text| parse_source_field(name, text))
        .transpose()?;
    Ok(MappedField {
        source,
        default: default_value.as_deref().map(Box::from),
    })
}

fn parse_source_field(name: &str, text: &str) -> Result<SourceField, SettingsError> {
    SourceField::parse(text).map_err(|e| {
        settings_error(
            format!("inputMapping.{name}.sourceField"),
            SettingsProblem::SourceField(e),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(schema: EventSchema, settings: serde_json::Value) -> Result<InputMapping, String> {
        let settings: InputMappingSettings = serde_json::from_value(settings).unwrap();
        input_mapping(schema, Some(&settings)).map_err(|e| e.to_string())
    }

    #[test]
    fn a_mapping_is_read_as_event_grid_writes_it() {
        let mapping = compile(
            EventSchema::Custom,
            json!({
                "id": { "sourceField": "order.id" },
                "eventType": { "sourceField": "myEventTypeField", "defaultValue": "Created" },
                "subject": { "defaultValue": "DefaultSubject" },
                "dataVersion": { "defaultValue": "" },
            }),
        );
        let source = |text| SourceField::parse(text).ok();
        let expected = InputMapping {
            id: source("order.id"),
            event_type: MappedField {
                source: source("myEventTypeField"),
                default: Some("Created".into()),
            },
            subject: MappedField {
                source: None,
                default: Some("DefaultSubject".into()),
            },
            data_version: MappedField {
                source: None,
                default: Some("".into()),
            },
            ..InputMapping::default()
        };
        assert_eq!(mapping, Ok(expected));
        assert_eq!(
            input_mapping(EventSchema::CloudEvents, None),
            Ok(InputMapping::default())
        );
    }

    #[test]
    fn the_member_at_fault_is_named() {
        let check = |settings, expected: &str| {
            assert_eq!(
                compile(EventSchema::Custom, settings),
                Err(expected.to_owned())
            );
        };
        check(
            json!({ "id": { "sourceField": "" } }),
            "inputMapping.id.sourceField: expected the name of a member of at most 256 bytes and 10 levels, \
                such as order.id",
        );
        check(
            json!({ "subject": {} }),
            "inputMapping.subject: expected sourceField, defaultValue or both",
        );
        check(
            json!({ "eventType": { "defaultValue": "" } }),
            "inputMapping.eventType.defaultValue: expected 1 to 1024 bytes",
        );
        check(
            json!({ "subject": { "defaultValue": "x".repeat(1025) } }),
            "inputMapping.subject.defaultValue: expected at most 1024 bytes",
        );
        assert_eq!(
            compile(EventSchema::EventGrid, json!({})),
            Err("inputMapping: a topic of EventGrid events maps nothing, only one of Custom events does"
                .to_owned())
        );
    }

    #[test]
    fn a_pair_without_a_conversion_is_refused_by_both_names() {
        for input in EventSchema::ALL {
            assert_eq!(delivery_schema(input, None), Ok(input));
            for output in EventSchema::ALL {
                let message = format!(
                    "deliverySchema: events accepted as {input:?} cannot be sent as {output:?}"
                );
                let expected = if input.converts_to(output) {
                    Ok(output)
                } else {
                    Err(message)
                };
                assert_eq!(
                    delivery_schema(input, Some(output)).map_err(|e| e.to_string()),
                    expected
                );
            }
        }
    }

    #[test]
    fn only_one_cloud_event_at_a_time_is_binary() {
        let check = |schema, enabled, is_taken: bool| {
            let batching = BatchPolicy {
                enabled,
                ..BatchPolicy::default()
            };
            assert_eq!(
                content_mode(ContentMode::Binary, schema, batching).is_ok(),
                is_taken
            );
            assert_eq!(
                content_mode(ContentMode::Structured, schema, batching),
                Ok(ContentMode::Structured)
            );
        };
        check(EventSchema::CloudEvents, false, true);
        check(EventSchema::CloudEvents, true, false);
        check(EventSchema::EventGrid, false, false);
        check(EventSchema::Custom, false, false);
    }
}
