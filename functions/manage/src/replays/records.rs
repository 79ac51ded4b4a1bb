//! Records of replays in the state store: written once, and cancelled by conditional put.

use std::error::Error;

use bytes::Bytes;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ReplayPage, ReplayReason, ReplayState};
use posthaste_core::model::limits::REPLAY_ID_BYTES_MAX;
use posthaste_core::stored::layout;
use posthaste_core::stored::replay::ReplayRecord;
use posthaste_ports::{Clock, ETag, ErrorKind, Object, ObjectStore, Ports, PutCondition};

use crate::error::{ApiError, conflict, listed};
use crate::manage::Manage;
use crate::paging::{Page, cursor};
use crate::topic_records::CHANGE_TRIES_MAX;

impl<P: Ports> Manage<P> {
    /// Records a replay. Its marker is written first: wake finds no record without one.
    pub(super) async fn begin_replay(&self, replay: &ReplayRecord) -> Result<(), ApiError> {
        self.state.put(&layout::replaying(&replay.id), Bytes::new(), PutCondition::Always).await?;
        self.state.put(&layout::replay(&replay.id), replay.render(), PutCondition::IfAbsent).await?;
        Ok(())
    }

    /// A replay that must exist, and its version.
    pub(super) async fn existing_replay(&self, id: &str) -> Result<(ReplayRecord, ETag), ApiError> {
        let is_id = (1..=REPLAY_ID_BYTES_MAX).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let unknown = || Problem::new(ProblemKind::NotFound).detail("there is no replay of this id");
        if !is_id {
            return Err(unknown().into());
        }
        let object = self.state.get(&layout::replay(id)).await?;
        let Object { bytes, etag } = object.ok_or_else(unknown)?;
        Ok((parse(id, &bytes)?, etag))
    }

    /// Cancels a replay, unless it has ended.
    pub(super) async fn end_replay(&self, id: &str) -> Result<ReplayRecord, ApiError> {
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
                Err(error) => return Err(error.into()),
            }
        }
        Err(conflict().into())
    }

    /// A page of replays. One whose record cannot be read is logged and left out.
    pub(super) async fn replays(&self, page: &Page) -> Result<ReplayPage, ApiError> {
        let listing = self.state.list(layout::REPLAYS, page.after.as_deref(), page.items).await?;
        let mut replays = Vec::new();
        for meta in listing.objects {
            let Some(id) = layout::replay_of(&meta.key) else { continue };
            let object = listed(self.state.get(&meta.key).await)?;
            let replay = object.and_then(|object| parse(id, &object.bytes).ok());
            replays.extend(replay.map(|replay| replay.shown()));
        }
        Ok(ReplayPage { replays, cursor: listing.next_after.as_deref().map(cursor) })
    }
}

fn parse(id: &str, bytes: &[u8]) -> Result<ReplayRecord, Problem> {
    ReplayRecord::parse(bytes).map_err(|error| {
        tracing::error!(replay = id, error = &error as &dyn Error, "the record of a replay cannot be used");
        Problem::new(ProblemKind::Internal).detail("the record of the replay cannot be read")
    })
}
