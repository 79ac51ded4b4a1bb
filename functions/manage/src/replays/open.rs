//! The begin of a replay: its marker, which says all of it, is written first. Whatever comes after
//! is finished by wake if the process ends here.

use std::error::Error;

use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{ObjectStore, Ports};
use posthaste_services::{OpenReplayError, open_replay};

use super::unusable_replay_problem;
use crate::answer::{ApiError, conflict_problem};
use crate::manage::Manage;

impl<P: Ports> Manage<P> {
    /// Begins this replay, unless one of the same selection is open; answers the one that is, and
    /// whether it is this one.
    pub(super) async fn open_replay(
        &self,
        asked: ReplayRecord,
    ) -> Result<(ReplayRecord, bool), ApiError> {
        let marker = layout::replaying_mark_key(&asked.id);
        self.put_work(&marker, asked.render()).await?;
        let opened = open_replay(&self.state, &self.clock, &asked).await;
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
