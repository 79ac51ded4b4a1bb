//! Invocations by the event source mapping of a queue, and their responses.
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;

use lambda_runtime::{Context, Error};
use posthaste_ports::{BatchResponse, Clock, MessageId};
use serde::Serialize;

use super::deadline;
use super::invocations::{InvocationFailure, answer_each, contain_panic};
use super::sqs_event::{EventMessageIds, SortedRecords, SqsBatch, SqsEvent};

mod returned_age;

/// A function that works on messages of a queue.
pub trait BatchHandler: Send + Sync + 'static {
    /// Works on a batch, returns by `deadline`, a time of the clock's `monotonic`, and names the
    /// messages for which nothing durable was done. The time to write metrics and to respond to
    /// Lambda is already subtracted from the deadline. Work that takes longer than
    /// [`LATE_MAX`](deadline::LATE_MAX) beyond it is dropped, and every message of the batch is
    /// handed back.
    fn handle(
        &self,
        batch: SqsBatch,
        deadline: Duration,
    ) -> impl Future<Output = BatchResponse> + Send;
}

/// Responds to invocations of `function` by an SQS event source mapping, one after the other, until
/// the Runtime API is gone. Its metrics bear the function's name.
///
/// The mapping must have `ReportBatchItemFailures`. If the handler panics, every message of its
/// batch is reported.
pub async fn run_batches<H: BatchHandler, C: Clock>(
    function: &'static str,
    handler: H,
    clock: C,
) -> Result<(), Error> {
    answer_each(clock.clone(), async |event, context: &Context| {
        answer_invocation(function, &handler, &clock, event, context).await
    })
    .await
}

/// Responds to one invocation by the mapping.
pub(super) async fn answer_invocation<H: BatchHandler, C: Clock>(
    function: &'static str,
    handler: &H,
    clock: &C,
    event: SqsEvent,
    context: &Context,
) -> Result<SqsBatchResponse, InvocationFailure> {
    let deadline = deadline::from_context(context, clock);
    let SortedRecords { batch, ids } = event.sort_records()?;
    let response = if batch.messages.is_empty() {
        Some(BatchResponse::default())
    } else {
        run_handler(handler, clock, batch, deadline).await
    };
    // A message that the handler replaced before it ended is deleted; reporting it as well does
    // nothing.
    let response = response.unwrap_or_else(|| BatchResponse {
        failures: ids.all.clone(),
    });
    let response = SqsBatchResponse::new(&ids, &response);
    returned_age::set_gauge(
        function,
        returned_age::oldest_age(&event, &response.reported_ids(), clock.now()),
    );
    Ok(response)
}

/// The handler's response; `None` if it panics, or is too late.
async fn run_handler<H: BatchHandler, C: Clock>(
    handler: &H,
    clock: &C,
    batch: SqsBatch,
    deadline: Duration,
) -> Option<BatchResponse> {
    let work = contain_panic(async { handler.handle(batch, deadline).await });
    let left = deadline.saturating_sub(clock.monotonic()) + deadline::LATE_MAX;
    tokio::select! {
        biased;
        response = work => response.ok(),
        () = clock.sleep(left) => {
            tracing::error!("the handler has not answered in time, its messages are handed back");
            None
        }
    }
}

