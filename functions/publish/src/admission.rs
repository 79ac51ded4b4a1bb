//! Admission under back pressure: a request goes on, waits, or is turned away, as `core::pressure`
//! decides. No body is read before.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use parking_lot::Mutex;
use posthaste_core::model::{ProducerTier, Topic, TopicName};
use posthaste_core::pressure::{self, AdvisedPlaces};
use posthaste_services::AdmissionResult;
use tokio::sync::OwnedSemaphorePermit;

use crate::body::BodyBudget;
use crate::error::{BackPressureResponse, PublishError};
use crate::meter;
use crate::settings::TarpitMode;

/// The turns of topics where the tarpit advises, in this process. Clones share the places.
#[derive(Debug, Clone, Default)]
pub struct TarpitTurns(Arc<Mutex<AdvisedPlaces>>);

/// A place that was taken. It is given back when this is dropped before it was kept: by a request
/// that publishes nothing, so that a producer of invalid events takes no turns from the others.
pub(crate) struct TakenTurn {
    advice: TarpitTurns,
    taken: Option<(TopicName, ProducerTier)>,
}

/// The door of the function at one moment.
pub(crate) struct AdmissionGate<'a> {
    /// The memory for bodies.
    pub(crate) bodies: &'a BodyBudget,
    /// The turns of topics.
    pub(crate) advice: &'a TarpitTurns,
    /// The effect of the tarpit.
    pub(crate) tarpit: TarpitMode,
    /// The time, by the clock's `monotonic`.
    pub(crate) now: Duration,
}

/// A request that goes on.
pub(crate) struct AdmittedRequest {
    /// The time for which its acknowledgement waits.
    pub(crate) wait: Duration,
    /// The value of the header `Posthaste-Pressure`, if there is pressure.
    pub(crate) pressure: Option<String>,
    /// True if its payloads go to the object store.
    pub(crate) dehydrate: bool,
    /// The time until what is due now is delivered, as far as the pressure shows it.
    pub(crate) drain: Duration,
    /// The room for its body.
    pub(crate) room: OwnedSemaphorePermit,
    /// The place of the request, where the tarpit advises.
    pub(crate) place: Option<TakenTurn>,
}

impl TarpitTurns {
    /// Takes the place of the topic's tier, if it is free.
    fn take_turn(
        &self,
        topic: &TopicName,
        tier: ProducerTier,
        delay: Duration,
        now: Duration,
    ) -> Option<TakenTurn> {
        let is_taken = self.with_places(|places| places.take_place(topic, tier, delay, now));
        is_taken.then(|| TakenTurn {
            advice: self.clone(),
            taken: Some((topic.clone(), tier)),
        })
    }

    /// The lock is held for a look at a map, never while something is awaited.
    fn with_places<T>(&self, look: impl FnOnce(&mut AdvisedPlaces) -> T) -> T {
        look(&mut self.0.lock())
    }
}

impl TakenTurn {
    /// Keeps the place taken for the delay.
    pub(crate) fn keep(mut self) {
        self.taken = None;
    }
}

impl Drop for TakenTurn {
    fn drop(&mut self) {
        if let Some((topic, tier)) = self.taken.take() {
            self.advice
                .with_places(|places| places.give_back(&topic, tier));
        }
    }
}

impl AdmissionGate<'_> {
    /// Applies the decision, and reserves the room for the body. The place of the topic is taken
    /// last, by a request that has everything else it needs to go on.
    pub(crate) fn admit_request(
        &self,
        topic: &Topic,
        tier: ProducerTier,
        admitted: AdmissionResult,
        body: &Body,
    ) -> Result<AdmittedRequest, PublishError> {
        if let pressure::Admission::Refuse { retry_after, .. } = admitted.admission {
            meter::count_refused(&topic.name, tier);
            return Err(PublishError::Refused(back_pressure_response(
                admitted,
                retry_after,
            )));
        }
        let room = self.bodies.reserve_room(body).map_err(PublishError::Body)?;
        let (wait, place) = match (admitted.admission, self.tarpit) {
            (pressure::Admission::Delay(wait), TarpitMode::Delay) => {
                if admitted.is_held_back() {
                    meter::count_delayed(&topic.name, tier);
                }
                (wait, None)
            }
            // The wait of every acknowledgement at rest is not advised: a producer that came back
            // would get it again.
            (pressure::Admission::Delay(wait), TarpitMode::Advise) if admitted.is_held_back() => {
                let Some(place) = self.advice.take_turn(&topic.name, tier, wait, self.now) else {
                    meter::count_delayed(&topic.name, tier);
                    return Err(PublishError::Advised(back_pressure_response(
                        admitted, wait,
                    )));
                };
                (Duration::ZERO, Some(place))
            }
            (pressure::Admission::Delay(_), TarpitMode::Advise)
            | (pressure::Admission::Accept | pressure::Admission::Refuse { .. }, _) => {
                (Duration::ZERO, None)
            }
        };
        Ok(AdmittedRequest {
            wait,
            pressure: admitted.header,
            dehydrate: admitted.dehydrate,
            drain: admitted.drain,
            room,
            place,
        })
    }
}

fn back_pressure_response(
    admitted: AdmissionResult,
    retry_after: Duration,
) -> Box<BackPressureResponse> {
    Box::new(BackPressureResponse {
        retry_after,
        header: admitted.header,
        pressing: admitted.pressing,
    })
}
