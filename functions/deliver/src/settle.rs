//! Settles messages: one whose events all have a verdict is ended, after its successors are
//! durable. Messages with records of the delivery log are settled in groups, after the records are
//! durable or given up.

pub(crate) mod ending;
mod group;
pub(crate) mod place;
pub(crate) mod records_queue;
pub(crate) mod replace;
mod successors;
pub(crate) mod waiting;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::delivery_log::{RecordText, join_records};
use posthaste_core::health::{SeenTry, book_key};
use posthaste_core::model::SubscriptionStatus;
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::stop_at;
use tokio::sync::mpsc;

use crate::circuit::CircuitBreaker;
use crate::disable::SubscriptionDisabler;
use crate::invocation::{DeliveryJob, EntryRef, Invocation};
use crate::limits::SETTLED_AT_ONCE_MAX;
use crate::send::{AttemptSink, EndedAttempt};
use ending::{JudgedMessage, MessageEnder, MessageEnding};
use group::{RecordedMessage, SettlingGroup, gather_groups};
use records_queue::RecordsQueue;

/// Settles messages.
pub(crate) struct MessageSettler<P: Ports> {
    pub(crate) ender: MessageEnder<P>,
    pub(crate) records: RecordsQueue<P>,
    pub(crate) disabler: SubscriptionDisabler<P>,
    pub(crate) circuit: Arc<CircuitBreaker<P>>,
}

/// The settling of one invocation's messages. While it exists, messages may join a group.
pub(crate) struct InvocationSettling<'a, P: Ports> {
    settler: &'a MessageSettler<P>,
    /// The way of messages with records into their group.
    recorded: mpsc::Sender<Box<RecordedMessage>>,
}

/// The messages that are settled in groups.
pub(crate) struct MessagesToGroup(mpsc::Receiver<Box<RecordedMessage>>);

impl<P: Ports> AttemptSink for InvocationSettling<'_, P> {
    /// Disables the subscription if its endpoint is gone, notes the verdicts, and settles the
    /// messages that are complete with them.
    async fn settle_attempt(&self, invocation: &Invocation, attempted: EndedAttempt) {
        let EndedAttempt {
            subscription,
            verdicts,
            is_to_be_disabled,
        } = attempted;
        if is_to_be_disabled {
            Box::pin(
                self.settler
                    .disabler
                    .disable_subscription(invocation, &subscription),
            )
            .await;
        }
        if verdicts
            .iter()
            .any(|(_, verdict)| *verdict != EntryVerdict::NotStarted)
        {
            self.settler
                .ender
                .note_attempt(invocation, &subscription)
                .await;
        }
        let judge = |(at, verdict): (EntryRef, EntryVerdict)| {
            Some((
                at.job,
                invocation.jobs[at.job].note_verdict(at.entry, verdict)?,
            ))
        };
        self.complete_all(invocation, verdicts.into_iter().filter_map(judge).collect())
            .await;
    }
}

impl<P: Ports> InvocationSettling<'_, P> {
    /// Settles messages that need no attempt, side by side, so that messages that are given up
    /// together share requests to the queue.
    pub(crate) async fn settle_unsent(&self, invocation: &Invocation) {
        let jobs = invocation.jobs.iter().enumerate();
        let judged: Vec<_> = jobs
            .filter_map(|(index, job)| Some((index, job.all_verdicts()?)))
            .collect();
        if judged.is_empty() {
            return;
        }
        let settled = Box::pin(self.complete_all(invocation, judged));
        let clock = &self.settler.ender.clock;
        let end = invocation.deadlines.receiving_end();
        if stop_at(clock, end, settled).await.is_none() {
            tracing::error!(
                "messages handed back, the queue did not take what follows them in time"
            );
        }
    }

    async fn complete_all(
        &self,
        invocation: &Invocation,
        messages: Vec<(usize, Vec<EntryVerdict>)>,
    ) {
        let complete = |(job, verdicts)| self.complete_message(invocation, job, verdicts);
        match <[_; 1]>::try_from(messages) {
            Ok([message]) => complete(message).await,
            Err(messages) => {
                stream::iter(messages)
                    .for_each_concurrent(SETTLED_AT_ONCE_MAX, complete)
                    .await;
            }
        }
    }

    /// Settles a message whose events all have a verdict, or leaves it to a group if it has
    /// records. It joins the group when it is prepared, so that one that is slow to prepare
    /// delays no other.
    async fn complete_message(
        &self,
        invocation: &Invocation,
        job: usize,
        verdicts: Vec<EntryVerdict>,
    ) {
        let ender = &self.settler.ender;
        self.settler.note_tries(&invocation.jobs[job], &verdicts);
        let at = ender.clock.now();
        let records = invocation.jobs[job].take_records(&verdicts, at);
        let complete = JudgedMessage { job, verdicts, at };
        let ending = ender.prepare_ending(invocation, complete).await;
        if !records.is_empty() {
            // There is room for each message, and the groups are gathered for as long as this
            // exists.
            let _ = self
                .recorded
                .send(Box::new(RecordedMessage {
                    job,
                    ending,
                    records,
                }))
                .await;
        } else if let Some(ending) = ending {
            ender.end_message(invocation, ending).await;
        }
    }
}

