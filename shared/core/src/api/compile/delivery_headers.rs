//! Custom headers: how many, which names, and one value each.

use std::collections::HashSet;

use super::problem::{Problem, SettingsError, count_in, error};
use crate::api::DeliveryHeaderSettings;
use crate::attempt::{Batching, DeliveryHeader, DeliveryHeaderError};
use crate::model::DELIVERY_HEADERS_MAX;

/// Checks the headers. `batching` decides whether a value may be taken from the event: of several
/// events there is no one value.
pub(super) fn delivery_headers(
    settings: &[DeliveryHeaderSettings],
    batching: Batching,
) -> Result<Vec<DeliveryHeader>, SettingsError> {
    count_in("deliveryHeaders", settings.len(), 0, DELIVERY_HEADERS_MAX)?;
    let mut names = HashSet::new();
    let mut headers = Vec::with_capacity(settings.len());
    for (index, written) in settings.iter().enumerate() {
        let member = format!("deliveryHeaders[{index}]");
        let header = delivery_header(&member, written, batching)?;
        if !names.insert(header.name().clone()) {
            return Err(error(format!("{member}.name"), Problem::HeaderTwice));
        }
        headers.push(header);
    }
    Ok(headers)
}

fn delivery_header(
    member: &str,
    written: &DeliveryHeaderSettings,
    batching: Batching,
) -> Result<DeliveryHeader, SettingsError> {
    let at_fault = |e: DeliveryHeaderError| {
        let part = match e {
            DeliveryHeaderError::Name | DeliveryHeaderError::Reserved => "name",
            DeliveryHeaderError::Pasted(_)
            | DeliveryHeaderError::ValueLength(_)
            | DeliveryHeaderError::Value => "value",
            DeliveryHeaderError::Pointer(_) => "fromEvent",
        };
        error(format!("{member}.{part}"), Problem::Header(e))
    };
    match (&written.value, &written.from_event) {
        (Some(value), None) if value.is_masked() => {
            Err(error(format!("{member}.value"), Problem::NothingMasked))
        }
        (Some(value), None) => {
            DeliveryHeader::fixed(&written.name, value.expose(), written.is_secret)
                .map_err(at_fault)
        }
        (None, Some(_)) if written.is_secret => Err(error(
            format!("{member}.isSecret"),
            Problem::SecretFromEvent,
        )),
        (None, Some(_)) if batching.request().items_max > 1 => Err(error(
            format!("{member}.fromEvent"),
            Problem::BatchedFromEvent,
        )),
        (None, Some(pointer)) => {
            DeliveryHeader::from_event(&written.name, pointer).map_err(at_fault)
        }
        (Some(_), Some(_)) | (None, None) => Err(error(member, Problem::OneValue)),
    }
}
