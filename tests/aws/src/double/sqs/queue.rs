//! A standard queue: its messages, their visibility and their handles.

mod taking;

use std::time::Duration;

use posthaste_core::model::{SQS_IN_FLIGHT_MAX, SQS_VISIBILITY_SECS_MAX, Timestamp};
use posthaste_ports::Clock;
use serde_json::{Value, json};

use super::super::digest::md5_of;
use super::error::Error;
use super::handle::Handle;
use super::request::{Change, Deletion, Outgoing};
use super::rules;

/// The account number in the URLs of the queues.
pub(crate) const ACCOUNT: &str = "000000000000";

/// The queue for messages that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// The name of the other queue.
    pub to: String,
    /// The number of receives before a message moves there.
    pub max_receive_count: u32,
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) redrive: Option<Redrive>,
    /// In the order in which they came.
    messages: Vec<Stored>,
    /// Deleted messages: a server that was unavailable then still has its copy.
    deleted: Vec<Stored>,
    numbers: u64,
    /// Most messages in flight at once.
    pub(super) in_flight_max: usize,
}

/// A message in a queue.
#[derive(Debug)]
pub(super) struct Stored {
    number: u64,
    pub(super) id: String,
    pub(super) body: String,
    pub(super) group: Option<String>,
    pub(super) sent_at: Timestamp,
    pub(super) first_received_at: Option<Timestamp>,
    pub(super) receive_count: u32,
    /// The queue it was received too often from.
    pub(super) moved_from: Option<String>,
    visible_from: Duration,
    received_at: Duration,
    /// The number of the newest receive; only its handle is good.
    receive: Option<u64>,
}

impl Queue {
    pub(super) fn new(name: &str, url: &str, redrive: Option<Redrive>) -> Self {
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            redrive,
            messages: vec![],
            deleted: vec![],
            numbers: 0,
            in_flight_max: usize::try_from(SQS_IN_FLIGHT_MAX).unwrap_or(usize::MAX),
        }
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.messages
            .iter()
            .map(|message| message.body.clone())
            .collect()
    }

    pub(super) fn send(&mut self, outgoing: &Outgoing, clock: &impl Clock) -> Result<Value, Error> {
        let body = rules::outgoing(outgoing)?.to_owned();
        let number = self.number();
        let delay = Duration::from_secs(outgoing.delay_secs.unwrap_or(0).unsigned_abs());
        let id = format!("{:08x}-0000-4000-8000-{number:012x}", number_of(&self.name));
        let answer = json!({ "MessageId": id, "MD5OfMessageBody": md5_of(body.as_bytes()) });
        self.messages.push(Stored {
            number,
            id,
            body,
            group: outgoing.group.clone(),
            sent_at: clock.now(),
            first_received_at: None,
            receive_count: 0,
            moved_from: None,
            visible_from: clock.monotonic() + delay,
            received_at: Duration::ZERO,
            receive: None,
        });
        Ok(answer)
    }

    /// A stale handle deletes nothing and is no error, as AWS documents it for standard queues.
    /// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html>
    pub(super) fn delete(&mut self, deletion: &Deletion) -> Result<Value, Error> {
        let handle = self.handle(deletion.handle.as_deref())?;
        let is_meant = |message: &mut Stored| {
            message.number == handle.message && message.receive == Some(handle.receive)
        };
        self.deleted.extend(self.messages.extract_if(.., is_meant));
        Ok(Value::Null)
    }

    pub(super) fn change_visibility(
        &mut self,
        change: &Change,
        clock: &impl Clock,
    ) -> Result<Value, Error> {
        let handle = self.handle(change.handle.as_deref())?;
        let secs = change
            .visibility_secs
            .ok_or_else(|| Error::missing("VisibilityTimeout"))?;
        rules::visibility(secs)?;
        let now = clock.monotonic();
        let message = self
            .messages
            .iter_mut()
            .find(|message| message.number == handle.message);
        let message = message.filter(|message| message.receive == Some(handle.receive));
        let message = message.ok_or_else(|| Error::stale_handle(&handle.to_string()))?;
        if message.visible_from <= now {
            return Err(Error::not_in_flight(&handle.to_string()));
        }
        let visible_from = now + Duration::from_secs(secs.unsigned_abs());
        if visible_from.saturating_sub(message.received_at)
            > Duration::from_secs(SQS_VISIBILITY_SECS_MAX.into())
        {
            return Err(Error::too_long_hidden(secs));
        }
        message.visible_from = visible_from;
        Ok(Value::Null)
    }

    pub(super) fn attributes(&self, names: &[String], clock: &impl Clock) -> Result<Value, Error> {
        let now = clock.monotonic();
        let count = |is_it: &dyn Fn(&Stored) -> bool| {
            let count = self
                .messages
                .iter()
                .filter(|message| is_it(message))
                .count();
            Value::from(count.to_string())
        };
        let known = [
            ("QueueArn", arn(&self.name).into()),
            (
                "ApproximateNumberOfMessages",
                count(&|m| m.visible_from <= now),
            ),
            (
                "ApproximateNumberOfMessagesDelayed",
                count(&|m| m.visible_from > now && m.receive.is_none()),
            ),
            (
                "ApproximateNumberOfMessagesNotVisible",
                count(&|m| m.visible_from > now && m.receive.is_some()),
            ),
        ];
        if let Some(unknown) = names
            .iter()
            .find(|name| *name != "All" && known.iter().all(|(k, _)| k != name))
        {
            return Err(Error::unknown_attribute(unknown));
        }
        let is_asked = |name: &str| names.iter().any(|asked| asked == name || asked == "All");
        let asked: serde_json::Map<_, _> = known
            .into_iter()
            .filter(|(name, _)| is_asked(name))
            .map(|(k, v)| (k.to_owned(), v))
            .collect();
        Ok(json!({ "Attributes": asked }))
    }

    /// The time at which the next hidden message becomes visible.
    pub(super) fn next_visible_from(&self, now: Duration) -> Option<Duration> {
        self.messages
            .iter()
            .map(|message| message.visible_from)
            .filter(|from| *from > now)
            .min()
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn handle(&self, text: Option<&str>) -> Result<Handle, Error> {
        let text = text.ok_or_else(|| Error::missing("ReceiptHandle"))?;
        Handle::parse(text)
            .filter(|handle| handle.queue == self.name)
            .ok_or_else(|| Error::bad_handle(text))
    }
}

/// The ARN of a queue.
pub(super) fn arn(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
}

/// Tells the ids of different queues apart.
fn number_of(name: &str) -> u32 {
    name.bytes().fold(17, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    })
}