/// The messages that the mapping must not delete.
///
/// An id that is empty, or not one of the event's, makes Lambda take the whole batch as failed,
/// finished messages included. So the ids here are copied from the event, never from the handler's
/// response.
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
    /// Reports the records that were not understood and those that the handler names, each once, in
    /// the order of the event.
    fn new(ids: &EventMessageIds, response: &BatchResponse) -> Self {
        let mut failed: HashSet<&MessageId> =
            response.failures.iter().chain(&ids.refused).collect();
        let failures = ids.all.iter().filter(|id| failed.remove(id));
        let failures = failures.map(|id| BatchItemFailure {
            item_identifier: id.0.to_string(),
        });
        Self {
            batch_item_failures: failures.collect(),
        }
    }

    /// The ids that are reported.
    fn reported_ids(&self) -> HashSet<&str> {
        self.batch_item_failures
            .iter()
            .map(|failure| failure.item_identifier.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::model::Timestamp;
    use posthaste_system::SystemClock;
    use posthaste_testkit::ManualClock;

    /// Returns after this time that all is well.
    struct Answers(ManualClock, Duration);

    impl BatchHandler for Answers {
        async fn handle(&self, _: SqsBatch, deadline: Duration) -> BatchResponse {
            assert_eq!(deadline, Duration::from_secs(115));
            self.0.sleep(self.1).await;
            BatchResponse::default()
        }
    }

    fn event() -> SqsEvent {
        let record = serde_json::json!({
            "messageId": "a", "receiptHandle": "r", "body": "b",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:1:deliveries",
            "attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183" },
        });
        serde_json::from_str(&serde_json::json!({ "Records": [record] }).to_string()).unwrap()
    }

    /// The response to an invocation with two minutes, and its time.
    async fn check(handler_secs: u64, expected: &str, expected_secs: u64) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let handler = Answers(clock.clone(), Duration::from_secs(handler_secs));
        let mut context = Context::default();
        context.deadline = (clock.now() + Duration::from_mins(2)).as_millis();
        let ticks = async {
            while clock.advance_to_next().is_some() {
                tokio::task::yield_now().await;
            }
        };
        let answer = tokio::select! {
            biased;
            answer = answer_invocation("deliver", &handler, &clock, event(), &context) => answer.unwrap(),
            () = ticks => panic!("nobody waits for the clock"),
        };
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        assert_eq!(clock.monotonic(), Duration::from_secs(expected_secs));
    }

    #[tokio::test]
    async fn a_handler_that_comes_a_little_late_is_heard() {
        check(114, r#"{"batchItemFailures":[]}"#, 114).await;
        check(116, r#"{"batchItemFailures":[]}"#, 116).await;
    }

    /// A handler that never ends has its messages handed back before Lambda ends it.
    #[tokio::test]
    async fn silent_handler_has_its_messages_handed_back_in_time() {
        check(
            600,
            r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#,
            117,
        )
        .await;
    }

    /// A handler that is always ready for more, as the response of an endpoint that never stops
    /// sending. It ends by itself, so that a test that fails does not hang.
    struct Floods;

    impl BatchHandler for Floods {
        async fn handle(&self, _: SqsBatch, _: Duration) -> BatchResponse {
            tokio::time::advance(deadline::LATE_MAX + Duration::from_secs(1)).await;
            for _ in 0..1_000_000 {
                tokio::task::coop::consume_budget().await;
            }
            BatchResponse::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handler_that_is_always_ready_is_given_up_in_time() {
        let context = Context::default();
        let answer = answer_invocation("deliver", &Floods, &SystemClock, event(), &context).await;
        assert_eq!(
            serde_json::to_string(&answer.unwrap()).unwrap(),
            r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#
        );
    }

    fn check_answer(event: &[&str], refused: &[&str], failures: &[&str], expected: &str) {
        let ids = |names: &[&str]| names.iter().map(|name| MessageId((*name).into())).collect();
        let answer = SqsBatchResponse::new(
            &EventMessageIds {
                all: ids(event),
                refused: ids(refused),
            },
            &BatchResponse {
                failures: ids(failures),
            },
        );
        assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
    }

    #[test]
    fn success_of_all_messages_is_an_empty_list() {
        check_answer(&["a", "b"], &[], &[], r#"{"batchItemFailures":[]}"#);
    }

    #[test]
    fn failed_and_unreadable_messages_are_reported() {
        check_answer(
            &["a", "b", "c"],
            &["a"],
            &["c"],
            r#"{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"c"}]}"#,
        );
    }

    #[test]
    fn an_id_is_answered_once() {
        check_answer(
            &["a", "a"],
            &["a"],
            &["a", "a"],
            r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#,
        );
    }

    #[test]
    fn an_id_that_was_not_in_the_event_is_never_answered() {
        check_answer(&["a"], &[], &["", "b"], r#"{"batchItemFailures":[]}"#);
    }
}
