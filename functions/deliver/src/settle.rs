//! Settles messages: one whose events all have a verdict is ended, after its successors are
//! durable. Messages with records of the delivery log are settled in groups, after the records are
//! durable or given up.

pub(crate) mod ending;
mod group;
pub(crate) mod records_queue;
mod successors;
pub(crate) mod waiting;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::EntryVerdict;
use posthaste_core::delivery_log::{RecordText, join_records};
use posthaste_core::health::{SeenTry, book_key};
use posthaste_core::model::SubscriptionStatus;
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::{LinkHealth, stop_at};
use tokio::sync::mpsc;

use crate::circuit::CircuitBreaker;
use crate::disable::SubscriptionDisabler;
use crate::invocation::{DeliveryJob, EntryRef, Invocation};
use crate::limits::SETTLED_AT_ONCE_MAX;
use crate::send::{AttemptSink, EndedAttempt};
use ending::{JudgedMessage, MessageEnder, MessageEnding};
use group::{RecordedMessage, SettlingGroup, gather_groups};
use records_queue::RecordsQueue;
use waiting::WaitingObjects;

/// Settles messages.
pub(crate) struct MessageSettler<P: Ports> {
    pub(crate) ender: MessageEnder<P>,
    pub(crate) records: RecordsQueue<P>,
    pub(crate) waiting: WaitingObjects<P>,
    pub(crate) disabler: SubscriptionDisabler<P>,
    pub(crate) circuit: Arc<CircuitBreaker<P>>,
    pub(crate) links: Arc<LinkHealth<P::Store, P::Clock>>,
}

/// The settling of one invocation's messages. While it exists, messages may join a group.
pub(crate) struct InvocationSettling<'a, P: Ports> {
    settler: &'a MessageSettler<P>,
    /// The way of messages with records into their group.
    recorded: mpsc::Sender<Box<RecordedMessage>>,
}

/// A message whose events all have a verdict.
struct CompleteMessage {
    /// Index into the invocation's jobs.
    job: usize,
    verdicts: Vec<EntryVerdict>,
}

impl CompleteMessage {
    /// Notes the verdict over an event. Returns its message if this was the last one missing.
    fn with_verdict(invocation: &Invocation, at: EntryRef, verdict: EntryVerdict) -> Option<Self> {
        let verdicts = invocation.jobs[at.job].note_verdict(at.entry, verdict)?;
        Some(Self {
            job: at.job,
            verdicts,
        })
    }
}

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
            let disabler = &self.settler.disabler;
            Box::pin(disabler.disable_subscription(invocation, &subscription)).await;
        }
        if verdicts
            .iter()
            .any(|(_, verdict)| *verdict != EntryVerdict::NotStarted)
        {
            let ender = &self.settler.ender;
            ender.note_attempt(invocation, &subscription).await;
        }
        let complete = verdicts
            .into_iter()
            .filter_map(|(at, verdict)| CompleteMessage::with_verdict(invocation, at, verdict))
            .collect();
        self.complete_all(invocation, complete).await;
    }
}

impl<P: Ports> InvocationSettling<'_, P> {
    /// Settles messages that need no attempt, side by side, so that messages that are given up
    /// together share requests to the queue.
    async fn settle_unsent(&self, invocation: &Invocation) {
        let jobs = invocation.jobs.iter().enumerate();
        let judged: Vec<_> = jobs
            .filter_map(|(job, of)| {
                let verdicts = of.all_verdicts()?;
                Some(CompleteMessage { job, verdicts })
            })
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

    async fn complete_all(&self, invocation: &Invocation, messages: Vec<CompleteMessage>) {
        match <[CompleteMessage; 1]>::try_from(messages) {
            Ok([message]) => self.complete_message(invocation, message).await,
            Err(messages) => {
                stream::iter(messages)
                    .for_each_concurrent(SETTLED_AT_ONCE_MAX, |message| {
                        self.complete_message(invocation, message)
                    })
                    .await;
            }
        }
    }

    /// Settles a message whose events all have a verdict, or leaves it to a group if it has
    /// records. It joins the group when it is prepared, so that one that is slow to prepare
    /// delays no other.
    async fn complete_message(&self, invocation: &Invocation, message: CompleteMessage) {
        let CompleteMessage { job, verdicts } = message;
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
    /// Settles an invocation's messages while `send` makes its requests: first those that need no
    /// attempt, then each with its last attempt. Those with records may join a group until `send`
    /// ends. At the end it reports the results of all requests, and stores the deliveries that
    /// wait.
    pub(crate) async fn settle_while<'a, F: Future<Output = ()>>(
        &'a self,
        invocation: &Invocation,
        send: impl FnOnce(InvocationSettling<'a, P>) -> F,
    ) {
        let (settling, messages) = self.begin_settling(invocation);
        let sending = async {
            settling.settle_unsent(invocation).await;
            send(settling).await;
        };
        tokio::join!(sending, self.settle_recorded(invocation, messages));
        self.circuit.end_invocation(invocation).await;
        self.waiting.store_waiting(invocation).await;
    }

    /// Notes which events of a message arrived. What is paused is not tried, and no sign.
    fn note_tries(&self, job: &DeliveryJob, verdicts: &[EntryVerdict]) {
        let arrivals = self.links.arrivals();
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
        let delayed_after = self.links.settings().arrivals.delayed_after;
        let delivery = &job.delivery;
        for (entry, verdict) in delivery.events.iter().zip(verdicts) {
            let seen = SeenTry::from_verdict(delivery, &entry.key, *verdict, now, delayed_after);
            if let Some(seen) = seen {
                arrivals.note_try(|| book_key(&subscription.topic, &subscription.name), &seen);
            }
        }
    }

    /// Begins to settle an invocation's messages. Those that come by the receiver are settled in
    /// groups.
    fn begin_settling(
        &self,
        invocation: &Invocation,
    ) -> (
        InvocationSettling<'_, P>,
        mpsc::Receiver<Box<RecordedMessage>>,
    ) {
        let (recorded, messages) = mpsc::channel(invocation.jobs.len().max(1));
        let settling = InvocationSettling {
            settler: self,
            recorded,
        };
        (settling, messages)
    }

    /// Settles messages in groups, side by side, until no other message can come.
    async fn settle_recorded(
        &self,
        invocation: &Invocation,
        messages: mpsc::Receiver<Box<RecordedMessage>>,
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
        stream::iter(endings)
            .for_each_concurrent(SETTLED_AT_ONCE_MAX, |ending| {
                self.ender.end_message(invocation, ending)
            })
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
