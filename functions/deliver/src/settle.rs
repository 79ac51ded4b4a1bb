//! Applying verdicts: what takes a message's place is durable before the message is deleted.

use posthaste_core::api::notice::{Fate, later};
use posthaste_core::attempt::settle::{EntryVerdict, Settlement, Wait, dead_letter_delay_secs, settle, wait};
use posthaste_core::model::delivery::{DeadLetter, Delivery};
use posthaste_core::model::limits::DEAD_LETTER_DELAY_DEFAULT;
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::DeadLetterPolicy;
use posthaste_core::stored::dead_letter_message::render_dead_letter;
use posthaste_core::stored::delivery::render_delivery;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, OutgoingMessage, Ports, QueueName, QueueReceiver, Receipt, Successor,
};

use crate::invocation::{Invocation, Job, Parking};
use crate::park::Place;
use crate::{Deliver, report};

/// Messages that are settled side by side, so that their successors and deletions can share requests to the queue.
pub(crate) const SETTLED_AT_ONCE_MAX: usize = 100;

impl<P: Ports> Deliver<P> {
    /// Settles a message whose events all have a verdict.
    pub(crate) async fn settle(&self, invocation: &Invocation, job: &Job, verdicts: &[EntryVerdict]) {
        let now = self.ports.clock.now();
        let is_untried = |verdict: &EntryVerdict| {
            matches!(verdict, EntryVerdict::NotStarted | EntryVerdict::Postponed { .. })
        };
        if !verdicts.iter().all(is_untried) {
            self.ports.drain.settled(1);
        }
        let policy = job.subscription.as_ref().map(|subscription| &subscription.dead_letter);
        let Settlement { again, held, dead, dropped } = settle(&job.delivery, verdicts, policy);
        let mut successors: Vec<_> = dead.iter().map(|letter| dead_letter(letter, policy)).collect();
        for letter in dropped {
            report::dropped(&letter);
            if !self.is_announced(invocation, &letter).await {
                successors.extend(notices_later(letter, now));
            }
        }
        self.note_scheduled(invocation, job, &again, &held).await;
        let mut stored: Vec<_> = held.into_iter().map(|delivery| (Place::Held, delivery)).collect();
        for mut delivery in again {
            // What goes back untried is due from now on: its wait was ours, and must not read as a slow drain.
            delivery.not_before = delivery.not_before.max(now);
            match wait(delivery.not_before, now) {
                Wait::Queue { delay_secs } => successors.push(retry(&delivery, delay_secs)),
                Wait::Parked => stored.push((Place::Parked, delivery)),
            }
        }
        if !stored.is_empty() {
            let (id, receipt) = (job.id.clone(), job.receipt.clone());
            return invocation.park(Parking { id, receipt, deliveries: stored, successors });
        }
        let is_done = if successors.is_empty() {
            self.acknowledge(invocation, &job.id, &job.receipt).await
        } else {
            self.replace(invocation, &job.id, &job.receipt, successors).await
        };
        // A message that comes again finds its late answers still noted.
        if is_done {
            self.forget_late(invocation, job).await;
        }
    }

    /// Puts successors in a message's place. Without any, the message is deleted at once: what follows it is
    /// durable elsewhere. Answers whether the message is done with.
    pub(crate) async fn replace(
        &self,
        invocation: &Invocation,
        id: &MessageId,
        receipt: &Receipt,
        successors: Vec<Successor>,
    ) -> bool {
        match self.ports.queue.replace(receipt, successors).await {
            Ok(()) => invocation.settled(id),
            Err(error) if error.kind == ErrorKind::NotFound => {
                invocation.settled(id);
                tracing::warn!(message_id = %id.0, "message settled by somebody else, its visibility ran out");
            }
            Err(error) => {
                tracing::error!(message_id = %id.0, error = &error as &dyn std::error::Error, "message handed back, its successors were not written");
                return false;
            }
        }
        true
    }

    /// A message that arrived whole. If the queue does not take it, it is delivered again: at least once.
    async fn acknowledge(&self, invocation: &Invocation, id: &MessageId, receipt: &Receipt) -> bool {
        invocation.settled(id);
        let acknowledged = self.ports.queue.acknowledge(receipt).await;
        if let Err(error) = &acknowledged {
            tracing::error!(error = error as &dyn std::error::Error, "delivered message not acknowledged");
        }
        acknowledged.is_ok()
    }
}

/// A message that asks deadletter for the notices about dropped events.
fn notices_later(letter: DeadLetter, now: Timestamp) -> Option<Successor> {
    let (letter, delay_secs) = later(letter, Fate::Dropped, now)?;
    let (body, group) = (render_dead_letter(&letter), Some(letter.delivery.group()));
    Some(Successor { to: QueueName::DeadLetters, message: OutgoingMessage { body, group, delay_secs } })
}

pub(crate) fn retry(delivery: &Delivery, delay_secs: u16) -> Successor {
    let message =
        OutgoingMessage { body: render_delivery(delivery), group: Some(delivery.group()), delay_secs };
    Successor { to: QueueName::Deliveries, message }
}

fn dead_letter(letter: &DeadLetter, policy: Option<&DeadLetterPolicy>) -> Successor {
    report::given_up(&letter.delivery, letter.reason);
    let delay = policy.map_or(DEAD_LETTER_DELAY_DEFAULT, |policy| policy.delay);
    let message = OutgoingMessage {
        body: render_dead_letter(letter),
        group: Some(letter.delivery.group()),
        delay_secs: dead_letter_delay_secs(delay),
    };
    Successor { to: QueueName::DeadLetters, message }
}
