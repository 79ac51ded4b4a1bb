//! The record of a replay, and the marker of one that has not ended.
//!
//! Keys `replays/{id}.json` and `replaying/{id}`. The marker is what wake lists, so that it looks
//! at no others. It holds the record as it was asked for, and is written before the record; older
//! programs wrote it empty. Versions 1 to 7; written by manage and wake by conditional put, read by
//! both, deleted by wake after [`REPLAY_KEPT`]. Fixtures: `replay-v1.json`, `replay-v2.json`,
//! `replay-v3.json`, `replay-v4.json`, `replay-v5.json`, `replay-v6.json`, `replay-v7.json`.
//!
//! [`REPLAY_KEPT`]: crate::model::REPLAY_KEPT

use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::{
    IsoTimestamp, LeftOutCounts, RecoveredOutage, ReplayFailure, ReplayReason, ReplayRequest,
    ReplaySource, ReplayState, ReplayView,
};
use crate::model::zero::is_zero;
use crate::model::{
    DeadLetterReason, FormatError, Identity, LetterPlace, StoredFormat, SubscriptionCreation,
    SubscriptionName, Timestamp, TopicName, render_json,
};

/// The prefix of all replays.
pub const REPLAYS: &str = "replays/";

/// The prefix of the markers of replays that have not ended, so that a run need not read the others
/// every minute.
pub const REPLAYING: &str = "replaying/";

/// Hexadecimal digits of a UUID in a replay's id: enough for those of one second.
const REPLAY_ID_UNIQUE_CHARS: usize = 12;

/// The id of a replay: the second in which it was asked for, so that replays are listed in order,
/// and a part of a UUID.
pub fn replay_id(at: Timestamp, uuid: &str) -> String {
    let text = at.to_string();
    let digits: String = text
        .chars()
        .take(19)
        .filter(|c| !matches!(c, '-' | ':'))
        .collect();
    let unique: String = uuid
        .chars()
        .filter(|c| *c != '-')
        .take(REPLAY_ID_UNIQUE_CHARS)
        .collect();
    format!("{digits}Z-{unique}")
}

/// The record of a replay.
pub fn replay_record_key(id: &str) -> String {
    format!("{REPLAYS}{id}.json")
}

/// The id of the replay whose record this is.
pub fn replay_of(key: &str) -> Option<&str> {
    key.strip_prefix(REPLAYS)?.strip_suffix(".json")
}

/// The marker of a replay that has not ended.
pub fn replaying_mark_key(id: &str) -> String {
    format!("{REPLAYING}{id}")
}

const FORMAT: StoredFormat = StoredFormat {
    name: "the record of a replay",
    newest: VERSION_7,
};

/// The version of a replay without an identity that leaves out what is former: one of an older
/// program.
const VERSION_1: u32 = 1;

/// The version of one with an identity. An older program would send on what was accepted for
/// another creation of the subscription: it leaves such a replay to a newer one.
const VERSION_2: u32 = 2;

/// The version of one from the delivery log. An older program would send dead letters instead.
const VERSION_3: u32 = 3;

/// The version of one of the reason `SubscriptionDisabled`, a word that release 0.1 does not know:
/// it leaves such a replay to a newer program.
const VERSION_4: u32 = 4;

/// The version of one that gives its events new ids: release 0.1 does not know the member.
const VERSION_5: u32 = 5;

/// The version of one that recovers letters of an outage. An older program would send all letters.
const VERSION_6: u32 = 6;

/// The version of one of letters that are named one by one. An older program does not know the
/// member, and would send all letters.
const VERSION_7: u32 = 7;

/// A replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayRecord {
    /// The version of this form.
    pub v: u32,
    /// The id.
    pub id: String,
    /// The topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// The creation of the subscription for which it was asked; `None` where an older program
    /// wrote it down, or the subscription had no identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The request.
    pub request: ReplayRequest,
    /// The outage that it recovers from, if wake began it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryOrigin>,
    /// The time of the request.
    pub created_at: Timestamp,
    /// The time of the last write.
    pub updated_at: Timestamp,
    /// The state. A record in one that only a newer program knows is not read, so that none of
    /// ours is written over it.
    #[serde(deserialize_with = "known_state")]
    pub state: ReplayState,
    /// The reason why it waits, or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReplayReason>,
    /// The progress.
    pub progress: ReplayProgress,
}

