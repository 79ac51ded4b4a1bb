//! The time for which a payload that cannot be read is tried, before the message is kept without
//! it.

use std::time::Duration;

use posthaste_core::model::{SQS_RETENTION, Timestamp};
use posthaste_ports::QueueName;

/// The part of a message's life that is reserved for keeping the message as it is, in case the
/// bucket refuses that too: a day, in which it is received some 240 times (the redrive queue's
/// visibility timeout is 6 minutes).
const KEEPING_TIME: Duration = Duration::from_hours(24);

/// Tells whether a message is now kept byte for byte, because the state bucket has its payload and
/// does not give it. Until then it comes again. From the dead-letter queue the message goes to the
/// redrive queue in the end; after that one comes no queue, and SQS deletes the message
/// [`SQS_RETENTION`] after it was first sent.
///
/// Decided by age and not by the receive count: on AWS that goes on counting from the queue before,
/// so that it begins above the maximum, and in the embedded queue it begins at zero. The time of
/// sending stays the first one in both.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>
pub(crate) fn is_kept_unread(source: QueueName, sent_at: Timestamp, now: Timestamp) -> bool {
    source == QueueName::Redrive && now.since(sent_at) + KEEPING_TIME >= SQS_RETENTION
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message is kept without its payload only where it would be lost with it.
    #[test]
    fn message_is_kept_unread_only_where_it_would_be_lost() {
        let sent_at = Timestamp::from_millis(1_700_000_000_000);
        let check = |source, age: Duration, expected| {
            assert_eq!(
                is_kept_unread(source, sent_at, sent_at + age),
                expected,
                "{source} {age:?}"
            );
        };
        let days = |days| Duration::from_hours(24) * days;
        for age in [Duration::ZERO, days(1), Duration::from_hours(13 * 24 - 1)] {
            check(QueueName::Redrive, age, false);
        }
        for age in [days(13), days(14), days(100)] {
            check(QueueName::Redrive, age, true);
        }
        check(QueueName::DeadLetters, days(14), false);
        // A clock that went back makes no message old.
        assert!(!is_kept_unread(
            QueueName::Redrive,
            sent_at,
            Timestamp::EPOCH
        ));
    }
}
