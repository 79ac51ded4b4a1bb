//! Dead letters that an operator resolves or deletes, while that goes on: one request works for a
//! few seconds, and manage finishes what its process could not.
//!
//! Key `ending/{digest}`, where the digest is of the subscription, its creation, the action and the
//! selection, so that the same is not done twice at once. Work that has ended makes room for the same
//! that is asked for again, under `ending/{digest}.{id}`. Versions 1 and 2; written, read and deleted
//! by manage. Fixtures: `letter-ending-v1.json`, `letter-ending-v1-counts.json`,
//! `letter-ending-v2-cancelled.json`, `letter-ending-v2-letters.json`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::TopicRecord;
use super::selection::{in_order, selection_key};
use crate::api::{ResolveRequest, SubscriptionSettings};
use crate::model::{
    EventSchema, FormatError, StoredFormat, SubscriptionCreation, SubscriptionName, Timestamp,
    TopicName,
};

/// The prefix of all of them.
pub const ENDING: &str = "ending/";

const FORMAT: StoredFormat = StoredFormat {
    name: "the work of resolving or deleting dead letters",
    newest: VERSION_2,
};

/// The version of work that a program of release 0.1 does as it is meant.
const VERSION_1: u32 = 1;

/// The version of work that was cancelled, or is about single letters. An older program would go on
/// with the first, and would end whole objects: it leaves such work to a newer one.
const VERSION_2: u32 = 2;

/// Stands between the digest of a selection and the id of kept work.
const KEPT: char = '.';

/// Longest id of work, in bytes: that of a UUID.
const WORK_ID_BYTES_MAX: usize = 36;

/// The end of the selected letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LetterEnd {
    /// They are resolved.
    Resolve,
    /// Their objects are deleted.
    Delete,
}

/// A subscription as its dead letters see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LetterReceiver {
    /// The schema in which it receives events.
    pub schema: EventSchema,
    /// The creation of the subscription: letters of others are former ones.
    pub created: SubscriptionCreation,
}

impl LetterReceiver {
    /// A subscription that is gone.
    pub const GONE: Self = Self {
        schema: EventSchema::CloudEvents,
        created: SubscriptionCreation::UNKNOWN,
    };

    /// The subscription of this name in its topic's record.
    pub fn of_subscription(
        record: &TopicRecord,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
    ) -> Self {
        let schema = settings.delivery_schema;
        Self {
            schema: schema.unwrap_or(record.settings.input_schema),
            created: record.identities_of(name),
        }
    }
}

/// The work of one selection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LetterEnding {
    /// The id, which all who ask for the same get.
    pub id: String,
    /// The topic.
    pub topic: TopicName,
    /// The subscription.
    pub subscription: SubscriptionName,
    /// The subscription as it was at the request; `None` if it was gone by then. The work stays the
    /// same whatever becomes of the subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<LetterReceiver>,
    /// The end of the letters.
    pub end: LetterEnd,
    /// The request, without a place to go on.
    pub request: ResolveRequest,
    /// The time of the request: what is written later is no part of it.
    pub began_at: Timestamp,
    /// The time at which somebody last took it up or wrote how far it came.
    pub worked_at: Timestamp,
    /// The time of the last progress, or of the last request for it; left out until one of them came
    /// after the first request. A program that does not know it leaves it out of what it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressed_at: Option<Timestamp>,
    /// The key up to which all is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether all is done: the object is about to be deleted. A program that does not know this
    /// member looks once more and finds nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended: bool,
    /// The numbers of what was done so far. Left out until one request has written down how far it
    /// came. A program that does not know this member, or the next, leaves it out of what it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<EndedCounts>,
    /// The time at which all was done, of work that took more than one request: it is kept for a
    /// while, so that who comes back finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The time at which an operator cancelled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<Timestamp>,
}

/// The numbers of what was done of some work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedCounts {
    /// The number of events that were resolved or deleted.
    pub events: u64,
    /// The number of objects that had them.
    pub objects: u64,
    /// The number of those objects that were deleted.
    pub deleted_objects: u64,
    /// The number of events, or of whole objects, that could not be read or written.
    pub failed: u64,
    /// The number of objects that were looked at.
    pub read: u64,
}

