//! Records of replays in the state store: written once, and cancelled by conditional put.

use std::error::Error;

use bytes::Bytes;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ReplayPage, ReplayReason, ReplayState};
use posthaste_core::model::limits::REPLAY_ID_BYTES_MAX;
use posthaste_core::stored::layout;
use posthaste_core::stored::replay::ReplayRecord;
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, Object, PutCondition};

use crate::answer::{listed, store_problem};
use crate::records::{CHANGE_TRIES_MAX, CONFLICT_RETRY_AFTER};
use crate::{Manage, Store, Webhooks, cursor};

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// Writes a replay down. Its marker comes first: a record that nobody looks for would never be carried out.
    pub(super) async fn begin_replay(&self, replay: &ReplayRecord) -> Result<(), Problem> {
        let marker = layout::replaying(&replay.id);
        let put = self.state.put(&marker, Bytes::new(), PutCondition::Always).await;
        put.map_err(|error| store_problem(&error))?;
        let put = self.state.put(&layout::replay(&replay.id), replay.render(), PutCondition::IfAbsent).await;
        put.map(drop).map_err(|error| store_problem(&error))
    }

    /// A replay that must be there, and its version.
    pub(super) async fn existing_replay(&self, id: &str) -> Result<(ReplayRecord, ETag), Problem> {
        let is_id = (1..=REPLAY_ID_BYTES_MAX).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let unknown = || Problem::new(ProblemKind::NotFound).detail("there is no replay of this id");
        if !is_id {
            return Err(unknown());
        }
        let object = self.state.get(&layout::replay(id)).await.map_err(|error| store_problem(&error))?;
        let Object { bytes, etag } = object.ok_or_else(unknown)?;
        Ok((parse(id, &bytes)?, etag))
    }

    /// Cancels a replay, unless it has ended.
    pub(super) async fn end_replay(&self, id: &str) -> Result<ReplayRecord, Problem> {
        for _ in 0..CHANGE_TRIES_MAX {
            let (replay, etag) = self.existing_replay(id).await?;
            if replay.has_ended() {
                return Ok(replay);
            }
            let now = self.clock.now();
            let replay = replay.turned(ReplayState::Cancelled, Some(ReplayReason::Requested), now);
            match self.state.put(&layout::replay(id), replay.render(), PutCondition::IfMatch(etag)).await {
                Ok(_) => {
                    tracing::info!(replay = id, "a replay was cancelled");
                    return Ok(replay);
                }
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(store_problem(&error)),
            }
        }
        Err(Problem::new(ProblemKind::Conflict).retry_after(CONFLICT_RETRY_AFTER))
    }

    /// A page of replays. One whose record cannot be read is logged and left out.
    pub(super) async fn replays(&self, after: Option<&str>, items: usize) -> Result<ReplayPage, Problem> {
        let listing = self.state.list(layout::REPLAYS, after, items).await;
        let listing = listing.map_err(|error| store_problem(&error))?;
        let mut replays = Vec::new();
        for meta in listing.objects {
            let Some(id) = layout::replay_of(&meta.key) else { continue };
            let object = listed(self.state.get(&meta.key).await)?;
            let replay = object.and_then(|object| parse(id, &object.bytes).ok());
            replays.extend(replay.map(|replay| replay.shown()));
        }
        Ok(ReplayPage { replays, cursor: listing.next_after.as_deref().map(cursor::render) })
    }
}

fn parse(id: &str, bytes: &[u8]) -> Result<ReplayRecord, Problem> {
    ReplayRecord::parse(bytes).map_err(|error| {
        tracing::error!(replay = id, error = &error as &dyn Error, "the record of a replay cannot be used");
        Problem::new(ProblemKind::Internal).detail("the record of the replay cannot be read")
    })
}