/// The origin of a replay that nobody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryOrigin {
    /// The outage whose letters are recovered.
    #[serde(flatten)]
    pub outage: RecoveredOutage,
    /// Letters of outages that began until then are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<Timestamp>,
    /// Letters that are on their way already, as wake last knew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_its_way: Vec<LetterPlace>,
    /// The time at which it began, or last went on after the endpoint was not well: its rate rises
    /// from then.
    pub ramp_from: Timestamp,
}

/// The progress of a replay. Everything up to here was sent, or counted as failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayProgress {
    /// The objects up to this key were looked at to their ends. Of a replay from the delivery log:
    /// the place up to which records were looked at, as [`LogPosition`](crate::release::LogPlace)
    /// writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// An object after that which was looked at in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartOfObject>,
    /// The time at which the last queued event is due.
    pub paced_until: Timestamp,
    /// The number of objects that were looked at to their ends.
    pub objects: u64,
    /// The number of events that were asked for in the objects looked at so far.
    pub found: u64,
    /// The number of those that were queued. Its name in the record is that of older programs.
    #[serde(rename = "replayed")]
    pub queued: u64,
    /// The number of events that were left out because they are resolved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resolved: u64,
    /// The counts of what else was left out.
    #[serde(default, skip_serializing_if = "LeftOutCounts::is_empty")]
    pub left_out: LeftOutCounts,
    /// The number of events, or whole objects, that could not be queued.
    pub failed: u64,
    /// The first of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ReplayFailure>,
}

fn known_state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReplayState, D::Error> {
    match ReplayState::deserialize(deserializer)? {
        ReplayState::Unknown => Err(D::Error::custom("a state of a newer program")),
        state => Ok(state),
    }
}

/// An object that was looked at in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartOfObject {
    /// The object's key.
    pub key: String,
    /// The number of its events that are done with.
    pub events: usize,
    /// The number of runs in which it could not be read or sent at all.
    #[serde(default)]
    pub failures: u32,
}

impl ReplayRecord {
    /// A replay that begins.
    pub fn new(
        id: String,
        topic: TopicName,
        (subscription, created): (SubscriptionName, &SubscriptionCreation),
        request: ReplayRequest,
        now: Timestamp,
    ) -> Self {
        let identity = created.identity();
        let is_version_1 = identity.is_none() && !request.include_former;
        let is_version_4 = request.reason == Some(DeadLetterReason::SubscriptionDisabled);
        let v = match request.source {
            _ if !request.letters.is_empty() => VERSION_7,
            _ if request.new_id => VERSION_5,
            _ if is_version_4 => VERSION_4,
            ReplaySource::Log => VERSION_3,
            ReplaySource::DeadLetters if is_version_1 => VERSION_1,
            ReplaySource::DeadLetters => VERSION_2,
        };
        Self {
            v,
            id,
            topic,
            subscription,
            identity,
            request,
            recovery: None,
            created_at: now,
            updated_at: now,
            state: ReplayState::Running,
            reason: None,
            progress: ReplayProgress {
                paced_until: now,
                ..ReplayProgress::default()
            },
        }
    }

    /// The same replay, begun by wake itself.
    #[must_use]
    pub fn with_recovery_origin(self, origin: RecoveryOrigin) -> Self {
        Self {
            v: VERSION_6,
            recovery: Some(origin),
            ..self
        }
    }

    /// Reads a record.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        FORMAT.parse(bytes, |record: &Self| record.v)
    }

    /// Writes the record.
    pub fn render(&self) -> Bytes {
        render_json(self)
    }

    /// Whether it was asked for by the subscription of this creation.
    pub fn is_for(&self, created: &SubscriptionCreation) -> bool {
        created.has_accepted(self.identity, self.created_at)
    }

    /// Whether nothing more will be done for it.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.state,
            ReplayState::Done | ReplayState::Failed | ReplayState::Cancelled
        )
    }

    /// The same replay in another state.
    #[must_use]
    pub fn with_state(
        self,
        state: ReplayState,
        reason: Option<ReplayReason>,
        now: Timestamp,
    ) -> Self {
        Self {
            state,
            reason,
            updated_at: now,
            ..self
        }
    }

    /// The replay as users see it.
    pub fn to_view(&self) -> ReplayView {
        let progress = &self.progress;
        ReplayView {
            id: self.id.clone(),
            topic: self.topic.clone(),
            subscription: self.subscription.clone(),
            state: self.progress.state_shown(self.state),
            reason: self.reason,
            objects: progress.objects,
            found: progress.found,
            queued: progress.queued,
            resolved: progress.resolved,
            left_out: progress.left_out.clone(),
            failed: progress.failed,
            failures: progress.failures.clone(),
            outcomes: None,
            created_at: IsoTimestamp(self.created_at),
            updated_at: IsoTimestamp(self.updated_at),
            recovery: self.recovery.as_ref().map(|origin| origin.outage),
            letters_named: self.request.letters.len(),
            request: ReplayRequest {
                letters: Vec::new(),
                ..self.request.clone()
            },
        }
    }
}