impl LetterEnding {
    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        FORMAT.read(bytes)
    }

    /// Writes the object, in the oldest version that can say what is meant.
    pub fn render(&self) -> Bytes {
        let newest = if self.cancelled_at.is_some() || !self.request.letters.is_empty() {
            VERSION_2
        } else {
            VERSION_1
        };
        StoredFormat { newest, ..FORMAT }.render(self)
    }

    /// Whether there is more to do.
    pub fn is_open(&self) -> bool {
        !self.has_ended && self.closed_at().is_none()
    }

    /// The time at which it was cancelled, or all was done; `None` of work that is open, or about to
    /// be deleted without either.
    pub fn closed_at(&self) -> Option<Timestamp> {
        self.ended_at.or(self.cancelled_at)
    }

    /// The time at which it last made progress, or was last asked for.
    pub fn alive_at(&self) -> Timestamp {
        self.progressed_at
            .map_or(self.began_at, |at| at.max(self.began_at))
    }

    /// The key of this work, and of any other with the same selection.
    pub fn key(&self) -> String {
        let selection = ResolveRequest {
            types: in_order(&self.request.types),
            keys: in_order(&self.request.keys),
            letters: in_order(&self.request.letters),
            ..self.request.clone()
        };
        let identity = self
            .receiver
            .and_then(|receiver| receiver.created.identity());
        let of = (
            self.topic.folded(),
            self.subscription.folded(),
            identity,
            self.end,
            selection,
        );
        selection_key(ENDING, &of)
    }

    /// The digest of the selection, in its key.
    pub fn selection_digest(&self) -> String {
        self.key().split_off(ENDING.len())
    }

    /// The key under which this work is kept once the same is asked for again.
    pub fn kept_key(&self) -> String {
        format!("{}{}", self.kept_prefix(), self.id)
    }

    /// The prefix of the keys under which work with this selection is kept.
    pub fn kept_prefix(&self) -> String {
        format!("{}{KEPT}", self.key())
    }

    /// The key of the selection of work that is kept under this key; `None` of any other key.
    pub fn selection_of_kept(key: &str) -> Option<&str> {
        key.split_once(KEPT).map(|(selection, _)| selection)
    }

    /// Whether a text can be the id of work, and so part of a key.
    pub fn is_work_id(text: &str) -> bool {
        let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=WORK_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_of_id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{CREATION_ID_BYTES, CreationId, CreationRecord};

    const FIXTURE: &str = include_str!("fixtures/letter-ending-v1.json");
    const WITH_COUNTS: &str = include_str!("fixtures/letter-ending-v1-counts.json");
    const CANCELLED: &str = include_str!("fixtures/letter-ending-v2-cancelled.json");
    const LETTERS: &str = include_str!("fixtures/letter-ending-v2-letters.json");

    fn ending(end: LetterEnd, request: Value) -> LetterEnding {
        LetterEnding {
            id: "0b8b9c5e".to_owned(),
            topic: TopicName::parse("orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            receiver: None,
            end,
            request: serde_json::from_value(request).unwrap(),
            began_at: Timestamp::parse("2026-11-21T10:15:00Z").unwrap(),
            worked_at: Timestamp::parse("2026-11-21T10:15:08Z").unwrap(),
            progressed_at: None,
            after: Some("ORDERS/BILLING/2026/11/21/10/a.json".to_owned()),
            has_ended: false,
            done: None,
            ended_at: None,
            cancelled_at: None,
        }
    }

    #[test]
    fn work_is_written_as_its_fixture_and_read_back() {
        let work = ending(LetterEnd::Delete, json!({ "types": ["t"] }));
        assert_eq!(work.render(), FIXTURE.trim_end());
        assert_eq!(LetterEnding::parse(FIXTURE.as_bytes()).unwrap(), work);
        assert!(matches!(
            LetterEnding::parse(br#"{"v":3}"#),
            Err(FormatError::Newer(3))
        ));
    }

    /// Work in this state is written as its fixture, and read back.
    fn check_fixture(work: &LetterEnding, fixture: &str) {
        assert_eq!(work.render(), fixture.trim_end());
        assert_eq!(&LetterEnding::parse(fixture.as_bytes()).unwrap(), work);
    }

    fn counted() -> LetterEnding {
        LetterEnding {
            done: Some(EndedCounts {
                events: 41_000,
                objects: 900,
                deleted_objects: 899,
                failed: 1,
                read: 1_000,
            }),
            ended_at: Some(Timestamp::parse("2026-11-21T10:16:00Z").unwrap()),
            ..ending(LetterEnd::Delete, json!({}))
        }
    }

    /// A program of release 0.1 reads it too, and looks once more for what is done.
    #[test]
    fn done_work_stays_in_the_first_version() {
        check_fixture(&counted(), WITH_COUNTS);
        assert!(!counted().is_open());
    }

    #[test]
    fn work_on_single_letters_is_of_the_second_version() {
        let letter = json!({ "object": "ORDERS/BILLING/2026/11/21/10/a.json", "index": 3 });
        let work = ending(LetterEnd::Resolve, json!({ "letters": [letter] }));
        check_fixture(&work, LETTERS);
    }

    #[test]
    fn cancelled_work_is_of_the_second_version() {
        let work = LetterEnding {
            ended_at: None,
            cancelled_at: Some(Timestamp::parse("2026-11-21T10:15:30Z").unwrap()),
            ..counted()
        };
        check_fixture(&work, CANCELLED);
        assert!(!work.is_open());
    }

    fn receiver(byte: u8) -> LetterReceiver {
        let creation = Some(CreationRecord {
            id: CreationId::new([byte; CREATION_ID_BYTES]),
            at: Some(Timestamp::EPOCH),
        });
        LetterReceiver {
            schema: EventSchema::Custom,
            created: SubscriptionCreation {
                topic: creation,
                subscription: creation,
                topic_at: Timestamp::EPOCH,
            },
        }
    }

    #[test]
    fn receiver_and_end_are_kept() {
        let work = LetterEnding {
            receiver: Some(receiver(1)),
            has_ended: true,
            progressed_at: Some(Timestamp::EPOCH),
            ..ending(LetterEnd::Resolve, json!({}))
        };
        assert_eq!(LetterEnding::parse(&work.render()).unwrap(), work);
    }

    #[test]
    fn subscription_created_again_has_other_work() {
        let key = |receiver| {
            LetterEnding {
                receiver,
                ..ending(LetterEnd::Delete, json!({}))
            }
            .key()
        };
        assert_eq!(key(Some(receiver(1))), key(Some(receiver(1))));
        assert_ne!(key(Some(receiver(1))), key(Some(receiver(2))));
        assert_ne!(key(Some(receiver(1))), key(None));
    }

    #[test]
    fn kept_work_lies_behind_the_key_of_its_selection() {
        let work = ending(LetterEnd::Resolve, json!({}));
        let kept = work.kept_key();
        assert_eq!(kept, format!("{}.0b8b9c5e", work.key()));
        assert_eq!(
            LetterEnding::selection_of_kept(&kept),
            Some(work.key().as_str())
        );
        assert_eq!(LetterEnding::selection_of_kept(&work.key()), None);
        assert_eq!(work.key(), format!("{ENDING}{}", work.selection_digest()));
    }

    #[test]
    fn only_letters_digits_and_hyphens_are_an_id() {
        let uuid = "0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e";
        assert!(LetterEnding::is_work_id(uuid));
        for other in ["", "a/b", "..", "a b", &format!("{uuid}0")] {
            assert!(!LetterEnding::is_work_id(other), "{other}");
        }
    }

    #[test]
    fn same_selection_has_one_key_for_each_end() {
        let key = |end, request| ending(end, request).key();
        let all = key(LetterEnd::Resolve, json!({}));
        assert_eq!(key(LetterEnd::Resolve, json!({ "types": [] })), all);
        assert_ne!(key(LetterEnd::Delete, json!({})), all);
        assert_eq!(
            key(LetterEnd::Resolve, json!({ "types": ["b", "a"] })),
            key(LetterEnd::Resolve, json!({ "types": ["a", "b", "b"] }))
        );
        assert_ne!(key(LetterEnd::Resolve, json!({ "types": ["a"] })), all);
    }
}
