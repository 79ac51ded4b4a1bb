//! The end of one message: what takes its place, and how it leaves the queue.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::attempt::settle::settle_message;
use posthaste_core::attempt::{EntryVerdict, Settlement};
use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::{Delivery, LetterPlace, Subscription, Timestamp};
use posthaste_ports::{Clock, ErrorKind, PortError, Ports, QueueName, QueueReceiver, Successor};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::delivery_log::record_message;
use posthaste_services::late_answers::forget_late;
use posthaste_services::{ActivityNotes, DrainMeter, stop_at};

use super::successors::MessageSuccessors;
use crate::current::CurrentSubscriptions;
use crate::invocation::{DeliveryJob, Invocation, WaitingMessage};
use crate::lanes::DeliveryQueues;
use crate::notify::DroppedNotices;
use crate::outages::OutageLookup;
use crate::replace::{replace_after_failure, replace_message};
use crate::waiting_place::WaitingPlace;

const RECORDING: &str = "replace a message by its successors and records";

/// Ends messages.
pub(crate) struct MessageEnder<P: Ports> {
    pub(crate) queues: DeliveryQueues<P::Queue>,
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    pub(crate) drain: DrainMeter,
    pub(crate) current: Arc<CurrentSubscriptions<P>>,
    pub(crate) activity: ActivityNotes,
    pub(crate) outages: OutageLookup<P>,
    pub(crate) notices: DroppedNotices<P>,
}

/// A message whose events all have a verdict.
#[derive(Debug)]
pub(crate) struct JudgedMessage {
    /// Index into the invocation's jobs.
    pub(crate) job: usize,
    pub(crate) verdicts: Vec<EntryVerdict>,
    /// The time of the last verdict, from which its records and its successors count their waits.
    pub(crate) at: Timestamp,
}

/// A message that may end.
#[derive(Debug)]
pub(crate) struct MessageEnding {
    job: usize,
    /// The messages that take its place.
    successors: Vec<Successor>,
    /// Whether all its events were delivered. A successor of it only says which dead letters are
    /// resolved.
    is_delivered: bool,
    /// The deliveries that wait in the object store.
    deliveries: Vec<(WaitingPlace, Delivery)>,
    /// Whether a transaction with records failed to end it.
    has_failed: bool,
}

impl MessageEnding {
    /// The end of a message whose events were all delivered, and that resolves these dead letters.
    fn of_delivered(job: usize, letters: Vec<LetterPlace>) -> Self {
        let mut successors = MessageSuccessors::default();
        successors.add_resolved(letters);
        let MessageSuccessors {
            messages: successors,
            stored: deliveries,
            ..
        } = successors;
        Self {
            job,
            successors,
            is_delivered: true,
            deliveries,
            has_failed: false,
        }
    }

    /// Whether the message ends with a transaction of the queue. One that was delivered is
    /// acknowledged instead: that never fails, while a transaction that fails would have its
    /// webhook sent again.
    pub(crate) fn is_replaced(&self) -> bool {
        self.deliveries.is_empty() && !self.is_delivered
    }
}

impl<P: Ports> MessageEnder<P> {
    /// Notes that a subscription is in use, for one that is deleted when it is idle.
    pub(crate) async fn note_attempt(&self, invocation: &Invocation, subscription: &Subscription) {
        if subscription.lifetime.idle.is_none() {
            return;
        }
        // If that takes too long, the next attempt is noted.
        let noted = Box::pin(self.activity.note_subscription(
            &*self.state,
            subscription,
            self.clock.now(),
        ));
        stop_at(&self.clock, invocation.deadlines.storing_end(), noted).await;
    }

    /// Prepares the end of a message whose events all have a verdict. `None` if that panicked,
    /// which hands the message back.
    pub(crate) async fn prepare_ending(
        &self,
        invocation: &Invocation,
        message: JudgedMessage,
    ) -> Option<MessageEnding> {
        let job = &invocation.jobs[message.job];
        let prepared = catch_panic(self.build_ending(invocation, job, &message)).await;
        let ending = prepared.inspect_err(|_| job.hand_back()).ok()?;
        if ending.is_delivered {
            // Whatever comes of its records and of the queue, its webhook is not sent again for
            // that.
            invocation.note_settled(&job.message.id);
        }
        Some(ending)
    }

