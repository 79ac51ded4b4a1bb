//! The payload of an event that is sent again: from the delivery log, the state bucket or a dead
//! letter.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::delivery_log::ResendChoice;
use posthaste_core::events::Event;
use posthaste_core::model::{EarlierLife, LetterPlace, Subscription, Timestamp};
use posthaste_core::stored::{WrittenIn, layout};
use posthaste_ports::{Clock, Ports};
use posthaste_services::kept_event::KeptEvent;

use crate::answer::ApiError;
use crate::dead_letters::owners::DeadLetterScope;
use crate::dead_letters::search::{CLOCKS_DIFFER_MAX, is_lasting};
use crate::dead_letters::walk::{DatedObject, NewestFirstWalk, WalkStep};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Longest time for a search of the dead letters. A read that begins just before its end still ends
/// before the request's time limit.
const SEARCH_TIME: Duration = Duration::from_secs(8);

/// Most dead-letter objects that are read, so that a search ends even if the clock stands still.
const OBJECTS_MAX: usize = 10_000;

/// The reason why an event that the log knows has no payload there.
const NO_PAYLOAD: &str = "neither the delivery log nor a dead letter has its payload: deliveryLog of the \
    topic is attempts, the event has more than 65,536 bytes, or its first attempt is older than the log";

/// The problem of an id that is nowhere.
const UNKNOWN: &str = "neither the delivery log nor a dead letter of the subscription has an event of this \
    id and key; one that was never tried is not in the log yet";

/// Added to it if the search of the dead letters did not come to its end.
const SEARCH_CUT: &str = "; there are more dead letters than can be searched in one request";

/// An event that can be sent again.
pub(super) struct ResendableEvent {
    pub(super) event: Event,
    /// The `webhook-id` that it keeps.
    pub(super) webhook_id: String,
    /// Whether the id is made of the dead letter's place, because the letter does not say one.
    pub(super) is_id_made: bool,
    /// The dead letter that it became.
    pub(super) letter: Option<LetterPlace>,
    /// The life of the event until now, if its first acceptance is known.
    pub(super) earlier: Option<EarlierLife>,
}

/// The event that is sent, and what the note says of it.
pub(super) struct ResendPlan {
    pub(super) found: ResendableEvent,
    pub(super) is_waiting: bool,
}

/// The payloads that are kept of events.
pub(super) struct KeptPayloads<P: Ports> {
    state: SharedPort<P, P::Store>,
    dead_letters: SharedPort<P, P::DeadLetters>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for KeptPayloads<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> KeptPayloads<P> {
    /// The payload of the delivery that was chosen, or of a copy of it.
    pub(super) async fn kept_payload(
        &self,
        chosen: &ResendChoice<'_>,
        to: &Subscription,
        id: &str,
    ) -> Result<ResendableEvent, ApiError> {
        let kept = self.kept_event(to, id);
        for history in &chosen.with_payload {
            if let Some(event) = kept.find_event(history).await? {
                // One that cannot be read is not resolved by sending it again.
                let letter = kept.find_letter(chosen.history).await.unwrap_or_default();
                return Ok(ResendableEvent {
                    event,
                    webhook_id: chosen.history.webhook_id(),
                    is_id_made: false,
                    letter,
                    earlier: Some(EarlierLife {
                        accepted_at: history.first().accepted_at,
                        recoveries: 0,
                    }),
                });
            }
        }
        Err(payload_gone_problem(chosen).into())
    }

    fn kept_event<'a>(
        &'a self,
        to: &'a Subscription,
        id: &'a str,
    ) -> KeptEvent<'a, P::Store, P::DeadLetters> {
        KeptEvent {
            state: &*self.state,
            dead_letters: &*self.dead_letters,
            to,
            id,
            include_former: false,
        }
    }

    /// The newest dead letter of this id and, with a key, of this delivery, where the log has no
    /// record of the event.
    /// `searched_from` says how far the log was searched, if not wholly.
    pub(super) async fn dead_letter_of(
        &self,
        to: &Subscription,
        id: &str,
        delivery_key: Option<&str>,
        searched_from: Option<Timestamp>,
    ) -> Result<ResendableEvent, ApiError> {
        let scope = DeadLetterScope::Subscription(layout::dead_letters_of(&to.topic, &to.name));
        let (owners, _) = scope.list_owners(&*self.dead_letters).await?;
        let mut walk = NewestFirstWalk::new(
            owners,
            WrittenIn::default(),
            self.clock.now() + CLOCKS_DIFFER_MAX,
        );
        let end = self.clock.monotonic() + SEARCH_TIME;
        let mut read = 0;
        loop {
            let objects = match walk
                .next_step(&*self.dead_letters, || self.clock.monotonic() < end)
                .await?
            {
                WalkStep::Objects(objects) => objects,
                WalkStep::Cut(_) => return Err(unknown_event(searched_from, true)),
                WalkStep::End => return Err(unknown_event(searched_from, false)),
            };
            for DatedObject { key, .. } in objects {
                if read == OBJECTS_MAX || self.clock.monotonic() >= end {
                    return Err(unknown_event(searched_from, true));
                }
                read += 1;
                let found = match self
                    .kept_event(to, id)
                    .newest_letter_in(&key, delivery_key)
                    .await
                {
                    // It is named where dead letters are listed.
                    Err(error) if is_lasting(&error) => continue,
                    found => found?,
                };
                if let Some((index, letter)) = found {
                    return Ok(ResendableEvent {
                        webhook_id: letter.webhook_id_at(&key, index),
                        is_id_made: letter.webhook_id.is_none(),
                        earlier: letter.earlier_life(),
                        event: letter.event,
                        letter: Some(LetterPlace { object: key, index }),
                    });
                }
            }
        }
    }
}

fn payload_gone_problem(chosen: &ResendChoice<'_>) -> ApiProblem {
    let reference = chosen.history.payload_reference.as_deref();
    let detail = match (
        reference.and_then(layout::payload_kept_until),
        &chosen.history.dead_letter_object,
    ) {
        (Some(until), _) => format!("its payload was kept until {until}"),
        (None, Some(object)) => {
            format!(
                "its payload was in the dead letter {object}, which is gone or does not tell it from others"
            )
        }
        (None, None) => NO_PAYLOAD.to_owned(),
    };
    ApiProblem::new(ProblemKind::PayloadGone).detail(detail)
}

fn unknown_event(searched_from: Option<Timestamp>, is_cut: bool) -> ApiError {
    let log = searched_from.map(|since| format!("; the log was only searched back to {since}"));
    let letters = if is_cut { SEARCH_CUT } else { "" };
    let detail = format!("{UNKNOWN}{}{letters}", log.unwrap_or_default());
    ApiProblem::new(ProblemKind::NotFound).detail(detail).into()
}

/// The problem of an event that a former owner of the names accepted.
pub(super) fn former_owner_problem(to: &Subscription) -> ApiProblem {
    let detail = format!(
        "the event was accepted for an earlier subscription {} or an earlier topic of this name",
        to.name
    );
    ApiProblem::new(ProblemKind::NotFound).detail(detail)
}
