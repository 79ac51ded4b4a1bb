//! One open replay for one selection. A replay is begun by three writes: its marker, which carries
//! the record that is meant; the claim of its selection, which names it; and its record. manage
//! writes them, and wake continues where manage was cut: it lists the markers in any case. Both
//! call [`open_replay`] once there is a marker, and delete the marker of a replay that is not
//! opened.

use std::time::Duration;

use posthaste_core::model::{FormatError, Timestamp};
use posthaste_core::stored::{ReplayClaim, ReplayRecord, layout};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PortError, PutCondition, StoredObject};

use crate::left_work::LEFT_AFTER;
use crate::update::UPDATE_TRIES_MAX;

/// The time after which a claim without a record is void: the record was deleted, long after its
/// replay ended.
const RECORD_FOLLOWS_WITHIN: Duration = Duration::from_hours(1);

/// Reasons for which a replay was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenReplayError {
    /// The store failed. Whether the replay is open is not known.
    #[error("failed to read or write the replay or its claim")]
    Store(#[from] PortError),
    /// A claim or a record was written by a newer program.
    #[error("failed to understand the claim of a newer program")]
    Newer(#[source] FormatError),
    /// The record that is there cannot be read.
    #[error("failed to understand the record of the replay")]
    Record(#[source] FormatError),
    /// Other writers won each time.
    #[error("lost {UPDATE_TRIES_MAX} races for the selection")]
    Contended,
}

impl OpenReplayError {
    /// Whether it is certain that the replay was not opened, so that its marker is of no use.
    pub fn is_certain(&self) -> bool {
        matches!(self, Self::Newer(_) | Self::Contended)
    }
}

/// The replay that a claim names.
enum ClaimedReplay {
    /// A replay that is open.
    Open(Box<ReplayRecord>),
    /// A replay that was not written yet.
    Unwritten,
    /// A replay that has ended: the claim may be written over.
    Ended(Box<ReplayRecord>),
    /// No readable record: the claim may be written over.
    Void,
}

/// Opens the replay `asked`, whose marker is there, unless another one of the same selection is
/// open. Returns the replay that is open, which has another id in that case.
///
/// One that was still open when `asked` was asked for is returned too, even if it has ended since:
/// a request that was cut and repeated, or repeated and cut, would be sent twice otherwise.
pub async fn open_replay(
    store: &impl ObjectStore,
    clock: &impl Clock,
    asked: &ReplayRecord,
) -> Result<ReplayRecord, OpenReplayError> {
    let began = clock.monotonic();
    let key = layout::replay_claim_key(asked);
    let claim = ReplayClaim {
        replay: asked.id.clone(),
        claimed_at: asked.created_at,
    };
    let mut condition = PutCondition::IfAbsent;
    for _ in 0..UPDATE_TRIES_MAX {
        match store.put(&key, claim.render(), condition).await {
            Ok(_) => {
                // Meanwhile wake may have found another replay open, and deleted the marker.
                if clock.monotonic().saturating_sub(began) >= LEFT_AFTER {
                    put_marker(store, asked, PutCondition::Always).await?;
                }
                return write_record(store, asked.clone()).await;
            }
            Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
            Err(error) => return Err(error.into()),
        }
        let Some(StoredObject { bytes, etag }) = store.get(&key).await? else {
            condition = PutCondition::IfAbsent;
            continue;
        };
        condition = PutCondition::IfMatch(etag);
        let found = match ReplayClaim::parse(&bytes) {
            Ok(found) => found,
            Err(FormatError::Malformed(..)) => continue,
            Err(error @ FormatError::Newer(_)) => return Err(OpenReplayError::Newer(error)),
        };
        if found.replay == asked.id {
            return write_record(store, asked.clone()).await;
        }
        match read_claimed(store, &found, clock.now()).await? {
            ClaimedReplay::Open(replay) => {
                // wake finds it by its marker, which may have been lost.
                ensure_marker(store, &replay).await?;
                return Ok(*replay);
            }
            ClaimedReplay::Unwritten => return begin_other(store, found.replay, asked).await,
            // The last write of a replay is its end.
            ClaimedReplay::Ended(replay) if replay.updated_at > asked.created_at => {
                return Ok(*replay);
            }
            ClaimedReplay::Ended(_) | ClaimedReplay::Void => {}
        }
    }
    Err(OpenReplayError::Contended)
}

async fn read_claimed(
    store: &impl ObjectStore,
    claim: &ReplayClaim,
    now: Timestamp,
) -> Result<ClaimedReplay, OpenReplayError> {
    let Some(StoredObject { bytes, .. }) =
        store.get(&layout::replay_record_key(&claim.replay)).await?
    else {
        return Ok(if now.since(claim.claimed_at) < RECORD_FOLLOWS_WITHIN {
            ClaimedReplay::Unwritten
        } else {
            ClaimedReplay::Void
        });
    };
    match ReplayRecord::parse(&bytes) {
        Ok(replay) if replay.has_ended() => Ok(ClaimedReplay::Ended(Box::new(replay))),
        Ok(replay) => Ok(ClaimedReplay::Open(Box::new(replay))),
        // No process carries a record out that cannot be read.
        Err(FormatError::Malformed(..)) => Ok(ClaimedReplay::Void),
        Err(error @ FormatError::Newer(_)) => Err(OpenReplayError::Newer(error)),
    }
}

/// Begins the replay of another request for the same selection, which has claimed it and not
/// written it yet. A former version wrote no marker before the claim.
async fn begin_other(
    store: &impl ObjectStore,
    id: String,
    asked: &ReplayRecord,
) -> Result<ReplayRecord, OpenReplayError> {
    let other = ReplayRecord {
        id,
        ..asked.clone()
    };
    ensure_marker(store, &other).await?;
    write_record(store, other).await
}

/// Sees that a replay has a marker.
async fn ensure_marker(store: &impl ObjectStore, replay: &ReplayRecord) -> Result<(), PortError> {
    match put_marker(store, replay, PutCondition::IfAbsent).await {
        Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(()),
        put => put,
    }
}

/// Writes the record of a replay, if no other process has, and returns it as it is stored.
async fn write_record(
    store: &impl ObjectStore,
    replay: ReplayRecord,
) -> Result<ReplayRecord, OpenReplayError> {
    let key = layout::replay_record_key(&replay.id);
    let written = store
        .put(&key, replay.render(), PutCondition::IfAbsent)
        .await;
    match written {
        Ok(_) => return Ok(replay),
        Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
        Err(error) => return Err(error.into()),
    }
    let object = store.get(&key).await?.ok_or(OpenReplayError::Contended)?;
    ReplayRecord::parse(&object.bytes).map_err(OpenReplayError::Record)
}

async fn put_marker(
    store: &impl ObjectStore,
    replay: &ReplayRecord,
    condition: PutCondition,
) -> Result<(), PortError> {
    store
        .put(
            &layout::replaying_mark_key(&replay.id),
            replay.render(),
            condition,
        )
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use posthaste_core::api::ReplayState;
    use posthaste_core::model::{SubscriptionCreation, SubscriptionName, TopicName};
    use posthaste_testkit::memory::{MemoryStore, SetClock};
    use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation};
    use serde_json::json;

    use super::*;

    fn asked(id: &str, clock: &SetClock) -> ReplayRecord {
        ReplayRecord::new(
            id.to_owned(),
            TopicName::parse("orders").unwrap(),
            (
                SubscriptionName::parse("billing").unwrap(),
                &SubscriptionCreation::UNKNOWN,
            ),
            serde_json::from_value(json!({})).unwrap(),
            clock.now(),
        )
    }

    async fn end(store: &MemoryStore, replay: ReplayRecord, now: Timestamp) {
        let ended = replay.with_state(ReplayState::Done, None, now);
        let key = layout::replay_record_key(&ended.id);
        let put = store.put(&key, ended.render(), PutCondition::Always);
        put.await.unwrap();
    }

    /// A request that was cut, before another one for the same or after it, is not carried out
    /// beside that.
    #[tokio::test]
    async fn replay_that_was_open_when_it_was_asked_for_is_the_one() {
        let store = MemoryStore::default();
        let clock = SetClock::default();
        let earlier = asked("a", &clock);
        clock.advance(Duration::from_secs(1));
        let first = asked("b", &clock);
        let opened = open_replay(&store, &clock, &first).await.unwrap();
        assert_eq!(opened.id, "b");
        clock.advance(Duration::from_secs(1));
        let later = asked("d", &clock);
        clock.advance(Duration::from_secs(1));
        end(&store, opened, clock.now()).await;
        for cut in [&earlier, &later] {
            let found = open_replay(&store, &clock, cut).await.unwrap();
            assert_eq!((found.id.as_str(), found.has_ended()), ("b", true));
        }
        clock.advance(Duration::from_secs(1));
        let third = asked("c", &clock);
        assert_eq!(open_replay(&store, &clock, &third).await.unwrap(), third);
    }

    /// A replay that wake has begun from its marker is the same for the request that comes late.
    #[tokio::test]
    async fn own_claim_that_was_written_already_is_no_other() {
        let store = MemoryStore::default();
        let clock = SetClock::default();
        let slow = asked("a", &clock);
        let by_wake = open_replay(&store, &clock, &slow).await.unwrap();
        end(&store, by_wake, clock.now()).await;
        let found = open_replay(&store, &clock, &slow).await.unwrap();
        assert_eq!((found.id.as_str(), found.has_ended()), ("a", true));
    }

    /// A process that waits long for its claim may have lost its marker to wake.
    #[tokio::test]
    async fn late_claim_writes_its_marker_again() {
        for (wait, is_marked) in [(LEFT_AFTER, true), (Duration::from_secs(1), false)] {
            let store = MemoryStore::default();
            let clock = Arc::new(SetClock::default());
            let replay = asked("a", &clock);
            let late = Arc::clone(&clock);
            let plan = FaultPlan::by(move |effect| {
                let is_claim = effect.key.starts_with(layout::CLAIMS);
                if is_claim && effect.operation == PortOperation::Put {
                    late.advance(wait);
                }
                None::<CallFault>
            });
            let faulty = Faulty::new(store.clone(), "state", &plan);
            open_replay(&faulty, &*clock, &replay).await.unwrap();
            let marker = store.get(&layout::replaying_mark_key("a")).await.unwrap();
            assert_eq!(marker.is_some(), is_marked, "{wait:?}");
        }
    }

    /// wake finds a replay by its marker: a repeated request brings a lost one back.
    #[tokio::test]
    async fn marker_of_an_open_replay_that_was_lost_is_written_again() {
        let store = MemoryStore::default();
        let clock = SetClock::default();
        let first = asked("a", &clock);
        open_replay(&store, &clock, &first).await.unwrap();
        let opened = open_replay(&store, &clock, &asked("b", &clock)).await;
        assert_eq!(opened.unwrap().id, "a");
        let marker = store.get(&layout::replaying_mark_key("a")).await.unwrap();
        assert_eq!(marker.unwrap().bytes, first.render());
    }

    /// The claim of a former version has no marker when it is written.
    #[tokio::test]
    async fn unwritten_claim_of_another_is_begun_with_its_marker() {
        let store = MemoryStore::default();
        let clock = SetClock::default();
        let first = asked("a", &clock);
        let claim = ReplayClaim {
            replay: "a".to_owned(),
            claimed_at: clock.now(),
        };
        let key = layout::replay_claim_key(&first);
        let put = store.put(&key, claim.render(), PutCondition::Always);
        put.await.unwrap();
        let opened = open_replay(&store, &clock, &asked("b", &clock)).await;
        assert_eq!(opened.unwrap().id, "a");
        let marker = store.get(&layout::replaying_mark_key("a")).await.unwrap();
        assert_eq!(marker.unwrap().bytes, first.render());
    }
}
