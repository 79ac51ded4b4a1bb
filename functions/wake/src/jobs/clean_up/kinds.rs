//! The kinds of objects that are deleted when they are old, and how old that is.

use std::time::Duration;

use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{
    CANCELLATION_KEPT, IDEMPOTENCY_KEPT, IDEMPOTENCY_SWEPT_AFTER, LATE_NOTE_KEPT, PAYLOAD_KEPT,
    REPLAY_KEPT, Timestamp,
};
use posthaste_core::stored::{IdempotencyRecord, layout};
use posthaste_ports::ObjectMeta;

/// Objects deleted at once.
pub(super) const DELETES_AT_ONCE: usize = 64;

/// Objects of one kind.
pub(super) struct ObjectKind {
    /// A name for the log.
    pub(super) name: &'static str,
    pub(super) prefix: &'static str,
    /// The minute of the hour in which they are looked for.
    pub(super) minute: u64,
    /// Most pages looked at in one run.
    pub(super) pages_max: usize,
    /// The time for which they are kept.
    kept: Duration,
    age: AgeSource,
    /// Tells from the content of an object that was listed as old whether it is of no use any
    /// more.
    pub(super) is_over: Option<fn(&[u8], Timestamp) -> bool>,
}

/// Source of an object's age.
enum AgeSource {
    /// The key, so that objects are listed in the order of their age. The function gives the first
    /// key of an object from that time.
    InKey(fn(Timestamp) -> String),
    /// The time at which the object was written.
    Written,
}

/// All kinds; within a minute, the shortest work comes first.
pub(super) const KINDS: [ObjectKind; 7] = [
    ObjectKind {
        name: "replays",
        prefix: layout::REPLAYS,
        minute: 0,
        pages_max: 1,
        kept: REPLAY_KEPT,
        age: AgeSource::InKey(|at| layout::replay_record_key(&layout::replay_id(at, ""))),
        is_over: None,
    },
    ObjectKind {
        name: "claims of replays",
        prefix: layout::CLAIMS,
        minute: 0,
        // There are as many as replays.
        pages_max: 1,
        kept: REPLAY_KEPT,
        age: AgeSource::Written,
        is_over: None,
    },
    ObjectKind {
        name: "notes of late answers",
        prefix: layout::LATE,
        minute: 0,
        // There are few of them: an endpoint hardly ever answers late.
        pages_max: 100,
        kept: LATE_NOTE_KEPT,
        age: AgeSource::Written,
        is_over: None,
    },
    ObjectKind {
        name: "payloads",
        prefix: layout::PAYLOADS,
        minute: 0,
        // As many in an hour as 1,600 a minute make.
        pages_max: 100,
        kept: PAYLOAD_KEPT,
        age: AgeSource::InKey(layout::payloads_before),
        is_over: None,
    },
    ObjectKind {
        name: "payloads of scheduled events",
        prefix: layout::SCHEDULED_PAYLOADS,
        minute: 0,
        pages_max: 100,
        kept: PAYLOAD_KEPT,
        age: AgeSource::InKey(layout::scheduled_payloads_before),
        is_over: None,
    },
    ObjectKind {
        name: "notes of events that were taken back",
        prefix: layout::CANCELLED,
        minute: 0,
        // There are few of them: one for each request to take an event back, in a month.
        pages_max: 100,
        kept: CANCELLATION_KEPT,
        age: AgeSource::Written,
        is_over: None,
    },
    ObjectKind {
        name: "idempotency keys",
        prefix: layout::IDEMPOTENCY,
        // Away from the others.
        minute: 30,
        // A million keys, which is twelve a second for a day.
        pages_max: 1000,
        kept: IDEMPOTENCY_KEPT.saturating_add(IDEMPOTENCY_SWEPT_AFTER),
        age: AgeSource::Written,
        // A key that cannot be read is over; any other may have been claimed again since it was
        // listed.
        is_over: Some(|bytes, now| {
            IdempotencyRecord::parse(bytes).is_none_or(|key| key.is_forgotten(now))
        }),
    },
];

impl ObjectKind {
    /// Tells old objects from the others.
    pub(super) fn is_old(
        &self,
        now: Timestamp,
    ) -> impl Fn(&ObjectMeta) -> bool + Send + Sync + use<> {
        let kept_ms = whole_millis(self.kept);
        let oldest = Timestamp::from_millis(now.as_millis().saturating_sub(kept_ms));
        let first_kept = match self.age {
            AgeSource::InKey(key) => Some(key(oldest)),
            AgeSource::Written => None,
        };
        move |object| match &first_kept {
            Some(first_kept) => object.key < *first_kept,
            None => object.modified_at <= oldest,
        }
    }

    /// Tells whether all objects after one that is kept are kept too.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self.age, AgeSource::InKey(_))
    }
}