impl ReplayProgress {
    /// The state that users see. A replay that could queue nothing is stored as done, as older
    /// programs know it, and has failed.
    pub fn state_shown(&self, state: ReplayState) -> ReplayState {
        match state {
            ReplayState::Done if self.queued == 0 && self.failed > 0 => ReplayState::Failed,
            state => state,
        }
    }

    /// The number of events of this object that are done with.
    pub fn events_done_of(&self, key: &str) -> usize {
        self.part
            .as_ref()
            .filter(|part| part.key == key)
            .map_or(0, |part| part.events)
    }

    /// An object was looked at to its end.
    pub fn finish_object(&mut self, key: &str) {
        self.objects += 1;
        self.part.take_if(|part| part.key == key);
        self.after = Some(key.to_owned());
    }

    /// An object was looked at up to this event.
    pub fn reach_event(&mut self, key: &str, events: usize) {
        self.part = Some(PartOfObject {
            key: key.to_owned(),
            events,
            failures: 0,
        });
    }

    /// Something could not be sent again. It is counted, and shown while there is room.
    pub fn add_failure(&mut self, key: &str, index: Option<usize>, detail: String) {
        self.failed += 1;
        let key = key.to_owned();
        ReplayFailure { key, index, detail }.show_in(&mut self.failures);
    }

