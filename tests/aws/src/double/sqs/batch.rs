//! Answers to batches: what happened to each entry, in the two lists, or in neither where the
//! script says so.

use serde_json::{Value, json};

use posthaste_core::model::SQS_MESSAGE_BYTES_MAX;

use super::super::script::{EntryFault, Shown};
use super::error::Error;
use super::request::{Batch, Request};
use super::rules;

/// Does `effect` for each entry that may happen, and answers as SQS does.
pub(super) fn answer<T>(
    batch: &Batch<T>,
    faults: &[EntryFault],
    mut effect: impl FnMut(&T) -> Result<Value, Error>,
) -> Result<Value, Error> {
    if batch.is_single {
        return effect(&batch.entries[0].1);
    }
    let ids: Vec<_> = batch.entries.iter().map(|(id, _)| id.as_str()).collect();
    rules::entry_ids(&ids)?;
    let mut successful = Vec::new();
    let mut failed = Vec::new();
    for (index, (id, item)) in batch.entries.iter().enumerate() {
        let fault = faults.iter().find(|fault| fault.index == index);
        let result = if fault.is_none_or(|fault| fault.happens) {
            Some(effect(item))
        } else {
            None
        };
        match (fault.map(|fault| fault.shown), result) {
            (Some(Shown::Nowhere), _) => {}
            (
                Some(Shown::Failed {
                    code,
                    is_senders_fault,
                }),
                _,
            ) => {
                failed.push(failure(id, code, is_senders_fault, "as the script says"));
            }
            (None, Some(Ok(success))) => successful.push(with_id(success, id)),
            (None, Some(Err(error))) => {
                failed.push(failure(
                    id,
                    &error.code,
                    error.is_senders_fault(),
                    &error.message,
                ));
            }
            (None, None) => unreachable!("without a fault the effect happens"),
        }
    }
    Ok(lists(successful, failed))
}

/// Refuses a batch of messages that is too long as a whole.
pub(super) fn check_size(request: &Request) -> Result<(), Error> {
    let (_, bytes) = request.subjects();
    match request {
        Request::Send(batch) if !batch.is_single && bytes > SQS_MESSAGE_BYTES_MAX => {
            Err(Error::too_long_batch(bytes))
        }
        _ => Ok(()),
    }
}

fn with_id(success: Value, id: &str) -> Value {
    let mut members = if let Value::Object(members) = success {
        members
    } else {
        serde_json::Map::new()
    };
    members.insert("Id".to_owned(), id.into());
    members.into()
}

fn failure(id: &str, code: &str, is_senders_fault: bool, message: &str) -> Value {
    json!({ "Id": id, "SenderFault": is_senders_fault, "Code": code, "Message": message })
}

/// An empty list is left out.
fn lists(successful: Vec<Value>, failed: Vec<Value>) -> Value {
    let mut answer = serde_json::Map::new();
    for (name, list) in [("Successful", successful), ("Failed", failed)] {
        if !list.is_empty() {
            answer.insert(name.to_owned(), list.into());
        }
    }
    answer.into()
}
