//! Late answers: a request that timed out goes on in the background for a while. If its endpoint
//! succeeds after all, that is noted under each event's key. A later attempt that finds the note is
//! not made.
//!
//! Best effort: settling does not wait for it, and it undoes nothing that was settled. Without a
//! listener ([`Deliver::hear_late_answers`](crate::Deliver::hear_late_answers)) a request ends with
//! its timeout.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use metrics::counter;
use parking_lot::Mutex;
use posthaste_core::attempt::BatchEvent;
use posthaste_core::circuit::DeliveryTarget;
use posthaste_core::model::{LATE_ANSWER_MAX, LATE_ANSWERS_PER_LINK_MAX, Link, Subscription};
use posthaste_core::stored::layout;
use posthaste_ports::{
    Clock, LateAnswer, ObjectStore, PortError, Ports, PutCondition, WebhookResponse,
};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::outbound::acknowledged_by_response;
use posthaste_services::{DrainMeter, stop_at};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tracing::field::display;

use crate::concurrency::{ConcurrencyBound, ConcurrencyLimits, RequestPermit};

/// Notes written at once.
const NOTES_AT_ONCE: usize = 8;

/// The requests that go on.
pub(crate) struct LateAnswers<P: Ports> {
    state: Arc<P::Store>,
    clock: P::Clock,
    /// Limits their number, so that a hanging endpoint cannot pile up connections.
    limits: ConcurrencyLimits,
    /// The way to the listener, if there is one.
    listener: Mutex<Option<UnboundedSender<OngoingRequest>>>,
    closed: CancellationToken,
}

/// A request that timed out.
#[derive(Debug)]
pub(crate) struct LateRequest {
    pub(crate) answer: LateAnswer,
    pub(crate) webhook_id: String,
}

/// One request that goes on.
#[derive(Debug)]
struct OngoingRequest {
    request: LateRequest,
    link: Link,
    subscription: Arc<Subscription>,
    events: Vec<LateEvent>,
    /// The time at which it is given up, by the clock's `monotonic`.
    until: Duration,
    /// The right to go on.
    _permit: RequestPermit,
}

/// An event of such a request.
#[derive(Debug)]
pub(crate) struct LateEvent {
    pub(crate) key: String,
    /// The event's text, where the answer may name the events that failed.
    pub(crate) text: Bytes,
    /// The id of the envelope of a custom event.
    pub(crate) envelope_id: Option<String>,
}

/// Stops handing requests to a listener that has ended.
struct ListenerGuard<'a>(&'a Mutex<Option<UnboundedSender<OngoingRequest>>>);

impl Drop for ListenerGuard<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl<P: Ports> LateAnswers<P> {
    /// At most `max` late answers until `closed` is cancelled: then the requests that go on end,
    /// and no other may go on.
    pub(crate) fn new(
        state: Arc<P::Store>,
        clock: P::Clock,
        max: usize,
        closed: CancellationToken,
    ) -> Self {
        let per_link = LATE_ANSWERS_PER_LINK_MAX;
        // No request waits for these.
        let drain = DrainMeter::default();
        let bound = ConcurrencyBound::fixed(per_link);
        let limits = ConcurrencyLimits::new(max, bound, per_link, drain, closed.clone());
        Self {
            state,
            clock,
            limits,
            listener: Mutex::default(),
            closed,
        }
    }

    /// Lets a request that timed out go on, if there is a listener and room.
    pub(crate) fn continue_request(
        &self,
        request: LateRequest,
        target: &DeliveryTarget,
        subscription: &Arc<Subscription>,
        events: impl FnOnce() -> Vec<LateEvent>,
    ) {
        let Some(sender) = self.listener.lock().clone() else {
            return;
        };
        let Some(permit) = self.limits.try_enter(target) else {
            tracing::debug!(
                webhook_id = request.webhook_id, topic = %subscription.topic,
                subscription = %subscription.name, link = %target.link(),
                "a late answer is not waited for, there are too many"
            );
            return;
        };
        let until = self.clock.monotonic() + LATE_ANSWER_MAX;
        let link = target.link().clone();
        let subscription = Arc::clone(subscription);
        let events = events();
        // A listener that ends in this moment has ended the request.
        let _ = sender.send(OngoingRequest {
            request,
            link,
            subscription,
            events,
            until,
            _permit: permit,
        });
    }