    /// An object could not be read or sent in a run: in how many that makes.
    pub fn count_failed_run(&mut self, key: &str) -> u32 {
        let part = self.part.take_if(|part| part.key == key);
        let part = part.unwrap_or_else(|| PartOfObject {
            key: key.to_owned(),
            events: 0,
            failures: 0,
        });
        let failures = part.failures.saturating_add(1);
        self.part = Some(PartOfObject { failures, ..part });
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ReplayOutcomes;
    use crate::model::{CreationId, CreationRecord, REPLAY_FAILURES_SHOWN_MAX};
    use serde_json::json;

    /// Version 1 as it was first written. Never edited.
    const V1: &str = include_str!("fixtures/replay-v1.json");

    /// Version 2 as it was first written. Never edited.
    const V2: &str = include_str!("fixtures/replay-v2.json");

    /// Version 3 as it was first written. Never edited.
    const V3: &str = include_str!("fixtures/replay-v3.json");
    const V4: &str = include_str!("fixtures/replay-v4.json");

    /// Version 5 as it was first written. Never edited.
    const V5: &str = include_str!("fixtures/replay-v5.json");

    /// Version 6 as it was first written. Never edited.
    const V6: &str = include_str!("fixtures/replay-v6.json");

    /// Version 7 as it was first written. Never edited.
    const V7: &str = include_str!("fixtures/replay-v7.json");

    #[test]
    fn recovery_is_written_as_its_fixture_and_read_back() {
        let now = Timestamp::from_millis(1_795_256_100_000);
        let request = json!({ "from": "2026-11-21T10:00:00Z", "ratePerSecond": 50 });
        let origin = RecoveryOrigin {
            outage: RecoveredOutage {
                outage_since: IsoTimestamp(now),
            },
            cancelled_at: Some(Timestamp::from_millis(1_795_000_000_000)),
            on_its_way: vec![LetterPlace {
                object: "ORDERS/BILLING/2026/11/21/10/x.json".to_owned(),
                index: 2,
            }],
            ramp_from: now,
        };
        let record = ReplayRecord::new(
            "20261121T101500Z-0b8b9c5e".to_owned(),
            TopicName::parse("orders").unwrap(),
            (
                SubscriptionName::parse("billing").unwrap(),
                &SubscriptionCreation::UNKNOWN,
            ),
            serde_json::from_value(request).unwrap(),
            now,
        );
        let record = record.with_recovery_origin(origin);
        assert_eq!(record.render(), V6.trim_end());
        assert_eq!(ReplayRecord::parse(V6.as_bytes()).unwrap(), record);
    }

    #[test]
    fn replay_that_queued_nothing_of_what_it_found_has_failed() {
        let state = |queued, failed| {
            let mut record = record().with_state(ReplayState::Done, None, Timestamp::EPOCH);
            record.progress.queued = queued;
            record.progress.failed = failed;
            let stored = ReplayRecord::parse(&record.render()).unwrap();
            assert_eq!(stored.state, ReplayState::Done);
            stored.to_view().state
        };
        assert_eq!(state(0, 3), ReplayState::Failed);
        assert_eq!(state(1, 3), ReplayState::Done);
        assert_eq!(state(0, 0), ReplayState::Done);
    }

    #[test]
    fn replay_of_which_each_event_failed_again_has_failed() {
        let state = |delivered, failed_again, waiting| {
            let mut record = record().with_state(ReplayState::Done, None, Timestamp::EPOCH);
            record.progress.queued = 3;
            let outcomes = ReplayOutcomes {
                delivered,
                failed_again,
                waiting,
                complete_until: IsoTimestamp(Timestamp::EPOCH),
                is_partial: false,
            };
            record.to_view().with_outcomes(Some(outcomes)).state
        };
        assert_eq!(state(0, 3, 0), ReplayState::Failed);
        assert_eq!(state(0, 2, 1), ReplayState::Done);
        assert_eq!(state(1, 2, 0), ReplayState::Done);
        assert_eq!(state(0, 0, 3), ReplayState::Done);
    }

    fn record() -> ReplayRecord {
        let request =
            json!({ "from": "2026-11-21T09:00:00Z", "reason": "EndpointGone", "types": ["t"] });
        let topic = TopicName::parse("orders").unwrap();
        let name = SubscriptionName::parse("billing").unwrap();
        let id = "20261121T101500Z-0b8b9c5e".to_owned();
        let now = Timestamp::from_millis(1_795_256_100_000);
        let mut record = ReplayRecord::new(
            id,
            topic,
            (name, &SubscriptionCreation::UNKNOWN),
            serde_json::from_value(request).unwrap(),
            now,
        );
        record
            .progress
            .finish_object("ORDERS/BILLING/2026/11/21/9/a.json");
        record
            .progress
            .count_failed_run("ORDERS/BILLING/2026/11/21/9/b.json");
        record.progress.add_failure(
            "ORDERS/BILLING/2026/11/21/9/a.json",
            Some(3),
            "why".to_owned(),
        );
        record.with_state(ReplayState::Waiting, Some(ReplayReason::Pressure), now)
    }

    #[test]
    fn record_in_a_state_of_a_newer_program_is_not_read() {
        let resting = V1.replace("\"Waiting\"", "\"Resting\"");
        assert_ne!(resting, V1);
        assert!(ReplayRecord::parse(resting.as_bytes()).is_err());
    }

    #[test]
    fn a_record_is_written_as_its_fixture_and_read_back() {
        assert_eq!(record().render(), V1.trim_end());
        assert_eq!(ReplayRecord::parse(V1.as_bytes()).unwrap(), record());
    }

    #[test]
    fn record_with_an_identity_round_trips_as_its_fixture() {
        let mut former = record();
        former.request.include_former = true;
        let at = Timestamp::EPOCH;
        let creation = |byte| {
            Some(CreationRecord {
                id: CreationId::new([byte; 6]),
                at: Some(at),
            })
        };
        let created = SubscriptionCreation {
            topic: creation(1),
            subscription: creation(2),
            topic_at: at,
        };
        let ReplayRecord {
            id,
            topic,
            subscription,
            request,
            created_at,
            ..
        } = former;
        let begun = ReplayRecord::new(id, topic, (subscription, &created), request, created_at);
        assert_eq!(begun.render(), V2.trim_end());
        assert_eq!(ReplayRecord::parse(V2.as_bytes()).unwrap(), begun);
        assert!(begun.is_for(&created) && record().is_for(&created));
        assert!(!begun.is_for(&SubscriptionCreation {
            subscription: creation(3),
            ..created
        }));
    }

    #[test]
    fn record_of_a_log_replay_round_trips_as_its_fixture() {
        let from = "2023-11-14T22:00:00Z";
        let request = json!({ "source": "log", "result": "failed", "status": "5xx", "from": from });
        let request = serde_json::from_value(request).unwrap();
        let ReplayRecord {
            id,
            topic,
            subscription,
            created_at,
            ..
        } = record();
        let mut begun = ReplayRecord::new(
            id,
            topic,
            (subscription, &SubscriptionCreation::UNKNOWN),
            request,
            created_at,
        );
        begun.progress.after = Some("1699999200000-0f".to_owned());
        begun.progress.resolved = 2;
        assert_eq!(begun.render(), V3.trim_end());
        assert_eq!(ReplayRecord::parse(V3.as_bytes()).unwrap(), begun);
    }

    /// A replay of what a disabled subscription missed is left by release 0.1.0.
    #[test]
    fn replay_of_missed_events_is_left_alone_by_0_1_0() {
        check_begun(json!({ "reason": "SubscriptionDisabled" }), V4);
    }

    #[test]
    fn replay_that_gives_new_ids_is_left_by_0_1_0() {
        check_begun(json!({ "newId": true }), V5);
    }

    /// A program that does not know single letters leaves their replay alone, new ids or not.
    #[test]
    fn replay_of_single_letters_is_left_by_older_programs() {
        let object = "ORDERS/BILLING/2026/11/21/9/a.json";
        let letters = json!([{ "object": object, "index": 3 }]);
        check_begun(json!({ "letters": letters, "newId": true }), V7);
    }

    /// Checks that the replay of a request is written as its fixture when it begins, and read back.
    fn check_begun(request: serde_json::Value, fixture: &str) {
        let request = serde_json::from_value(request).unwrap();
        let ReplayRecord {
            id,
            topic,
            subscription,
            created_at,
            ..
        } = record();
        let created = (subscription, &SubscriptionCreation::UNKNOWN);
        let begun = ReplayRecord::new(id, topic, created, request, created_at);
        assert_eq!(begun.render(), fixture.trim_end());
        assert_eq!(ReplayRecord::parse(fixture.as_bytes()).unwrap(), begun);
    }

    #[test]
    fn a_broken_record_is_told_from_a_newer_one() {
        assert!(matches!(
            ReplayRecord::parse(b""),
            Err(FormatError::Malformed(..))
        ));
        let newer = V1
            .replace("\"v\":1", "\"v\":8")
            .replace("\"id\"", "\"name\"");
        assert!(matches!(
            ReplayRecord::parse(newer.as_bytes()),
            Err(FormatError::Newer(8))
        ));
    }

    #[test]
    fn an_object_done_in_part_is_remembered_until_its_end() {
        let mut progress = record().progress;
        progress.part = Some(PartOfObject {
            key: "b".to_owned(),
            events: 7,
            failures: 0,
        });
        assert_eq!(
            (progress.events_done_of("a"), progress.events_done_of("b")),
            (0, 7)
        );
        progress.finish_object("a");
        assert_eq!(progress.events_done_of("b"), 7);
        assert_eq!(
            (
                progress.count_failed_run("b"),
                progress.count_failed_run("b"),
                progress.events_done_of("b")
            ),
            (1, 2, 7)
        );
        progress.finish_object("b");
        assert_eq!(
            (progress.events_done_of("b"), progress.after.as_deref()),
            (0, Some("b"))
        );
    }

    #[test]
    fn every_failure_is_counted_and_the_first_are_shown() {
        let mut progress = record().progress;
        for _ in 0..100 {
            progress.add_failure("a", None, String::new());
        }
        assert_eq!(
            (progress.failed, progress.failures.len()),
            (101, REPLAY_FAILURES_SHOWN_MAX)
        );
    }

    #[test]
    fn a_replay_s_keys_tell_its_id_and_sort_by_time() {
        let at = Timestamp::parse("2026-03-07T04:05:01.999Z").unwrap();
        let id = replay_id(at, "0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e");
        assert_eq!(id, "20260307T040501Z-0b8b9c5e6a0c");
        assert_eq!(replay_of(&replay_record_key(&id)), Some(id.as_str()));
        assert_eq!((replay_of("replays/x"), replay_of("x.json")), (None, None));
        assert_eq!(
            replaying_mark_key(&id),
            "replaying/20260307T040501Z-0b8b9c5e6a0c"
        );
    }
}
