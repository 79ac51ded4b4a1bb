//! Notes that an event waits for a subscription, written before the event goes to the queue, where
//! the sweep of idle subscriptions does not see it.

use std::time::Duration;

use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::{Subscription, Timestamp};
use posthaste_core::release::parked::is_late;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Ports};
use posthaste_services::timeout;

use crate::ports::WakePorts;

/// Longest time that a release waits for its note.
const NOTED_WITHIN: Duration = Duration::from_secs(2);

/// Writes the note for the subscription of a parked object that is released late, when deliver's
/// note is old, or that publish parked, without a note.
pub(crate) async fn note_late<P: Ports>(ports: &WakePorts<P>, key: &str) {
    let now = ports.clock.now();
    let owner = layout::parked_folder(key)
        .filter(|_| layout::is_scheduled(key) || is_late(key, now))
        .and_then(layout::folder_owner);
    let Some((topic, subscription)) = owner else {
        return;
    };
    let topic = ports.registry.topic(&topic).await.ok().flatten();
    if let Some(found) = topic
        .as_ref()
        .and_then(|topic| topic.find_subscription(&subscription))
    {
        note_for_subscription(ports, found, now).await;
    }
}

/// Writes the note for this subscription, unless that takes long: without a note the sweep may
/// delete an idle subscription early.
pub(crate) async fn note_for_subscription<P: Ports>(
    ports: &WakePorts<P>,
    subscription: &Subscription,
    now: Timestamp,
) {
    let WakePorts {
        state,
        activity,
        clock,
        ..
    } = ports;
    let noted = Box::pin(activity.note_subscription(state, subscription, wait_noted_at(now)));
    let _ = timeout(clock, NOTED_WITHIN, noted).await;
}
