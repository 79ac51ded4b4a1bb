//! The queue ports over the embedded store.

mod receive;

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::{CarriedEvents, SQS_VISIBILITY_SECS_MAX, Timestamp};
use posthaste_core::pressure::DueOfGroup;
use posthaste_ports::{
    Clock, ErrorKind, GroupCount, MessageId, OutgoingMessage, PortError, QueueCounts, QueueName,
    QueueReceiver, QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
    WithheldFate, WithheldMessages, validate,
};

use super::inbox::{CommitWork, NewMessage};
use super::index::{ArrivingMessage, ChangeRefused, MessageReceive, StoreTime};
use super::queue_state::QueueState;
use super::record::carried_events;
use super::shared::{SharedStore, StoreHandle, now_of};
use super::store::commit_result;

/// Longest time a message is hidden in all since it was received.
const HIDDEN_MAX: Duration = Duration::from_secs(SQS_VISIBILITY_SECS_MAX as u64);

/// Groups that are looked at while the queue is locked: some microseconds.
const GROUPS_AT_ONCE: usize = 1024;

/// One queue of a data folder; clones share it.
#[derive(Debug, Clone)]
pub struct LocalQueue<C> {
    pub(super) handle: Arc<StoreHandle>,
    pub(super) clock: C,
    pub(super) name: QueueName,
}

impl<C: Clock> LocalQueue<C> {
    fn shared(&self) -> &SharedStore {
        &self.handle.shared
    }

    fn queue_state(&self) -> &QueueState {
        self.shared().queue(self.name)
    }

    fn now(&self) -> StoreTime {
        now_of(&self.clock)
    }

    /// Stores messages, waits until they are durable, and returns the first sequence number.
    async fn store_messages(
        &self,
        doing: &'static str,
        messages: Vec<NewMessage>,
        is_withheld: bool,
    ) -> Result<u64, PortError> {
        let shared = self.shared();
        let sizes = messages.iter().map(|message| message.body.len());
        let bytes = sizes.clone().sum();
        let _counted = match self.name {
            QueueName::Deliveries | QueueName::SlowDeliveries => {
                shared.counters.count_publish(sizes, self.clock.monotonic())
            }
            QueueName::DeadLetters | QueueName::Redrive | QueueName::Records => {
                shared.counters.count_write()
            }
        };
        let room = shared.inbox.reserve_room(bytes).await;
        commit_result(
            doing,
            shared
                .inbox
                .push(
                    CommitWork::Messages {
                        messages,
                        instead_of: None,
                        is_withheld,
                    },
                    room,
                )
                .await,
        )
        .map(|done| done.number)
    }

    /// Checks messages that are sent all or none.
    fn validated_messages(
        &self,
        doing: &'static str,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<NewMessage>, PortError> {
        for entry in &entries {
            validate::message(entry).map_err(|refusal| refusal.into_port_error(doing))?;
        }
        let now = self.now();
        Ok(entries
            .into_iter()
            .map(|entry| new_message(self.name, entry, now))
            .collect())
    }

    fn parse(&self, receipt: &ReceiptHandle) -> Option<MessageReceive> {
        parse_receipt(self.shared().opening, receipt)
    }
}

fn new_message(to: QueueName, message: OutgoingMessage, now: StoreTime) -> NewMessage {
    let OutgoingMessage { body, group, delay } = message;
    let due = now.wall + delay;
    NewMessage {
        to,
        group,
        sent_at: now.wall,
        due,
        body,
    }
}

