//! Notes that an event waits for a subscription, written before the event goes to the queue, where the sweep
//! of idle subscriptions does not see it.

use std::time::Duration;

use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::{Subscription, Timestamp};
use posthaste_core::release::parked::is_late;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Ports};
use posthaste_services::{Activity, Registry, timeout_at};

use crate::ports::WakePorts;

/// How long a note may take that keeps an idle subscription.
const NOTED_WITHIN: Duration = Duration::from_secs(2);

/// Writes the notes.
pub(crate) struct WaitNotes<'a, P: Ports> {
    registry: &'a Registry<P::Store, P::Clock>,
    store: &'a P::Store,
    clock: &'a P::Clock,
    activity: &'a Activity,
}

impl<'a, P: Ports> WaitNotes<'a, P> {
    pub(crate) fn new(ports: &'a WakePorts<P>, activity: &'a Activity) -> Self {
        Self { registry: &ports.registry, store: &ports.state, clock: &ports.clock, activity }
    }

    /// Notes it for the subscription of a parked object that is released late: deliver's note is old by then.
    pub(crate) async fn note_late(&self, key: &str) {
        let now = self.clock.now();
        let owner = layout::parked_folder(key).filter(|_| is_late(key, now)).and_then(layout::folder_owner);
        let Some((topic, subscription)) = owner else { return };
        let topic = self.registry.topic(&topic).await.ok().flatten();
        if let Some(found) = topic.as_ref().and_then(|topic| topic.subscription(&subscription)) {
            self.note(found, now).await;
        }
    }

    /// Notes it for this subscription. A release does not wait long for its note: without one the sweep may
    /// delete an idle subscription early.
    pub(crate) async fn note(&self, subscription: &Subscription, now: Timestamp) {
        let noted = Box::pin(self.activity.of_subscription(self.store, subscription, wait_noted_at(now)));
        let _ = timeout_at(self.clock, self.clock.monotonic() + NOTED_WITHIN, noted).await;
    }
}