    /// Waits for late answers until they are closed. Dropping it ends the requests.
    pub(crate) async fn listen_until_closed(&self) {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => {}
            () = self.listen() => {}
        }
    }

    async fn listen(&self) {
        let (sender, mut receiver) = unbounded_channel();
        *self.listener.lock() = Some(sender);
        let _listening = ListenerGuard(&self.listener);
        let mut waiting = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(next) = receiver.recv() => waiting.push(catch_panic(self.hear_one(next))),
                Some(heard) = waiting.next(), if !waiting.is_empty() => {
                    if heard.is_err() {
                        tracing::error!("waiting for a late answer panicked");
                    }
                }
                else => return,
            }
        }
    }

    async fn hear_one(&self, waiting: OngoingRequest) {
        let OngoingRequest {
            request,
            link,
            subscription,
            events,
            until,
            _permit,
        } = waiting;
        let LateRequest { answer, webhook_id } = request;
        let Some(answer) = stop_at(&self.clock, until, answer).await else {
            return;
        };
        let topic = &subscription.topic;
        let name = &subscription.name;
        let status = answer
            .as_ref()
            .ok()
            .map(|response| response.status.as_u16());
        let error = answer.as_ref().err().map(display);
        let arrived = match &answer {
            Ok(response) if (200..=204).contains(&response.status.as_u16()) => {
                arrived_keys(&subscription, events, response)
            }
            Ok(_) | Err(_) => Vec::new(),
        };
        if arrived.is_empty() {
            tracing::debug!(
                webhook_id, %topic, subscription = %name, %link, status, error,
                "a late answer was no success"
            );
            return;
        }
        count_late_deliveries(&subscription, arrived.len());
        let events = arrived.len();
        tracing::info!(
            webhook_id, %topic, subscription = %name, %link, status, events, "delivered late"
        );
        // Owned, because futures that borrow from a stream's items are not known to be `Send`.
        let keys: Vec<_> = arrived
            .iter()
            .map(|key| layout::late_answer_key(topic, name, key))
            .collect();
        let notes = stream::iter(keys)
            .map(|key| self.put_note(key))
            .buffer_unordered(NOTES_AT_ONCE);
        let failures: Vec<PortError> = notes.filter_map(|noted| ready(noted.err())).collect().await;
        if let Some(error) = failures.first() {
            let error = error as &dyn std::error::Error;
            tracing::warn!(
                webhook_id, %topic, subscription = %name, %link, events = failures.len(), error,
                "late answers not stored, their events are sent again"
            );
        }
    }

    async fn put_note(&self, key: String) -> Result<(), PortError> {
        self.state
            .put(&key, Bytes::new(), PutCondition::Always)
            .await
            .map(|_| ())
    }
}

fn count_late_deliveries(subscription: &Subscription, events: usize) {
    let labels = [
        ("topic", subscription.topic.to_string()),
        ("subscription", subscription.name.to_string()),
    ];
    counter!("LateDeliverySuccessCount", &labels).increment(events as u64);
}

/// The keys of the events that arrived by this answer of success.
fn arrived_keys(
    subscription: &Subscription,
    events: Vec<LateEvent>,
    response: &WebhookResponse,
) -> Vec<String> {
    let batch = events.iter().map(|event| BatchEvent {
        text: &event.text,
        envelope_id: event.envelope_id.as_deref(),
    });
    let acknowledged = acknowledged_by_response(subscription, response, batch);
    let arrived = events
        .into_iter()
        .enumerate()
        .filter(|(index, _)| acknowledged.includes(*index));
    arrived.map(|(_, event)| event.key).collect()
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::PortOperation;
    use serde_json::json;

    use super::*;
    use crate::testing::{TestPorts, World, response, subscription, target};

    fn late_answers(world: &World) -> LateAnswers<TestPorts> {
        LateAnswers::new(
            Arc::clone(&world.state),
            world.clock.clone(),
            posthaste_core::model::LATE_ANSWERS_MAX,
            world.stopped.clone(),
        )
    }

    fn events(count: usize) -> Vec<LateEvent> {
        let event = |index| LateEvent {
            key: format!("k-{index}"),
            text: Bytes::from(format!(r#"{{"id":"{index}"}}"#)),
            envelope_id: None,
        };
        (0..count).map(event).collect()
    }

    fn request(answer: LateAnswer) -> LateRequest {
        LateRequest {
            answer,
            webhook_id: "msg_1".to_owned(),
        }
    }

    /// The keys of the notes after a request of two events was answered so late.
    async fn noted(
        world: &World,
        more: serde_json::Value,
        status: u16,
        body: &'static str,
    ) -> Vec<String> {
        let late = late_answers(world);
        let own = subscription(more);
        let answer = LateAnswer::new(async move { Ok(response(status, None, body)) });
        let send = async {
            while late.listener.lock().is_none() {
                tokio::task::yield_now().await;
            }
            late.continue_request(request(answer), &target(&own), &own, || events(2));
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            world.stopped.cancel();
        };
        tokio::join!(late.listen_until_closed(), send);
        let page = world.memory.list(layout::LATE, None, 10).await.unwrap();
        page.objects.into_iter().map(|object| object.key).collect()
    }

    fn keys(keys: &[&str]) -> Vec<String> {
        let own = subscription(json!({}));
        keys.iter()
            .map(|key| layout::late_answer_key(&own.topic, &own.name, key))
            .collect()
    }

    #[tokio::test]
    async fn a_late_success_is_noted_for_each_event() {
        assert_eq!(
            noted(&World::new(), json!({}), 204, "").await,
            keys(&["k-0", "k-1"])
        );
    }

    #[tokio::test]
    async fn a_late_failure_is_not_noted() {
        assert_eq!(noted(&World::new(), json!({}), 500, "").await, keys(&[]));
    }

    #[tokio::test]
    async fn a_late_report_names_the_events_that_failed() {
        let batching =
            json!({ "batching": { "maxEventsPerBatch": 10, "partialAcknowledgement": true } });
        let body = r#"{"batchItemFailures":[{"itemIdentifier":"1"}]}"#;
        assert_eq!(
            noted(&World::new(), batching, 200, body).await,
            keys(&["k-0"])
        );
    }

    #[tokio::test]
    async fn without_a_listener_a_request_ends_with_its_timeout() {
        let world = World::new();
        let own = subscription(json!({}));
        let late = late_answers(&world);
        let answer = || LateAnswer::new(async { Ok(response(204, None, "")) });
        late.continue_request(request(answer()), &target(&own), &own, || {
            panic!("gathered")
        });
        world.stopped.cancel();
        late.listen_until_closed().await;
        late.continue_request(request(answer()), &target(&own), &own, || {
            panic!("gathered")
        });
        assert_eq!(world.calls.count(PortOperation::Put), 0);
    }
}
