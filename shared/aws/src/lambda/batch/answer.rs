//! The answer to an event source mapping with `ReportBatchItemFailures`.
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::collections::HashSet;

use posthaste_ports::queue::{BatchResponse, MessageId};
use serde::Serialize;

use super::event::Ids;

/// The messages that the mapping must not delete.
///
/// An id that is empty, or not one of the event's, makes Lambda take the whole batch as failed, finished
/// messages included. So the ids here are copied from the event, never from the handler's answer.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SqsBatchResponse {
    batch_item_failures: Vec<BatchItemFailure>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchItemFailure {
    item_identifier: String,
}

impl SqsBatchResponse {
    /// Reports the records that were not understood and those that the handler names, each once, in the order
    /// of the event.
    pub(super) fn new(ids: &Ids, response: &BatchResponse) -> Self {
        let mut failed: HashSet<&MessageId> = response.failures.iter().chain(&ids.refused).collect();
        let failures = ids.all.iter().filter(|id| failed.remove(id));
        Self {
            batch_item_failures: failures
                .map(|id| BatchItemFailure { item_identifier: id.0.clone() })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: &[&str], refused: &[&str], failures: &[&str], expected: &str) {
        let ids = |names: &[&str]| names.iter().map(|name| MessageId((*name).to_owned())).collect();
        let answer = SqsBatchResponse::new(
            &Ids { all: ids(event), refused: ids(refused) },
            &BatchResponse { failures: ids(failures) },
        );
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
    }

    #[test]
    fn nothing_failed_is_an_empty_list() {
        check(&["a", "b"], &[], &[], r#"{"batchItemFailures":[]}"#);
    }

    #[test]
    fn what_failed_and_what_was_not_understood_is_reported() {
        check(
            &["a", "b", "c"],
            &["a"],
            &["c"],
            r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}"#,
        );
    }

    #[test]
    fn an_id_is_answered_once() {
        check(&["a", "a"], &["a"], &["a", "a"], r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#);
    }

    #[test]
    fn an_id_that_was_not_in_the_event_is_never_answered() {
        check(&["a"], &[], &["", "b"], r#"{"batchItemFailures":[]}"#);
    }
}