    async fn build_ending(
        &self,
        invocation: &Invocation,
        job: &DeliveryJob,
        message: &JudgedMessage,
    ) -> MessageEnding {
        let now = message.at;
        let verdicts = &message.verdicts;
        if invocation.measures_drain() && !verdicts.iter().all(EntryVerdict::is_untried) {
            self.drain.note_delivery_settled(&job.delivery);
        }
        if verdicts
            .iter()
            .all(|verdict| *verdict == EntryVerdict::Delivered)
        {
            return MessageEnding::of_delivered(
                message.job,
                delivered_letters(&job.delivery, verdicts),
            );
        }
        let judged_by = match &job.subscription {
            // Whether an event is dropped is not decided by a policy from before its attempt.
            Some(known) if verdicts.iter().any(EntryVerdict::is_given_up) => {
                Some(Box::pin(self.current.latest_version(known)).await)
            }
            known => known.clone(),
        };
        let policy = judged_by
            .as_ref()
            .map(|subscription| &subscription.dead_letter);
        let Settlement {
            mut again,
            mut held,
            mut dead,
            dropped,
        } = settle_message(&job.delivery, verdicts, policy);
        job.note_counted(&mut again, false);
        job.note_counted(&mut held, true);
        if let Some(subscription) = &job.subscription {
            let waiting = again.iter_mut().chain(&mut held);
            self.outages
                .note_in_waiting(subscription, &job.delivery, waiting);
            Box::pin(self.note_scheduled(invocation, subscription, &again, &held)).await;
        }
        if let Some(subscription) = &judged_by {
            let before = &job.delivery;
            let noted = self
                .outages
                .note_in_letters(invocation, subscription, before, &mut dead);
            Box::pin(noted).await;
        }
        let mut successors = MessageSuccessors::in_lane(invocation.lane_after(job, now));
        for letter in &job.with_redirects(dead) {
            successors.add_dead_letter(letter, policy);
        }
        for letter in dropped {
            if !Box::pin(self.notices.drop_events(invocation, &letter)).await {
                successors.add_notice_request(letter, now);
            }
        }
        successors.add_held(held);
        for delivery in again {
            successors.add_retry(delivery, now);
        }
        let is_delivered = successors.messages.is_empty() && successors.stored.is_empty();
        successors.add_resolved(delivered_letters(&job.delivery, verdicts));
        let MessageSuccessors {
            messages: successors,
            stored: deliveries,
            ..
        } = successors;
        MessageEnding {
            job: message.job,
            successors,
            is_delivered,
            deliveries,
            has_failed: false,
        }
    }

    /// Ends a message, or leaves it to the end of the invocation if deliveries of it wait in the
    /// object store. A panic hands it back.
    pub(crate) async fn end_message(&self, invocation: &Invocation, ending: MessageEnding) {
        let job = &invocation.jobs[ending.job];
        if catch_panic(self.finish_ending(invocation, job, ending))
            .await
            .is_err()
        {
            job.hand_back();
        }
    }

    async fn finish_ending(
        &self,
        invocation: &Invocation,
        job: &DeliveryJob,
        ending: MessageEnding,
    ) {
        let MessageEnding {
            successors,
            is_delivered,
            deliveries,
            has_failed,
            ..
        } = ending;
        if !deliveries.is_empty() {
            return invocation.add_waiting(WaitingMessage {
                message: job.message.clone(),
                deliveries,
                successors,
                lane: invocation.lane_after(job, self.clock.now()),
            });
        }
        // A message that comes again must find its late answers still noted.
        let is_settled = if is_delivered {
            self.acknowledge_delivered(invocation, job, successors)
                .await
        } else if has_failed {
            Box::pin(replace_after_failure(
                self.queues.for_invocation(invocation),
                invocation,
                &job.message,
                successors,
            ))
            .await
        } else {
            Box::pin(replace_message(
                self.queues.for_invocation(invocation),
                invocation,
                &job.message,
                successors,
            ))
            .await
        };
        if is_settled {
            self.forget_late(invocation, job).await;
        }
    }

