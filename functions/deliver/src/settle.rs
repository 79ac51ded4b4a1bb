//! Settling: a message whose events all have a verdict is ended, after what follows it is durable.

pub(crate) mod place;
pub(crate) mod replace;
mod retry;
mod successors;
pub(crate) mod waiting;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use posthaste_core::attempt::settle::settle;
use posthaste_core::attempt::{EntryVerdict, Settlement};
use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::{Delivery, Subscription};
use posthaste_ports::{Clock, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::late_answers::forget_late;
use posthaste_services::{Activity, DrainMeter, stop_at};

use crate::disable::Disabler;
use crate::invocation::{Invocation, Job, WaitingMessage};
use crate::limits::SETTLED_AT_ONCE_MAX;
use crate::notify::DroppedNotices;
use crate::send::{Attempted, Settle};
use replace::{End, Messages};
use successors::Successors;

/// Settles messages.
pub(crate) struct Settler<P: Ports> {
    pub(crate) state: Arc<P::Store>,
    pub(crate) clock: P::Clock,
    pub(crate) drain: DrainMeter,
    pub(crate) activity: Activity,
    pub(crate) disabler: Disabler<P>,
    pub(crate) notices: DroppedNotices<P>,
    pub(crate) messages: Arc<Messages<P>>,
}

impl<P: Ports> Settle for Settler<P> {
    /// Disables the subscription if its endpoint is gone, notes the verdicts, and settles the messages that
    /// are complete with them.
    async fn attempted(&self, invocation: &Invocation, attempted: Attempted) {
        let Attempted { subscription, verdicts, is_to_be_disabled } = attempted;
        if is_to_be_disabled {
            self.disabler.disable_subscription(invocation, &subscription).await;
        }
        if verdicts.iter().any(|(_, verdict)| *verdict != EntryVerdict::NotStarted) {
            // Cut off, the next attempt is noted.
            let noted = self.activity.of_subscription(&*self.state, &subscription, self.clock.now());
            stop_at(&self.clock, invocation.deadlines.storing(), noted).await;
        }
        for (at, verdict) in verdicts {
            if let Some(complete) = invocation.jobs[at.job].judge(at.entry, verdict) {
                self.settle_or_hand_back(invocation, at.job, complete).await;
            }
        }
    }
}

impl<P: Ports> Settler<P> {
    /// Settles messages that need no attempt. They are settled side by side, so that what is given up
    /// together shares requests to the queue.
    pub(crate) async fn settle_unsent(&self, invocation: &Invocation) {
        let jobs = invocation.jobs.iter().enumerate();
        let judged: Vec<_> = jobs.filter_map(|(index, job)| Some((index, job.complete()?))).collect();
        let settle =
            |(index, verdicts): (usize, Vec<_>)| self.settle_or_hand_back(invocation, index, verdicts);
        let settled = stream::iter(judged).for_each_concurrent(SETTLED_AT_ONCE_MAX, settle);
        if stop_at(&self.clock, invocation.deadlines.receiving(), settled).await.is_none() {
            tracing::error!("messages handed back, the queue did not take what follows them in time");
        }
    }

    async fn settle_or_hand_back(&self, invocation: &Invocation, index: usize, verdicts: Vec<EntryVerdict>) {
        let job = &invocation.jobs[index];
        if catch_panic(self.settle(invocation, job, &verdicts)).await.is_err() {
            job.hand_back();
        }
    }

    /// Settles a message whose events all have a verdict.
    async fn settle(&self, invocation: &Invocation, job: &Job, verdicts: &[EntryVerdict]) {
        let now = self.clock.now();
        if !verdicts.iter().all(EntryVerdict::is_untried) {
            self.drain.settled(1);
        }
        let policy = job.subscription.as_ref().map(|subscription| &subscription.dead_letter);
        let Settlement { again, held, dead, dropped } = settle(&job.delivery, verdicts, policy);
        if let Some(subscription) = &job.subscription {
            self.note_scheduled(invocation, subscription, &again, &held).await;
        }
        let mut successors = Successors::default();
        for letter in &dead {
            successors.dead(letter, policy);
        }
        for letter in dropped {
            if !self.notices.drop_events(invocation, &letter).await {
                successors.notices(letter, now);
            }
        }
        successors.held(held);
        for delivery in again {
            successors.again(delivery, now);
        }
        let Successors { messages: successors, stored: deliveries } = successors;
        if !deliveries.is_empty() {
            return invocation.wait(WaitingMessage { message: job.message.clone(), deliveries, successors });
        }
        let end = if successors.is_empty() { End::Delivered } else { End::ReplacedBy(successors) };
        // A message that comes again finds its late answers still noted.
        if self.messages.end(invocation, &job.message, end).await && !job.acknowledged_late.is_empty() {
            let (topic, subscription) = (&job.delivery.topic, &job.delivery.subscription);
            let forgotten = forget_late(&*self.state, topic, subscription, &job.acknowledged_late);
            stop_at(&self.clock, invocation.deadlines.end, forgotten).await;
        }
    }

    /// Notes when deliveries that are tried again are due, and when held ones end, for entities that are
    /// deleted when they are idle: until then neither the subscription nor its topic is. wake sees what waits
    /// in the object store, but not what it has just sent to the queue, so the subscription's note lasts a
    /// while longer. Without such entities nothing is asked or written.
    async fn note_scheduled(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
        again: &[Delivery],
        held: &[Delivery],
    ) {
        let due = again.iter().map(|delivery| delivery.not_before).max();
        let Some(latest) = due.into_iter().chain(held.iter().map(Delivery::expires_first)).max() else {
            return;
        };
        let now = self.clock.now();
        let waits_until = wait_noted_at(due.map_or(now, |due| due.max(now)));
        let noted = async {
            self.activity.of_its_topic(&*self.state, subscription, latest).await;
            self.activity.of_subscription(&*self.state, subscription, waits_until).await;
        };
        stop_at(&self.clock, invocation.deadlines.storing(), noted).await;
    }
}
