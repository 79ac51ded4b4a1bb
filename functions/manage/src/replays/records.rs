//! Records of replays in the state store: written once, and cancelled by conditional put.

use std::error::Error;

use bytes::Bytes;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ReplayPage, ReplayReason, ReplayState};
use posthaste_core::model::REPLAY_ID_BYTES_MAX;
use posthaste_core::stored::{ReplayRecord, layout};
use posthaste_ports::{Clock, Object, ObjectStore, Ports, PutCondition};
use posthaste_services::{Edit, Updated, update};

use crate::error::{ApiError, listed};
use crate::manage::Manage;
use crate::paging::{Page, cursor};

impl<P: Ports> Manage<P> {
    /// Records a replay. Its marker is written first: wake finds no record without one.
    pub(super) async fn begin_replay(&self, replay: &ReplayRecord) -> Result<(), ApiError> {
        self.state.put(&layout::replaying(&replay.id), Bytes::new(), PutCondition::Always).await?;
        self.state.put(&layout::replay(&replay.id), replay.render(), PutCondition::IfAbsent).await?;
        Ok(())
    }

    /// A replay that must exist.
    pub(super) async fn existing_replay(&self, id: &str) -> Result<ReplayRecord, ApiError> {
        let object = self.state.get(&replay_key(id)?).await?;
        Ok(parse(id, object)?)
    }

    /// Cancels a replay, unless it has ended.
    pub(super) async fn end_replay(&self, id: &str) -> Result<ReplayRecord, ApiError> {
        let key = replay_key(id)?;
        let cancelled = update(&self.state, &key, |found| {
            let replay = parse(id, found)?;
            if replay.has_ended() {
                return Ok::<_, Problem>(Edit::Keep(replay));
            }
            let now = self.clock.now();
            let replay = replay.turned(ReplayState::Cancelled, Some(ReplayReason::Requested), now);
            Ok(Edit::Write(replay.render(), replay))
        });
        let Updated { answer, etag } = cancelled.await?;
        if etag.is_some() {
            tracing::info!(replay = id, "a replay was cancelled");
        }
        Ok(answer)
    }

    /// A page of replays. One whose record cannot be read is logged and left out.
    pub(super) async fn replays(&self, page: &Page) -> Result<ReplayPage, ApiError> {
        let listing = self.state.list(layout::REPLAYS, page.after.as_deref(), page.items).await?;
        let mut replays = Vec::new();
        for meta in listing.objects {
            let Some(id) = layout::replay_of(&meta.key) else { continue };
            let object = listed(self.state.get(&meta.key).await)?;
            let replay = parse(id, object).ok();
            replays.extend(replay.map(|replay| replay.shown()));
        }
        Ok(ReplayPage { replays, cursor: listing.next_after.as_deref().map(cursor) })
    }
}

fn replay_key(id: &str) -> Result<String, Problem> {
    let is_id = (1..=REPLAY_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_id { Ok(layout::replay(id)) } else { Err(unknown_replay()) }
}

fn unknown_replay() -> Problem {
    Problem::new(ProblemKind::NotFound).detail("there is no replay of this id")
}

fn parse(id: &str, object: Option<Object>) -> Result<ReplayRecord, Problem> {
    ReplayRecord::parse(&object.ok_or_else(unknown_replay)?.bytes).map_err(|error| {
        tracing::error!(replay = id, error = &error as &dyn Error, "the record of a replay cannot be used");
        Problem::new(ProblemKind::Internal).detail("the record of the replay cannot be read")
    })
}
