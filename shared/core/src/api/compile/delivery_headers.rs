//! Custom headers: how many, which names, and one value each.

use std::collections::HashSet;

use super::problem::{SettingsError, SettingsProblem, count_in, settings_error};
use crate::api::DeliveryHeaderSettings;
use crate::model::{BatchPolicy, DELIVERY_HEADERS_MAX, DeliveryHeader, DeliveryHeaderError};

/// Checks the headers. `batching` decides whether a value may be taken from the event: of several
/// events there is no one value.
pub(super) fn delivery_headers(
    settings: &[DeliveryHeaderSettings],
    batching: BatchPolicy,
) -> Result<Vec<DeliveryHeader>, SettingsError> {
    count_in("deliveryHeaders", settings.len(), 0, DELIVERY_HEADERS_MAX)?;
    let mut names = HashSet::new();
    let mut headers = Vec::with_capacity(settings.len());
    for (index, written) in settings.iter().enumerate() {
        let member = format!("deliveryHeaders[{index}]");
        let header = delivery_header(&member, written, batching)?;
        if !names.insert(header.name().clone()) {
            return Err(settings_error(
                format!("{member}.name"),
                SettingsProblem::HeaderTwice,
            ));
        }
        headers.push(header);
    }
    Ok(headers)
}

fn delivery_header(
    member: &str,
    written: &DeliveryHeaderSettings,
    batching: BatchPolicy,
) -> Result<DeliveryHeader, SettingsError> {
    match (&written.value, &written.from_event) {
        (Some(value), None) if value.is_masked() => Err(settings_error(
            format!("{member}.value"),
            SettingsProblem::NothingMasked,
        )),
        (Some(value), None) => {
            DeliveryHeader::with_value(&written.name, value.expose(), written.is_secret)
                .map_err(|error| header_error(member, error))
        }
        (None, Some(_)) if written.is_secret => Err(settings_error(
            format!("{member}.isSecret"),
            SettingsProblem::SecretFromEvent,
        )),
        (None, Some(_)) if batching.request_limits().items_max > 1 => Err(settings_error(
            format!("{member}.fromEvent"),
            SettingsProblem::BatchedFromEvent,
        )),
        (None, Some(pointer)) => DeliveryHeader::from_event(&written.name, pointer)
            .map_err(|error| header_error(member, error)),
        (Some(_), Some(_)) | (None, None) => Err(settings_error(member, SettingsProblem::OneValue)),
    }
}

fn header_error(member: &str, error: DeliveryHeaderError) -> SettingsError {
    let part = match error {
        DeliveryHeaderError::Name | DeliveryHeaderError::Reserved => "name",
        DeliveryHeaderError::Pasted(_)
        | DeliveryHeaderError::ValueLength(_)
        | DeliveryHeaderError::Value => "value",
        DeliveryHeaderError::Pointer(_) => "fromEvent",
    };
    settings_error(format!("{member}.{part}"), SettingsProblem::Header(error))
}
