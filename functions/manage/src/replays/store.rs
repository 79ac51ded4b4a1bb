//! The records of replays in the state store. The begin of a replay is its marker, which says all
//! of it and is written first. Whatever comes after is finished by wake if the process ends here.

use std::error::Error;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::model::{FormatError, REPLAY_ID_BYTES_MAX};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, ObjectStore, Ports, StoredObject};
use posthaste_services::{
    ObjectEdit, OpenReplayError, UpdateError, UpdatedObject, open_replay, update_object,
};

use crate::answer::{ApiError, conflict_problem};
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::wake_queue::WakeQueue;

/// The records of replays.
pub(crate) struct ReplayStore<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    wake: WakeQueue<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for ReplayStore<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            wake: WakeQueue::from_ref(manage),
        }
    }
}

impl<P: Ports> ReplayStore<P> {
    /// The replay of this id.
    pub(super) async fn load_replay(&self, id: &str) -> Result<ReplayRecord, ApiError> {
        let object = self.state.get(&replay_key(id)?).await?;
        Ok(parse_replay(id, object)?)
    }

    /// Begins this replay, unless one of the same selection is open; answers the one that is, and
    /// whether it is this one.
    pub(super) async fn open_replay(
        &self,
        asked: ReplayRecord,
    ) -> Result<(ReplayRecord, bool), ApiError> {
        let marker = layout::replaying_mark_key(&asked.id);
        self.wake.put_work(&marker, asked.render()).await?;
        let opened = open_replay(&*self.state, &self.clock, &asked).await;
        let is_own = match &opened {
            Ok(open) => open.id == asked.id,
            Err(error) => !error.is_certain(),
        };
        if !is_own && let Err(error) = self.state.delete(&marker).await {
            // wake finds that out by itself.
            let error = &error as &dyn Error;
            tracing::warn!(
                replay_id = asked.id,
                error,
                "marker of no replay not deleted"
            );
        }
        match opened {
            Ok(open) => Ok((open, is_own)),
            Err(error) => Err(open_replay_error(&asked.id, error)),
        }
    }

    /// Cancels a replay, unless it has ended. The version is that of the write, if there was one.
    pub(super) async fn cancel_replay(
        &self,
        id: &str,
    ) -> Result<UpdatedObject<ReplayRecord>, UpdateError<ApiProblem>> {
        let key = replay_key(id).map_err(UpdateError::Edit)?;
        let cancelled = update_object(&*self.state, &key, |found| {
            let replay = parse_replay(id, found)?;
            if replay.has_ended() {
                return Ok::<_, ApiProblem>(ObjectEdit::Keep(replay));
            }
            let now = self.clock.now();
            let replay =
                replay.with_state(ReplayState::Cancelled, Some(ReplayReason::Requested), now);
            Ok(ObjectEdit::Write(replay.render(), replay))
        });
        cancelled.await
    }
}

fn open_replay_error(id: &str, error: OpenReplayError) -> ApiError {
    match error {
        OpenReplayError::Store(error) => error.into(),
        OpenReplayError::Newer(_) => {
            let detail = "a replay of this selection was begun by a newer version";
            ApiProblem::new(ProblemKind::Internal).detail(detail).into()
        }
        OpenReplayError::Record(error) => unusable_replay_problem(id, &error).into(),
        OpenReplayError::Contended => conflict_problem().into(),
    }
}

fn replay_key(id: &str) -> Result<String, ApiProblem> {
    let is_id = (1..=REPLAY_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_id {
        Ok(layout::replay_record_key(id))
    } else {
        Err(unknown_replay())
    }
}

fn unknown_replay() -> ApiProblem {
    ApiProblem::new(ProblemKind::NotFound).detail("there is no replay of this id")
}

/// The replay of an object that was read.
pub(super) fn parse_replay(
    id: &str,
    object: Option<StoredObject>,
) -> Result<ReplayRecord, ApiProblem> {
    ReplayRecord::parse(&object.ok_or_else(unknown_replay)?.bytes)
        .map_err(|error| unusable_replay_problem(id, &error))
}

/// The problem of a record that cannot be read.
fn unusable_replay_problem(id: &str, error: &FormatError) -> ApiProblem {
    tracing::error!(
        replay_id = id,
        error = error as &dyn Error,
        "the record of a replay cannot be used"
    );
    ApiProblem::new(ProblemKind::Internal).detail("the record of the replay cannot be read")
}
