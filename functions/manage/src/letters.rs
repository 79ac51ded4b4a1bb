//! The letters of one dead-letter object that a request selects.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::FromRef;
use futures_util::future::try_join;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{LeftOutCounts, ReplayFailure};
use posthaste_core::model::SubscriptionCreation;
use posthaste_core::release::{ReplayRequestError, ReplaySelection};
use posthaste_core::stored::dead_letter::restore_all;
use posthaste_core::stored::{LetterReceiver, ResolvedLetters, RestoredLetter};
use posthaste_ports::{ErrorKind, ObjectStore, PortError, Ports, StoredObject};
use posthaste_services::resolved::resolved_letters;

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// A letter that was selected.
#[derive(Debug)]
pub(crate) struct SelectedLetter {
    /// Place in the object, from 0.
    pub(crate) index: usize,
    pub(crate) letter: RestoredLetter,
}

/// The letters of an object.
#[derive(Debug, Default)]
pub(crate) struct SelectedLetters {
    /// Those that were selected.
    pub(crate) selected: Vec<SelectedLetter>,
    /// The number of those that would be selected, but are resolved.
    pub(crate) resolved: u64,
    /// The numbers of the others that were left out.
    pub(crate) left_out: LeftOutCounts,
    /// Those that cannot be read, or the whole object.
    pub(crate) broken: Vec<ReplayFailure>,
    /// The places of those that were not selected and are not resolved.
    pub(crate) others: BTreeSet<usize>,
}

/// The reader of dead-letter objects.
pub(crate) struct LetterReader<P: Ports> {
    dead_letters: SharedPort<P, P::DeadLetters>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for LetterReader<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
        }
    }
}

impl<P: Ports> LetterReader<P> {
    /// The dead-letter object of a key that a caller named. `None` also where the store refuses the
    /// key: then no object can have it.
    pub(crate) async fn letter_object(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        match self.dead_letters.get(key).await {
            Err(error) if error.kind == ErrorKind::Invalid => Ok(None),
            read => read,
        }
    }

    /// Reads an object, and selects from its letters.
    pub(crate) async fn select_letters(
        &self,
        key: &str,
        selection: &ReplaySelection,
        receiver: &LetterReceiver,
    ) -> Result<SelectedLetters, ApiError> {
        let (object, resolved) = try_join(
            self.letter_object(key),
            resolved_letters(&*self.dead_letters, key),
        )
        .await?;
        let Some(StoredObject { bytes, .. }) = object else {
            return Ok(SelectedLetters::broken_object(
                key,
                "there is no such object",
            ));
        };
        let letters = match restore_all(&bytes, receiver.schema) {
            Ok(letters) => letters,
            Err(error) => return Ok(SelectedLetters::broken_object(key, &error.to_string())),
        };
        let mut of_object = SelectedLetters::default();
        of_object.check_places(key, selection, letters.len());
        for (index, letter) in letters.into_iter().enumerate() {
            if !selection.may_mean_letter(key, index) {
                of_object.keep_other(index, &resolved);
                continue;
            }
            match letter {
                Ok(letter) => {
                    let letter = SelectedLetter { index, letter };
                    of_object.add_letter(letter, &resolved, selection, &receiver.created);
                }
                Err(error) => {
                    let failure = ReplayFailure::of_letter(key, index, error.to_string());
                    of_object.broken.push(failure);
                }
            }
        }
        Ok(of_object)
    }
}

impl SelectedLetters {
    fn broken_object(key: &str, why: &str) -> Self {
        Self {
            broken: vec![ReplayFailure::of_object(key, why.to_owned())],
            ..Self::default()
        }
    }

    /// Counts places that a request names and the object does not have.
    fn check_places(&mut self, key: &str, selection: &ReplaySelection, letters: usize) {
        let Some(places) = selection.named_letters(key) else {
            return;
        };
        let missing = places.range(letters..).map(|index| {
            let detail = "the object has no letter in this place".to_owned();
            ReplayFailure::of_letter(key, *index, detail)
        });
        self.broken.extend(missing);
    }

    /// Notes a letter that was not selected, unless it is resolved.
    fn keep_other(&mut self, index: usize, resolved: &ResolvedLetters) {
        if !resolved.is_resolved(index) {
            self.others.insert(index);
        }
    }

    fn add_letter(
        &mut self,
        selected: SelectedLetter,
        resolved: &ResolvedLetters,
        selection: &ReplaySelection,
        created: &SubscriptionCreation,
    ) {
        let is_resolved = resolved.is_resolved(selected.index);
        match selection.leaves_out_event(&selected.letter, created) {
            Some(reason) => {
                self.left_out.add(reason);
                self.keep_other(selected.index, resolved);
            }
            None if is_resolved && !selection.includes_resolved() => self.resolved += 1,
            None => self.selected.push(selected),
        }
    }
}

/// The problem of a request that does not select letters as it may.
pub(crate) fn bad_settings(error: &ReplayRequestError) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(error.member())
        .detail(error.to_string())
}
