//! The door of the function under back pressure: who goes on, who waits, and who is turned away. What is decided here is
//! decided in `core::pressure`; nothing of a body is read before.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use posthaste_core::name::TopicName;
use posthaste_core::pressure::{Admission, Places, Tier};
use posthaste_core::topic::Topic;
use posthaste_ports::{Admitted, Clock, Entropy, ObjectStore, QueueSender};
use tokio::sync::OwnedSemaphorePermit;

use crate::{Publish, PublishError, Tarpit, TurnedAway, meter};

/// Whose turn it is where the tarpit advises, in this process.
#[derive(Debug, Default)]
pub struct Advice(Mutex<Places>);

/// A request that goes on.
pub(crate) struct Entered {
    /// How long its acknowledgement waits.
    pub(crate) wait: Duration,
    /// What its producer is told of the pressure, if there is any.
    pub(crate) pressure: Option<String>,
    /// Whether its payloads go to the object store.
    pub(crate) dehydrate: bool,
    /// The room for its body.
    pub(crate) room: OwnedSemaphorePermit,
}

impl Advice {
    /// The lock is held for a look at a map, never while something is awaited.
    fn take(&self, topic: &TopicName, delay: Duration, now: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(topic, delay, now)
    }
}

impl<Q, S, C, E> Publish<Q, S, C, E>
where
    Q: QueueSender + 'static,
    S: ObjectStore + 'static,
    C: Clock,
    E: Entropy,
{
    /// Does as was decided, and takes the room for the body. The place of its topic is taken last, by a request that has
    /// everything else it needs to go on.
    pub(crate) fn enter(
        &self,
        topic: &Topic,
        tier: Tier,
        admitted: Admitted,
        body: &Body,
    ) -> Result<Entered, PublishError> {
        if let Admission::Refuse { retry_after, .. } = admitted.admission {
            meter::refused(&topic.name, tier);
            return Err(PublishError::Refused(turned_away(admitted, retry_after)));
        }
        let room = self.bodies.reserve(body).map_err(PublishError::Body)?;
        let wait = match (admitted.admission, self.settings.tarpit) {
            (Admission::Delay(wait), Tarpit::Delay) => {
                meter::delayed(&topic.name, tier);
                wait
            }
            // What every acknowledgement waits at rest is not advised: whoever came back would hear it again.
            (Admission::Delay(wait), Tarpit::Advise) if admitted.is_held_back() => {
                if !self.advice.take(&topic.name, wait, self.clock.monotonic()) {
                    meter::delayed(&topic.name, tier);
                    return Err(PublishError::Advised(turned_away(admitted, wait)));
                }
                Duration::ZERO
            }
            (Admission::Delay(_), Tarpit::Advise) | (Admission::Accept | Admission::Refuse { .. }, _) => {
                Duration::ZERO
            }
        };
        Ok(Entered { wait, pressure: admitted.header, dehydrate: admitted.dehydrate, room })
    }
}

fn turned_away(admitted: Admitted, retry_after: Duration) -> Box<TurnedAway> {
    Box::new(TurnedAway { retry_after, header: admitted.header, pressing: admitted.pressing })
}
