//! One open replay for one selection. The selection's claim names the replay: it is written first,
//! then the marker that leads wake to the replay, then the replay's record. Whoever finds a claim
//! without a record writes what is missing, so that no end of a process in between blocks a
//! selection.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::stored::{FormatError, ReplayClaim, ReplayRecord, layout};
use posthaste_ports::{Clock, ETag, ErrorKind, Object, ObjectStore, Ports, PutCondition};
use posthaste_services::update::UPDATE_TRIES_MAX;

use super::parse;
use crate::answer::{ApiError, conflict};
use crate::manage::Manage;

/// The time after which a claim without a record is void: the record was deleted, long after its
/// replay ended.
const RECORD_FOLLOWS_WITHIN: Duration = Duration::from_hours(1);

/// The replay that a claim names.
enum Claimed {
    /// It is open.
    Open(Box<ReplayRecord>),
    /// It was not written yet.
    Unwritten,
    /// It has ended: the claim may be written over.
    Ended,
}

impl<P: Ports> Manage<P> {
    /// Begins this replay, unless one of the same selection is open; answers the one that is, and
    /// whether it is this one.
    pub(super) async fn open_replay(
        &self,
        asked: ReplayRecord,
    ) -> Result<(ReplayRecord, bool), ApiError> {
        let key = layout::replay_claim(&asked);
        let mut condition = PutCondition::IfAbsent;
        for _ in 0..UPDATE_TRIES_MAX {
            let claim = ReplayClaim {
                replay: asked.id.clone(),
                claimed_at: asked.created_at,
            };
            match self.state.put(&key, claim.render(), condition).await {
                Ok(_) => return Ok((self.begin_replay(asked).await?, true)),
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(error.into()),
            }
            let Some(Object { bytes, etag }) = self.state.get(&key).await? else {
                condition = PutCondition::IfAbsent;
                continue;
            };
            condition = match self.claimed(&bytes, etag, &asked).await? {
                Ok(open) => return Ok((open, false)),
                Err(etag) => PutCondition::IfMatch(etag),
            };
        }
        Err(conflict().into())
    }

    /// The open replay of a claim that was found, which is written if it was not; or the version of
    /// the claim, if it is void.
    async fn claimed(
        &self,
        claim: &[u8],
        etag: ETag,
        asked: &ReplayRecord,
    ) -> Result<Result<ReplayRecord, ETag>, ApiError> {
        let claim = match ReplayClaim::parse(claim) {
            Ok(claim) => claim,
            Err(FormatError::Malformed(..)) => return Ok(Err(etag)),
            Err(FormatError::Newer(_)) => return Err(newer().into()),
        };
        Ok(match self.replay_of(&claim).await? {
            Claimed::Open(replay) => Ok(*replay),
            Claimed::Ended => Err(etag),
            Claimed::Unwritten => {
                let id = claim.replay;
                Ok(self
                    .begin_replay(ReplayRecord {
                        id,
                        ..asked.clone()
                    })
                    .await?)
            }
        })
    }

    async fn replay_of(&self, claim: &ReplayClaim) -> Result<Claimed, ApiError> {
        let found = self.state.get(&layout::replay(&claim.replay)).await?;
        let Some(Object { bytes, .. }) = found else {
            let age = self.clock.now().since(claim.claimed_at);
            return Ok(if age < RECORD_FOLLOWS_WITHIN {
                Claimed::Unwritten
            } else {
                Claimed::Ended
            });
        };
        Ok(match ReplayRecord::parse(&bytes) {
            Ok(replay) if !replay.has_ended() => Claimed::Open(Box::new(replay)),
            // A record that nothing can be read of is carried out by nobody.
            Ok(_) | Err(FormatError::Malformed(..)) => Claimed::Ended,
            Err(FormatError::Newer(_)) => return Err(newer().into()),
        })
    }

    /// Writes a replay, if nobody else has, and answers it as it is stored. The marker is written
    /// first, because wake finds no record without one.
    async fn begin_replay(&self, replay: ReplayRecord) -> Result<ReplayRecord, ApiError> {
        self.put_work(&layout::replaying(&replay.id), Bytes::new())
            .await?;
        let key = layout::replay(&replay.id);
        let written = self
            .state
            .put(&key, replay.render(), PutCondition::IfAbsent)
            .await;
        match written {
            Ok(_) => Ok(replay),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => {
                Ok(parse(&replay.id, self.state.get(&key).await?)?)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn newer() -> Problem {
    let detail = "a replay of this selection was begun by a newer version";
    Problem::new(ProblemKind::Internal).detail(detail)
}
