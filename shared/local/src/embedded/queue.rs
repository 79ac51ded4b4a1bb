//! The queue ports over the embedded store.

mod receive;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::SQS_VISIBILITY_SECS_MAX;
use posthaste_ports::validate;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, OutgoingMessage, PortError, QueueCounts, QueueName, QueueReceiver,
    QueueSender, Receipt, ReceiveRequest, ReceivedMessage, Successor,
};

use super::inbox::{NewMessage, Work};
use super::index::{ChangeRefused, Now, Received};
use super::queue_state::QueueState;
use super::shared::{Handle, Shared, now_of};
use super::store::answer;

/// Longest time a message is hidden in all since it was received.
const HIDDEN_MAX: Duration = Duration::from_secs(SQS_VISIBILITY_SECS_MAX as u64);

/// One queue of a data folder; clones share it.
#[derive(Clone)]
pub struct LocalQueue<C> {
    handle: Arc<Handle>,
    clock: C,
    name: QueueName,
}

impl<C> fmt::Debug for LocalQueue<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalQueue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Clock> LocalQueue<C> {
    pub(super) fn new(handle: Arc<Handle>, clock: C, name: QueueName) -> Self {
        Self { handle, clock, name }
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    fn queue(&self) -> &QueueState {
        self.shared().queue(self.name)
    }

    fn now(&self) -> Now {
        now_of(&self.clock)
    }

    /// Stores messages and waits until they are durable: the first sequence number.
    async fn store(&self, doing: &'static str, messages: Vec<NewMessage>) -> Result<u64, PortError> {
        let shared = self.shared();
        let sizes = messages.iter().map(|message| message.body.len());
        let bytes = sizes.clone().sum();
        let _counted = match self.name {
            QueueName::Deliveries => shared.counters.publish(sizes, self.clock.monotonic()),
            QueueName::DeadLetters | QueueName::Redrive => shared.counters.write(),
        };
        let room = shared.inbox.room(bytes).await;
        answer(doing, shared.inbox.push(Work::Messages { messages, instead_of: None }, room).await)
    }

    fn parse(&self, receipt: &Receipt) -> Option<Received> {
        text::parse_receipt(self.shared().opening, receipt)
    }
}

fn new_message(to: QueueName, message: OutgoingMessage, now: Now) -> NewMessage {
    let OutgoingMessage { body, group, delay_secs } = message;
    let due = now.wall + Duration::from_secs(delay_secs.into());
    NewMessage { to, group, sent_at: now.wall, due, body }
}

impl<C: Clock> QueueSender for LocalQueue<C> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        const DOING: &str = "send messages";
        validate::batch(&entries).map_err(|refusal| refusal.at(DOING))?;
        let now = self.now();
        let checks =
            entries.iter().map(|entry| validate::message(entry).map_err(|refusal| refusal.at(DOING)));
        let checks: Vec<Result<(), PortError>> = checks.collect();
        let good = entries.into_iter().zip(&checks).filter(|(_, check)| check.is_ok());
        let messages: Vec<_> = good.map(|(entry, _)| new_message(self.name, entry, now)).collect();
        if messages.is_empty() {
            return Ok(checks
                .into_iter()
                .map(|refused| refused.map(|()| MessageId(String::new())))
                .collect());
        }
        let mut sequence = self.store(DOING, messages).await?;
        let mut next_id = |()| {
            sequence += 1;
            text::message_id(self.shared().folder_id, sequence - 1)
        };
        Ok(checks.into_iter().map(|check| check.map(&mut next_id)).collect())
    }
}

impl<C: Clock> QueueReceiver for LocalQueue<C> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        self.long_poll(request).await
    }

    async fn acknowledge(&self, receipt: &Receipt) -> Result<(), PortError> {
        let Some(received) = self.parse(receipt) else { return Ok(()) };
        if self.queue().update(self.now(), |index| index.settle(received)) {
            self.shared().inbox.delete(received.sequence);
        }
        Ok(())
    }

    async fn replace(&self, receipt: &Receipt, successors: Vec<Successor>) -> Result<(), PortError> {
        const DOING: &str = "replace a message";
        for successor in &successors {
            validate::message(&successor.message).map_err(|refusal| refusal.at(DOING))?;
        }
        let stale = || PortError::new(DOING, ErrorKind::NotFound);
        let received = self.parse(receipt).ok_or_else(stale)?;
        let shared = self.shared();
        let now = self.now();
        let messages =
            successors.into_iter().map(|successor| new_message(successor.to, successor.message, now));
        let messages: Vec<_> = messages.collect();
        let bytes = messages.iter().map(|message| message.body.len()).sum();
        let _counted = shared.counters.write();
        let room = shared.inbox.room(bytes).await;
        // From here to the push nothing may wait: a caller that is dropped would leave the message held.
        if !self.queue().update(now, |index| index.hold(now, received)) {
            return Err(stale());
        }
        let instead_of = Some((self.name, received.sequence));
        answer(DOING, shared.inbox.push(Work::Messages { messages, instead_of }, room).await).map(drop)
    }

    async fn change_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), PortError> {
        const DOING: &str = "change a visibility timeout";
        validate::visibility(visibility).map_err(|refusal| refusal.at(DOING))?;
        let now = self.now();
        let change =
            |received| self.queue().update(now, |index| index.change(now, received, visibility, HIDDEN_MAX));
        match self.parse(receipt).map(change) {
            Some(Ok(())) => Ok(()),
            Some(Err(ChangeRefused::TooLong)) => Err(validate::Refusal::Visibility(visibility).at(DOING)),
            Some(Err(ChangeRefused::Stale)) | None => Err(PortError::new(DOING, ErrorKind::NotFound)),
        }
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        Ok(self.queue().lock().counts(self.now()))
    }
}