impl<P: Ports> MessageSettler<P> {
    /// Notes which events of a message arrived. What is paused is not tried, and no sign.
    fn note_tries(&self, job: &DeliveryJob, verdicts: &[EntryVerdict]) {
        let links = &self.circuit.links;
        let arrivals = links.arrivals();
        let is_all_well = verdicts.iter().all(|it| *it == EntryVerdict::Delivered);
        if !arrivals.is_counting() || (is_all_well && !arrivals.is_watching()) {
            return;
        }
        let Some(subscription) = &job.subscription else {
            return;
        };
        let now = self.ender.clock.now();
        if subscription.status_at(now) != SubscriptionStatus::Active {
            return;
        }
        let delayed_after = links.settings().arrivals.delayed_after;
        let delivery = &job.delivery;
        for (entry, verdict) in delivery.events.iter().zip(verdicts) {
            let seen = SeenTry::from_verdict(delivery, &entry.key, *verdict, now, delayed_after);
            if let Some(seen) = seen {
                let key = || book_key(&subscription.topic, &subscription.name);
                arrivals.note_try(key, &seen);
            }
        }
    }

    /// Begins to settle an invocation's messages.
    pub(crate) fn begin_settling(
        &self,
        invocation: &Invocation,
    ) -> (InvocationSettling<'_, P>, MessagesToGroup) {
        let (recorded, receiver) = mpsc::channel(invocation.jobs.len().max(1));
        (
            InvocationSettling {
                settler: self,
                recorded,
            },
            MessagesToGroup(receiver),
        )
    }

    /// Settles messages in groups, side by side, until no other message can come.
    pub(crate) async fn settle_recorded(
        &self,
        invocation: &Invocation,
        MessagesToGroup(messages): MessagesToGroup,
    ) {
        let gathering = self.records.settings.gathering;
        let groups = gather_groups(self.ender.clock.clone(), gathering, messages);
        groups
            .for_each_concurrent(None, |group| self.settle_group(invocation, group))
            .await;
    }

    async fn settle_group(&self, invocation: &Invocation, group: SettlingGroup) {
        let by_topic = group.records_by_topic(invocation);
        let (mut endings, records) = group.into_parts();
        if let Err(error) = self.send_records(invocation, &mut endings, records).await {
            self.records.report_lost(&by_topic, &*error);
        }
        let end = |ending| self.ender.end_message(invocation, ending);
        stream::iter(endings)
            .for_each_concurrent(SETTLED_AT_ONCE_MAX, end)
            .await;
    }

    /// Makes the records of a group durable: with the first message that is replaced, which is gone
    /// from `endings` then, or by themselves. An `Err` means that they may be missing in the
    /// log.
    async fn send_records(
        &self,
        invocation: &Invocation,
        endings: &mut Vec<MessageEnding>,
        records: Vec<RecordText>,
    ) -> Result<(), Arc<PortError>> {
        let first = endings.iter().position(MessageEnding::is_replaced);
        let Some(first) = first.filter(|_| self.records.settings.in_settling) else {
            return self.records.send_records(records).await;
        };
        let bodies = join_records(records.iter());
        match self
            .ender
            .end_with(invocation, &mut endings[first], &bodies)
            .await
        {
            Ok(()) => {
                endings.remove(first);
                Ok(())
            }
            // The queue has no room for them, which is why the message is ended without them.
            Err(error) if error.kind == ErrorKind::Full => Err(Arc::new(error)),
            // Another worker has the message, or nothing could be stored just now. The records of
            // this attempt are nowhere else.
            Err(_) => self.records.send_records(records).await,
        }
    }
}

#[cfg(test)]
mod tests;
