//! Which schema a subscription's events are sent in, and how.

use super::problem::{Problem, SettingsError, error};
use crate::attempt::Batching;
use crate::model::{ContentMode, Schema};

/// The schema of a subscription's requests: what it asks for, if the topic's events can be sent in that.
pub(super) fn delivery_schema(input: Schema, wanted: Option<Schema>) -> Result<Schema, SettingsError> {
    let output = wanted.unwrap_or(input);
    if input.converts_to(output) {
        return Ok(output);
    }
    Err(error("deliverySchema", Problem::Conversion { input, output }))
}

/// Binary mode is for one CloudEvent at a time.
pub(super) fn content_mode(
    wanted: ContentMode,
    schema: Schema,
    batching: Batching,
) -> Result<ContentMode, SettingsError> {
    if wanted == ContentMode::Binary && (batching.enabled || schema != Schema::CloudEvents) {
        return Err(error("contentMode", Problem::BinaryMode));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_without_a_conversion_is_refused_by_both_names() {
        for input in Schema::ALL {
            assert_eq!(delivery_schema(input, None), Ok(input));
            for output in Schema::ALL {
                let message =
                    format!("deliverySchema: events accepted as {input:?} cannot be sent as {output:?}");
                let expected = if input.converts_to(output) { Ok(output) } else { Err(message) };
                assert_eq!(delivery_schema(input, Some(output)).map_err(|e| e.to_string()), expected);
            }
        }
    }

    #[test]
    fn only_one_cloud_event_at_a_time_is_binary() {
        let check = |schema, enabled, is_taken: bool| {
            let batching = Batching { enabled, ..Batching::default() };
            assert_eq!(content_mode(ContentMode::Binary, schema, batching).is_ok(), is_taken);
            assert_eq!(content_mode(ContentMode::Structured, schema, batching), Ok(ContentMode::Structured));
        };
        check(Schema::CloudEvents, false, true);
        check(Schema::CloudEvents, true, false);
        check(Schema::EventGrid, false, false);
        check(Schema::Custom, false, false);
    }
}
