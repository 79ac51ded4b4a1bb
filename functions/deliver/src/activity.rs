//! Noting that something happens to subscriptions and topics that go when they are idle. Nothing is asked or
//! written for those that stay.

use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::topic::Subscription;
use posthaste_ports::{Clock, Ports};

use crate::Deliver;
use crate::invocation::{Invocation, Job};

impl<P: Ports> Deliver<P> {
    /// Notes an attempt of a subscription, whatever came of it. Cut off, the next one is noted.
    pub(crate) async fn note_attempt(&self, invocation: &Invocation, subscription: &Subscription) {
        let now = self.ports.clock.now();
        let noted = self.activity.of_subscription(&self.ports.state, subscription, now);
        self.before(invocation.parking_ends(), noted).await;
    }

    /// Notes for a message's topic when what is tried again falls due, and what is held ends, and for its
    /// subscription that something waits, until a while after what is tried again falls due: until then they
    /// are not idle. wake sees what waits in the object store, but not what it has just sent to the queue.
    pub(crate) async fn note_scheduled(
        &self,
        invocation: &Invocation,
        job: &Job,
        again: &[Delivery],
        held: &[Delivery],
    ) {
        let Some(subscription) = &job.subscription else { return };
        let due = again.iter().map(|delivery| delivery.not_before).max();
        let Some(latest) = due.into_iter().chain(held.iter().map(Delivery::expires_first)).max() else {
            return;
        };
        let now = self.ports.clock.now();
        let waits_until = wait_noted_at(due.map_or(now, |due| due.max(now)));
        let state = &self.ports.state;
        let noted = async {
            self.activity.of_its_topic(state, subscription, latest).await;
            self.activity.of_subscription(state, subscription, waits_until).await;
        };
        self.before(invocation.parking_ends(), noted).await;
    }
}