impl<C: Clock> QueueSender for LocalQueue<C> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        const DOING: &str = "send messages";
        validate::batch(&entries).map_err(|refusal| refusal.into_port_error(DOING))?;
        let now = self.now();
        let checks: Vec<Result<(), PortError>> = entries
            .iter()
            .map(|entry| validate::message(entry).map_err(|refusal| refusal.into_port_error(DOING)))
            .collect();
        let good = entries
            .into_iter()
            .zip(&checks)
            .filter(|(_, check)| check.is_ok());
        let messages: Vec<_> = good
            .map(|(entry, _)| new_message(self.name, entry, now))
            .collect();
        if messages.is_empty() {
            // All were refused.
            return Ok(checks
                .into_iter()
                .map(|check| check.map(|()| MessageId("".into())))
                .collect());
        }
        let mut sequence = self.store_messages(DOING, messages, false).await?;
        Ok(checks
            .into_iter()
            .map(|check| {
                check.map(|()| {
                    sequence += 1;
                    message_id(self.shared().folder_id, sequence - 1)
                })
            })
            .collect())
    }

    fn sends_whole(&self) -> bool {
        true
    }

    async fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> Result<(), PortError> {
        const DOING: &str = "send messages whole";
        for successor in &beside {
            validate::message(&successor.message)
                .map_err(|refusal| refusal.into_port_error(DOING))?;
        }
        let mut messages = self.validated_messages(DOING, entries)?;
        let now = self.now();
        let others = beside
            .into_iter()
            .map(|Successor { to, message }| new_message(to, message, now));
        messages.extend(others);
        self.store_messages(DOING, messages, false).await.map(drop)
    }

    async fn withhold(&self, entries: Vec<OutgoingMessage>) -> Result<WithheldMessages, PortError> {
        const DOING: &str = "withhold messages";
        let messages = self.validated_messages(DOING, entries)?;
        let places: Vec<_> = messages
            .iter()
            .map(|message| WithheldMessage {
                group: message.group.clone().unwrap_or_default(),
                due: message.due,
                bytes: message.body.len(),
                carried: carried_events(message.to, &message.body, message.sent_at),
            })
            .collect();
        let queue = self.clone();
        let stored = async move {
            let first = queue.store_messages(DOING, messages, true).await?;
            Ok(withheld_messages(queue.handle, queue.name, first, places))
        };
        // In a task of its own: if the caller is gone, the result is dropped, which deletes the
        // messages.
        let stored = tokio::spawn(stored).await;
        stored.map_err(|error| PortError::with_cause(DOING, ErrorKind::Other, error))?
    }
}

/// Messages that are shown before others may use the queue again: so many take about a millisecond.
const SHOWN_AT_ONCE: usize = 1000;

/// The place of a message that is withheld, in its queue.
#[derive(Debug)]
struct WithheldMessage {
    group: String,
    due: Timestamp,
    /// The size of its body.
    bytes: usize,
    carried: CarriedEvents,
}

/// Messages with numbers from `first`, each with its place.
fn withheld_messages(
    handle: Arc<StoreHandle>,
    name: QueueName,
    first: u64,
    places: Vec<WithheldMessage>,
) -> WithheldMessages {
    WithheldMessages::new(move |fate| {
        let shared = &handle.shared;
        let numbered = (first..).zip(places);
        match fate {
            WithheldFate::Deleted => {
                numbered.for_each(|(sequence, _)| shared.inbox.queue_delete(sequence));
            }
            WithheldFate::Shown => {
                let now = (shared.now)();
                let mut numbered = numbered.peekable();
                while numbered.peek().is_some() {
                    shared.queue(name).update_index(now, |index| {
                        for (sequence, place) in numbered.by_ref().take(SHOWN_AT_ONCE) {
                            let arrived = ArrivingMessage {
                                sequence,
                                group: &place.group,
                                due: place.due,
                                bytes: place.bytes,
                                carried: place.carried,
                            };
                            index.insert(arrived, now.wall);
                        }
                    });
                }
            }
        }
    })
}

