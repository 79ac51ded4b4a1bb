//! A gauge of how long the oldest message that an invocation hands back has been tried.
//!
//! Without it, nothing shows for hours that a function hands every message back. Lambda counts such
//! an invocation as a success, and the queue's own `ApproximateAgeOfOldestMessage` leaves out
//! messages that were received three times.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html>

use std::collections::HashSet;
use std::time::Duration;

use posthaste_core::model::Timestamp;

use crate::lambda::sqs_event::SqsEvent;

/// The time since the oldest of the messages that are handed back was first received; zero if none
/// is.
pub(super) fn oldest_age(event: &SqsEvent, returned: &HashSet<&str>, now: Timestamp) -> Duration {
    if returned.is_empty() {
        return Duration::ZERO;
    }
    event
        .first_received_at(returned)
        .map_or(Duration::ZERO, |first| now.since(first))
}

/// Sets the gauge of this function. A gauge at rest is not written, so that a function which works
/// well costs no metric.
pub(super) fn set_gauge(function: &'static str, age: Duration) {
    metrics::gauge!("OldestReturnedMessageInSeconds", "function" => function)
        .set(age.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    /// A message that was sent and first received this many seconds ago.
    fn record(id: &str, sent: u64, first_received: Option<u64>) -> Value {
        let ago = |secs: u64| (NOW.as_millis() - secs * 1000).to_string();
        json!({ "messageId": id, "attributes": {
            "SentTimestamp": ago(sent), "ApproximateFirstReceiveTimestamp": first_received.map(ago),
        } })
    }

    /// The gauge, in seconds, when these of the messages are handed back.
    fn check(records: &[Value], returned: &[&str], expected_secs: u64) {
        let event: SqsEvent =
            serde_json::from_str(&json!({ "Records": records }).to_string()).unwrap();
        let ids = returned.iter().copied().collect();
        assert_eq!(
            oldest_age(&event, &ids, NOW),
            Duration::from_secs(expected_secs),
            "{returned:?}"
        );
    }

    #[test]
    fn the_oldest_of_those_that_are_handed_back_counts() {
        let records = [
            record("a", 7, Some(7)),
            record("b", 5000, Some(4000)),
            record("c", 9000, Some(9000)),
        ];
        check(&records, &["a", "b"], 4000);
        check(&records, &["a"], 7);
        check(&records, &[], 0);
    }

    /// The delay of a message does not count where SQS says when it was first received.
    #[test]
    fn message_delay_does_not_count_when_the_first_receive_is_known() {
        check(&[record("a", 900, Some(0))], &["a"], 0);
        check(&[record("a", 900, None)], &["a"], 900);
    }

    #[test]
    fn a_message_whose_times_are_not_known_does_not_hide_another() {
        let odd = |attributes: Value| json!({ "messageId": "odd", "attributes": attributes });
        for attributes in [
            json!(null),
            json!({}),
            json!({ "SentTimestamp": "yesterday" }),
        ] {
            check(
                &[odd(attributes), record("a", 60, Some(60))],
                &["odd", "a"],
                60,
            );
        }
    }

    #[test]
    fn a_clock_that_is_behind_counts_nothing() {
        let mut ahead = record("a", 0, None);
        ahead["attributes"]["SentTimestamp"] = json!((NOW.as_millis() + 1).to_string());
        check(&[ahead], &["a"], 0);
    }
}