    /// Lets a delivered message go, and tells whether it is gone. Where the queue does not take
    /// what says which dead letters are resolved, they stay as they are: the webhook is not
    /// sent again for that.
    async fn acknowledge_delivered(
        &self,
        invocation: &Invocation,
        job: &DeliveryJob,
        resolved: Vec<Successor>,
    ) -> bool {
        let queue = self.queues.for_invocation(invocation);
        if !resolved.is_empty() {
            let replaced = Box::pin(queue.replace(&job.message.receipt, resolved));
            let Err(error) = replaced.await else {
                return true;
            };
            tracing::error!(
                topic = %job.delivery.topic, subscription = %job.delivery.subscription,
                error = &error as &dyn std::error::Error,
                "dead letters that were delivered again are not marked as resolved"
            );
        }
        let acknowledged = queue.acknowledge(&job.message.receipt).await;
        if let Err(error) = &acknowledged {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "delivered message not acknowledged"
            );
        }
        acknowledged.is_ok()
    }

    /// Ends a message that is replaced, in one transaction with records. After an `Err` it is to be
    /// ended without them. It needs the transaction anyway, so this waits as long as that
    /// takes: cut off, nothing would say whether the message was settled.
    pub(crate) async fn end_with(
        &self,
        invocation: &Invocation,
        ending: &mut MessageEnding,
        records: &[Bytes],
    ) -> Result<(), PortError> {
        let job = &invocation.jobs[ending.job];
        let records = records.iter().map(|body| record_message(body.clone()));
        let records = records.map(|message| Successor {
            to: QueueName::Records,
            message,
        });
        let successors = ending.successors.iter().cloned().chain(records).collect();
        let queue = self.queues.for_invocation(invocation);
        let replaced = catch_panic(queue.replace(&job.message.receipt, successors)).await;
        let replaced = replaced
            .map_err(|panicked| PortError::with_cause(RECORDING, ErrorKind::Other, panicked));
        let replaced = replaced.flatten();
        ending.has_failed = replaced
            .as_ref()
            .is_err_and(|error| error.kind != ErrorKind::NotFound);
        replaced?;
        invocation.note_settled(&job.message.id);
        self.forget_late(invocation, job).await;
        Ok(())
    }

    /// Removes the notes of the late answers that acknowledged events of a message.
    async fn forget_late(&self, invocation: &Invocation, job: &DeliveryJob) {
        if !job.acknowledged_late.is_empty() {
            let topic = &job.delivery.topic;
            let subscription = &job.delivery.subscription;
            let forgotten = Box::pin(forget_late(
                &*self.state,
                topic,
                subscription,
                &job.acknowledged_late,
            ));
            stop_at(&self.clock, invocation.deadlines.end, forgotten).await;
        }
    }

    /// Notes when deliveries that are tried again are due, and when held ones expire, for entities
    /// that are deleted when they are idle: until then neither the subscription nor its topic
    /// is idle. wake sees deliveries in the object store, but not those it has just sent to the
    /// queue, so the subscription's note lasts a while longer. For all other entities nothing
    /// is read or written.
    async fn note_scheduled(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
        again: &[Delivery],
        held: &[Delivery],
    ) {
        let due = again.iter().map(|delivery| delivery.not_before).max();
        let Some(latest) = due
            .into_iter()
            .chain(held.iter().map(Delivery::expires_first))
            .max()
        else {
            return;
        };
        let now = self.clock.now();
        let waits_until = wait_noted_at(due.map_or(now, |due| due.max(now)));
        let noted = async {
            self.activity
                .note_topic_of(&*self.state, subscription, latest)
                .await;
            self.activity
                .note_subscription(&*self.state, subscription, waits_until)
                .await;
        };
        stop_at(&self.clock, invocation.deadlines.storing_end(), noted).await;
    }
}

/// The dead letters that the delivered events of a message were made of.
fn delivered_letters(delivery: &Delivery, verdicts: &[EntryVerdict]) -> Vec<LetterPlace> {
    let events = delivery.events.iter().zip(verdicts);
    let delivered = events.filter(|(_, verdict)| **verdict == EntryVerdict::Delivered);
    delivered
        .filter_map(|(event, _)| event.marks.letter.clone())
        .collect()
}