impl<C: Clock> QueueReceiver for LocalQueue<C> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        self.long_poll(request).await
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        let Some(received) = self.parse(receipt) else {
            return Ok(());
        };
        if self.queue_state().settle(received) {
            self.shared().inbox.queue_delete(received.sequence);
        }
        Ok(())
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        const DOING: &str = "replace a message";
        for successor in &successors {
            validate::message(&successor.message)
                .map_err(|refusal| refusal.into_port_error(DOING))?;
        }
        let received = self
            .parse(receipt)
            .ok_or_else(|| PortError::new(DOING, ErrorKind::NotFound))?;
        let shared = self.shared();
        let now = self.now();
        let messages: Vec<_> = successors
            .into_iter()
            .map(|successor| new_message(successor.to, successor.message, now))
            .collect();
        let bytes = messages.iter().map(|message| message.body.len()).sum();
        let _counted = shared.counters.count_write();
        let room = shared.inbox.reserve_room(bytes).await;
        // From here to the push nothing may wait: a caller that is dropped would leave the message
        // held.
        if !self
            .queue_state()
            .update_index(now, |index| index.hold_message(now, received))
        {
            return Err(PortError::new(DOING, ErrorKind::NotFound));
        }
        let instead_of = Some((self.name, received.sequence));
        commit_result(
            DOING,
            shared
                .inbox
                .push(
                    CommitWork::Messages {
                        messages,
                        instead_of,
                        is_withheld: false,
                    },
                    room,
                )
                .await,
        )
        .map(drop)
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        const DOING: &str = "change a visibility timeout";
        validate::visibility_timeout(visibility)
            .map_err(|refusal| refusal.into_port_error(DOING))?;
        let now = self.now();
        let received = self
            .parse(receipt)
            .ok_or_else(|| PortError::new(DOING, ErrorKind::NotFound))?;
        let changed = self.queue_state().update_index(now, |index| {
            index.change_visibility(now, received, visibility, HIDDEN_MAX)
        });
        changed.map_err(|refused| match refused {
            ChangeRefused::TooLong => {
                validate::LimitRefusal::Visibility(visibility).into_port_error(DOING)
            }
            ChangeRefused::Stale => PortError::new(DOING, ErrorKind::NotFound),
        })
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        Ok(self.queue_state().index.lock().counts(self.now()))
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        let mut all = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            // The lock is held for a slice, so that no sender waits for the rest.
            let mut index = self.queue_state().index.lock();
            let (some, rest) = index.due_from(self.now(), from, GROUPS_AT_ONCE);
            drop(index);
            all.extend(some);
            next = rest;
        }
        Ok(Some(all))
    }

    async fn due_counts(&self, groups: &[String]) -> Result<Option<Vec<u64>>, PortError> {
        let now = self.now();
        let mut index = self.queue_state().index.lock();
        let due = groups.iter().map(|group| index.due_count(now, group));
        Ok(Some(due.collect()))
    }

    async fn waiting_counts(
        &self,
        groups: &[String],
    ) -> Result<Option<Vec<GroupCount>>, PortError> {
        let now = self.now();
        Ok(Some(
            self.queue_state().index.lock().waiting_counts(groups, now),
        ))
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        let mut all = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            // The lock is held for a slice, so that no sender waits for the rest.
            let mut index = self.queue_state().index.lock();
            let (some, rest) = index.waiting_from(self.now(), from, GROUPS_AT_ONCE);
            drop(index);
            all.extend(some);
            next = rest;
        }
        Ok(Some(all))
    }
}

/// The id of a message: the folder it was sent in and its number there.
fn message_id(folder_id: u64, sequence: u64) -> MessageId {
    MessageId(format!("{folder_id:016x}-{sequence:016x}").into())
}

/// The receipt of one receive: receive counts start again with every opening of the folder.
fn format_receipt(opening: u64, received: MessageReceive) -> ReceiptHandle {
    ReceiptHandle(format!("{opening:x}.{:x}.{:x}", received.sequence, received.count).into())
}

/// The receive that a receipt of this opening names.
fn parse_receipt(opening: u64, receipt: &ReceiptHandle) -> Option<MessageReceive> {
    let mut numbers = receipt
        .0
        .split('.')
        .map(|number| u64::from_str_radix(number, 16));
    let receipt_opening = numbers.next()?.ok()?;
    let sequence = numbers.next()?.ok()?;
    let count = u32::try_from(numbers.next()?.ok()?).ok()?;
    let is_valid = receipt_opening == opening && numbers.next().is_none();
    is_valid.then_some(MessageReceive { sequence, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A receipt of another opening, or a text that is no receipt, stands for nothing.
    #[test]
    fn foreign_or_malformed_receipts_are_rejected() {
        let received = MessageReceive {
            sequence: 77,
            count: 3,
        };
        let receipt = format_receipt(5, received);
        assert_eq!(&*receipt.0, "5.4d.3");
        assert_eq!(parse_receipt(5, &receipt), Some(received));
        assert_eq!(parse_receipt(6, &receipt), None);
        for text in [
            "",
            ".",
            "5",
            "5.4d",
            "5.4d.3.0",
            "5.4d.100000000",
            "x.y.z",
            "5..3",
            "no such receipt",
        ] {
            assert_eq!(
                parse_receipt(5, &ReceiptHandle(text.into())),
                None,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_receipt_survives_writing_and_reading(opening: u64, sequence: u64, count: u32) {
            let received = MessageReceive { sequence, count };
            prop_assert_eq!(parse_receipt(opening, &format_receipt(opening, received)), Some(received));
        }
    }
}
