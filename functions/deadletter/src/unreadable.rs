//! How long a payload that cannot be read is tried for, before what is known of its event is kept without it.

use std::time::Duration;

use posthaste_core::model::{SQS_RETENTION, Timestamp};
use posthaste_ports::QueueName;

/// What is kept of a message's life for keeping it as it is, should the bucket refuse that too: a day, in
/// which it is received some 240 times (the redrive queue's visibility timeout is 6 minutes).
const KEEPING_TIME: Duration = Duration::from_hours(24);

/// What to do with a message that cannot be worked on as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It comes again.
    HandBack,
    /// Its body is kept byte for byte.
    KeepAsItIs,
}

/// What to do about a payload that the state bucket has and does not give. From the dead-letter queue the
/// message goes to the redrive queue in the end; after that one comes nothing, and SQS deletes it
/// [`SQS_RETENTION`] after it was first sent.
///
/// Decided by age and not by the receive count: on AWS that goes on counting from the queue before, so that
/// it begins above the maximum, and in the embedded queue it begins anew. The time of sending stays the first
/// one in both.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
pub(crate) fn unreadable(source: QueueName, sent_at: Timestamp, now: Timestamp) -> Unreadable {
    let is_near_its_end = now.since(sent_at) + KEEPING_TIME >= SQS_RETENTION;
    match source {
        QueueName::Redrive if is_near_its_end => Unreadable::KeepAsItIs,
        QueueName::Redrive | QueueName::Deliveries | QueueName::DeadLetters => Unreadable::HandBack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_kept_without_its_payload_only_where_it_would_be_lost_with_it() {
        let sent_at = Timestamp::from_millis(1_700_000_000_000);
        let check = |source, age: Duration, expected| {
            assert_eq!(unreadable(source, sent_at, sent_at + age), expected, "{source} {age:?}");
        };
        let days = |days| Duration::from_hours(24) * days;
        for age in [Duration::ZERO, days(1), Duration::from_hours(13 * 24 - 1)] {
            check(QueueName::Redrive, age, Unreadable::HandBack);
        }
        for age in [days(13), days(14), days(100)] {
            check(QueueName::Redrive, age, Unreadable::KeepAsItIs);
        }
        check(QueueName::DeadLetters, days(14), Unreadable::HandBack);
        // A clock that went back makes no message old.
        assert_eq!(unreadable(QueueName::Redrive, sent_at, Timestamp::EPOCH), Unreadable::HandBack);
    }
}
