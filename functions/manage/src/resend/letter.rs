//! A dead letter that is sent again by its place.

use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::DeadLetterPlace;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::delivery_log::{DeliveryHistory, choose_delivery, is_same_log_text};
use posthaste_core::model::{LetterPlace, Subscription, is_object_key};
use posthaste_core::stored::dead_letter::restore_all;
use posthaste_core::stored::{RestoredLetter, layout};
use posthaste_ports::Ports;

use super::payload::{ResendPlan, ResendableEvent, former_owner_problem};
use crate::answer::ApiError;
use crate::letters::LetterReader;
use crate::manage::Manage;

/// The problem of a request that names its event twice.
const KEY_BESIDE_LETTER: &str = "name the key of a delivery or a dead letter, not both";

/// The problem of an object of others.
const OTHER_OWNER: &str = "the object is not one of the subscription's dead letters";

/// The problem of a key that no store takes.
const NO_OBJECT: &str = "no object can have this key";

/// The dead letters that requests name by their place.
pub(super) struct PlacedLetters<P: Ports> {
    letters: LetterReader<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for PlacedLetters<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            letters: LetterReader::from_ref(manage),
        }
    }
}

impl<P: Ports> PlacedLetters<P> {
    /// The dead letter at this place. `histories` say whether its delivery still waits and, of a
    /// letter of release 0.1, its `webhook-id`.
    pub(super) async fn plan_letter_resend(
        &self,
        place: &DeadLetterPlace,
        key: Option<&str>,
        histories: &[DeliveryHistory],
        to: &Subscription,
        id: &str,
    ) -> Result<ResendPlan, ApiError> {
        if key.is_some() {
            return Err(bad_member("key", KEY_BESIDE_LETTER));
        }
        let letter = self.letter_at(place, to, id).await?;
        let buried = delivery_of_letter(histories, place, &letter);
        let chosen = buried
            .and_then(|history| choose_delivery(histories, &to.created, Some(&history.key)).ok());
        let is_waiting = chosen.is_some_and(|chosen| chosen.is_waiting);
        let DeadLetterPlace { object, index } = place.clone();
        let known = letter.webhook_id.clone();
        let known = known.or_else(|| buried.map(DeliveryHistory::webhook_id));
        let is_id_made = known.is_none();
        let webhook_id = known.unwrap_or_else(|| letter.webhook_id_at(&object, index));
        let earlier = letter.earlier_life();
        let found = ResendableEvent {
            event: letter.event,
            earlier,
            webhook_id,
            is_id_made,
            letter: Some(LetterPlace { object, index }),
        };
        Ok(ResendPlan { found, is_waiting })
    }

    async fn letter_at(
        &self,
        place: &DeadLetterPlace,
        to: &Subscription,
        id: &str,
    ) -> Result<RestoredLetter, ApiError> {
        if !place
            .object
            .starts_with(&layout::dead_letters_of(&to.topic, &to.name))
        {
            return Err(bad_member("deadLetter.object", OTHER_OWNER));
        }
        if !is_object_key(&place.object) {
            return Err(bad_member("deadLetter.object", NO_OBJECT));
        }
        let object = self.letters.letter_object(&place.object).await?;
        let object = object.ok_or_else(|| not_found("there is no such object"))?;
        let letters = restore_all(&object.bytes, to.delivery_schema).unwrap_or_default();
        let letter = letters.into_iter().nth(place.index).and_then(Result::ok);
        let letter = letter.filter(|letter| is_same_log_text(letter.event.id(), id));
        let letter =
            letter.ok_or_else(|| not_found("there is no dead letter of this id at this place"))?;
        if letter.is_for(&to.created) {
            Ok(letter)
        } else {
            Err(former_owner_problem(to).into())
        }
    }
}

/// The delivery that became this dead letter, if the log says it.
fn delivery_of_letter<'a>(
    histories: &'a [DeliveryHistory],
    place: &DeadLetterPlace,
    letter: &RestoredLetter,
) -> Option<&'a DeliveryHistory> {
    if let Some(key) = &letter.delivery_key {
        return histories.iter().find(|history| history.key == *key);
    }
    let mut of_letter = histories.iter().filter(|history| {
        history.dead_letter_object.as_ref() == Some(&place.object)
            && letter
                .published_at
                .is_none_or(|at| at == history.first().accepted_at)
    });
    of_letter.next().filter(|_| of_letter.next().is_none())
}

fn bad_member(member: &str, detail: &str) -> ApiError {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(member)
        .detail(detail)
        .into()
}

fn not_found(detail: &str) -> ApiError {
    ApiProblem::new(ProblemKind::NotFound).detail(detail).into()
}
