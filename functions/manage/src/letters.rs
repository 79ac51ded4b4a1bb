//! The letters of one dead-letter object that a request selects.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::FromRef;
use futures_util::future::try_join;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{LeftOutCounts, ReplayFailure};
use posthaste_core::model::{EventSchema, REPLAY_FAILURES_SHOWN_MAX, SubscriptionCreation};
use posthaste_core::release::{ReplayRequestError, ReplaySelection};
use posthaste_core::stored::dead_letter::restore_all;
use posthaste_core::stored::{ResolvedLetters, RestoredLetter};
use posthaste_ports::{ErrorKind, ObjectStore, PortError, Ports, StoredObject};
use posthaste_services::resolved::resolved_letters;

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// A subscription as its dead letters see it: the schema in which it receives events, and its
/// creation.
pub(crate) type SchemaAndCreation = (EventSchema, SubscriptionCreation);

/// The letters of an object.
#[derive(Debug, Default)]
pub(crate) struct SelectedLetters {
    /// Those that were selected, with their places.
    pub(crate) selected: Vec<(usize, RestoredLetter)>,
    /// The number of those that would be selected, but are resolved.
    pub(crate) resolved: u64,
    /// What else was left out.
    pub(crate) left_out: LeftOutCounts,
    /// Those that cannot be read, by their places, or the whole object.
    pub(crate) broken: Vec<(Option<usize>, String)>,
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
        receiver: &SchemaAndCreation,
    ) -> Result<SelectedLetters, ApiError> {
        let (object, resolved) = try_join(
            self.letter_object(key),
            resolved_letters(&*self.dead_letters, key),
        )
        .await?;
        let Some(StoredObject { bytes, .. }) = object else {
            return Ok(SelectedLetters::broken_object("there is no such object"));
        };
        match restore_all(&bytes, receiver.0) {
            Ok(letters) => {
                let mut of_object = SelectedLetters::default();
                for (index, letter) in letters.into_iter().enumerate() {
                    match letter {
                        Ok(letter) => {
                            of_object.add_letter(
                                (index, letter),
                                &resolved,
                                selection,
                                &receiver.1,
                            );
                        }
                        Err(error) => of_object.broken.push((Some(index), error.to_string())),
                    }
                }
                Ok(of_object)
            }
            Err(error) => Ok(SelectedLetters::broken_object(&error.to_string())),
        }
    }
}

impl SelectedLetters {
    fn broken_object(why: &str) -> Self {
        Self {
            broken: vec![(None, why.to_owned())],
            ..Self::default()
        }
    }

    fn add_letter(
        &mut self,
        (index, letter): (usize, RestoredLetter),
        resolved: &ResolvedLetters,
        selection: &ReplaySelection,
        created: &SubscriptionCreation,
    ) {
        let is_resolved = resolved.is_resolved(index);
        match selection.leaves_out_event(&letter, created) {
            Some(reason) => {
                self.left_out.add(reason);
                if !is_resolved {
                    self.others.insert(index);
                }
            }
            None if is_resolved && !selection.includes_resolved() => self.resolved += 1,
            None => self.selected.push((index, letter)),
        }
    }
}

/// Adds what cannot be read to the failures that are counted, and to those that are shown.
pub(crate) fn add_failures(
    broken: Vec<(Option<usize>, String)>,
    key: &str,
    (failed, shown): (&mut u64, &mut Vec<ReplayFailure>),
) {
    for (index, detail) in broken {
        *failed += 1;
        if shown.len() < REPLAY_FAILURES_SHOWN_MAX {
            shown.push(ReplayFailure {
                key: key.to_owned(),
                index,
                detail,
            });
        }
    }
}

/// The problem of a request that does not select letters as it may.
pub(crate) fn bad_settings(error: &ReplayRequestError) -> ApiProblem {
    ApiProblem::new(ProblemKind::BadSettings)
        .member(error.member())
        .detail(error.to_string())
}
