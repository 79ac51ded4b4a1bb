//! Groups of messages that are settled together, because they share a message of records.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{self, Stream};
use posthaste_core::delivery_log::RecordText;
use posthaste_core::model::{RECORDS_MESSAGE_BYTES_MAX, TopicName};
use posthaste_ports::Clock;
use posthaste_services::timeout;
use tokio::sync::mpsc;

use super::ending::MessageEnding;
use crate::invocation::Invocation;

/// Bytes of records with which a group is settled, however short it was gathered. The records of
/// one message more than that still fit into the same message of the queue, unless they have large
/// payloads.
const GROUP_BYTES_PREFERRED: usize = RECORDS_MESSAGE_BYTES_MAX - 100_000;

/// A message whose events all have a verdict, and its records of the delivery log.
#[derive(Debug)]
pub(crate) struct RecordedMessage {
    /// Index into the invocation's jobs.
    pub(crate) job: usize,
    /// The end of it. `None` if preparing that panicked: it is handed back, and its attempts were
    /// made all the same.
    pub(crate) ending: Option<MessageEnding>,
    pub(crate) records: Vec<RecordText>,
}

/// Messages that are settled together.
#[derive(Debug, Default)]
pub(crate) struct SettlingGroup {
    pub(crate) messages: Vec<RecordedMessage>,
    bytes: usize,
}

impl SettlingGroup {
    fn push(&mut self, message: RecordedMessage) {
        self.bytes += message
            .records
            .iter()
            .map(RecordText::byte_len)
            .sum::<usize>();
        self.messages.push(message);
    }

    fn is_full(&self) -> bool {
        self.bytes >= GROUP_BYTES_PREFERRED
    }

    /// The ends of its messages, and its records.
    pub(crate) fn into_parts(self) -> (Vec<MessageEnding>, Vec<RecordText>) {
        let mut endings = Vec::new();
        let mut records = Vec::new();
        for message in self.messages {
            endings.extend(message.ending);
            records.extend(message.records);
        }
        (endings, records)
    }

    /// The number of its records, by topic.
    pub(crate) fn records_by_topic<'i>(
        &self,
        invocation: &'i Invocation,
    ) -> BTreeMap<&'i TopicName, usize> {
        let mut records = BTreeMap::new();
        for message in &self.messages {
            let topic = &invocation.jobs[message.job].delivery.topic;
            *records.entry(topic).or_default() += message.records.len();
        }
        records
    }
}

/// Gathers messages into groups, until there are no more. A group ends when nothing can come any
/// more, when `gathering` is over since its first message, or when it is full.
pub(super) fn gather_groups<C: Clock>(
    clock: C,
    gathering: Duration,
    messages: mpsc::Receiver<Box<RecordedMessage>>,
) -> impl Stream<Item = SettlingGroup> {
    stream::unfold((clock, messages), move |(clock, mut messages)| async move {
        let group = next_group(&clock, gathering, &mut messages).await?;
        Some((group, (clock, messages)))
    })
}

async fn next_group(
    clock: &impl Clock,
    gathering: Duration,
    messages: &mut mpsc::Receiver<Box<RecordedMessage>>,
) -> Option<SettlingGroup> {
    let mut group = SettlingGroup::default();
    group.push(*messages.recv().await?);
    let gathered = async {
        while !group.is_full()
            && let Some(message) = messages.recv().await
        {
            group.push(*message);
        }
    };
    timeout(clock, gathering, gathered).await;
    Some(group)
}
