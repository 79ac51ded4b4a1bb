//! Publishing at most once per key: what a producer may call its request, and what a request is to
//! do about one of the same name before it.
//! <https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>
//!
//! Key `idempotency/{topic}/{digest}`; without a version: what cannot be read is as good as absent.
//! Read and written by publish by conditional put, deleted by wake when it is forgotten.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::{
    IDEMPOTENCY_CLAIM_LENGTH, IDEMPOTENCY_CLOCK_SKEW, IDEMPOTENCY_KEPT, IDEMPOTENCY_KEY_BYTES_MAX,
    IDEMPOTENCY_SWEPT_AFTER, MatchCounts, Timestamp, Topic, TopicName, hex, render_json,
};

/// The prefix of what is known of producers' idempotency keys.
pub const IDEMPOTENCY: &str = "idempotency/";

/// The key of the record of an idempotency key on this topic. `digest` is 64 hexadecimal digits,
/// made of the key and of the time when the topic was created.
pub fn idempotency_record_key(topic: &TopicName, digest: &str) -> String {
    format!("{IDEMPOTENCY}{}/{digest}", topic.folded())
}

/// The name a producer gave its request: 1 to 255 visible ASCII characters, compared as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

/// A text that is no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected one value of 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters")]
pub struct IdempotencyKeyError;

/// The SHA-256 of what a request publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestDigest(String);

/// The record of an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdempotencyRecord {
    /// The request that used it last.
    digest: RequestDigest,
    /// Whether that was published, or may be so yet.
    state: IdempotencyState,
    /// The time until which it counts.
    until: Timestamp,
    /// The id of the request that holds the key. No two requests write the same bytes: a store
    /// that recognizes its own write by them would let both in.
    holder: String,
    /// The matches of the request that was published. Releases before this member neither write
    /// nor read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matched: Option<MatchCounts>,
    /// The first holder of the key with this very request, if that did not publish it to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_holder: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum IdempotencyState {
    /// A request is at it.
    Claimed,
    /// Every delivery is durable.
    Published,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdempotencyDecision {
    /// Claim the key and publish.
    Free,
    /// Say that it is published, and publish nothing.
    Repeated {
        /// The matches of the request when it was published, if they are known.
        matched: Option<MatchCounts>,
    },
    /// The key belongs to another request.
    Reused,
    /// The same request is being published right now.
    InProgress {
        /// The time until that request is over, or its claim has lapsed.
        retry_after: Duration,
    },
}

impl IdempotencyKey {
    /// Reads the header's value.
    pub fn parse(value: &[u8]) -> Result<Self, IdempotencyKeyError> {
        let is_visible = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(value)
            .ok()
            .filter(|_| is_visible && value.len() <= IDEMPOTENCY_KEY_BYTES_MAX);
        text.map(|text| Self(text.to_owned()))
            .ok_or(IdempotencyKeyError)
    }

    /// The key of its record. Every topic has keys of its own, and so has a topic that is created
    /// again under the name of a deleted one.
    pub fn record_key(&self, topic: &Topic) -> String {
        let made = Sha256::new().chain_update(topic.created_at.as_millis().to_be_bytes());
        idempotency_record_key(
            &topic.name,
            &hex::encode(&made.chain_update(&self.0).finalize()),
        )
    }
}

impl RequestDigest {
    /// The digest of a body and the headers that say what it is, in a fixed order.
    pub fn from_request<'a>(
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        body: &[u8],
    ) -> Self {
        let mut headers: Vec<_> = headers.into_iter().collect();
        headers.sort_unstable();
        let mut digest = Sha256::new();
        // Lengths stand before texts, so that no two requests run together into the same.
        for part in headers
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), value])
            .chain([body])
        {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Self(hex::encode(&digest.finalize()))
    }
}

impl IdempotencyRecord {
    /// A request claims the key.
    pub fn new_claim(digest: RequestDigest, holder: String, now: Timestamp) -> Self {
        Self {
            digest,
            state: IdempotencyState::Claimed,
            until: now + IDEMPOTENCY_CLAIM_LENGTH,
            holder,
            matched: None,
            first_holder: None,
        }
    }

    /// The record of a claim that takes the place of `before`. The same request keeps its id, as
    /// long as it was not published to the end: a part of it may have gone out.
    #[must_use]
    pub fn replacing(self, before: Option<&Self>) -> Self {
        let same = before.filter(|before| {
            before.state == IdempotencyState::Claimed && before.digest == self.digest
        });
        let first_holder = same.map(|before| {
            let first = before.first_holder.as_ref();
            first.unwrap_or(&before.holder).clone()
        });
        Self {
            first_holder,
            ..self
        }
    }

    /// The id of the request, from which its events have theirs.
    pub fn request_id(&self) -> String {
        self.first_holder
            .as_ref()
            .unwrap_or(&self.holder)
            .replace('-', "")
    }

    /// The record once its request was published.
    #[must_use]
    pub fn into_published(self, matched: MatchCounts, now: Timestamp) -> Self {
        let state = IdempotencyState::Published;
        let matched = Some(matched);
        Self {
            state,
            until: now + IDEMPOTENCY_KEPT,
            matched,
            ..self
        }
    }

    /// The record once its request failed, in whole or in part. The key is free at once.
    #[must_use]
    pub fn into_given_back(self) -> Self {
        Self {
            until: Timestamp::EPOCH,
            ..self
        }
    }

    /// Reads a record; `None` for other bytes, and the key is then as good as free.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Writes the record.
    pub fn render(&self) -> Bytes {
        render_json(self)
    }

    /// Decides about a request with this digest. Workers' clocks differ a little. A time that is
    /// much further off than any that is set comes from a clock that was far ahead, and blocks
    /// no request.
    pub fn decide_request(&self, digest: &RequestDigest, now: Timestamp) -> IdempotencyDecision {
        let longest = match self.state {
            IdempotencyState::Claimed => IDEMPOTENCY_CLAIM_LENGTH,
            IdempotencyState::Published => IDEMPOTENCY_KEPT,
        };
        if self.until <= now || self.until > now + longest + IDEMPOTENCY_CLOCK_SKEW {
            return IdempotencyDecision::Free;
        }
        match self.state {
            _ if self.digest != *digest => IdempotencyDecision::Reused,
            IdempotencyState::Published => IdempotencyDecision::Repeated {
                matched: self.matched,
            },
            IdempotencyState::Claimed => IdempotencyDecision::InProgress {
                retry_after: self.until.since(now).min(IDEMPOTENCY_CLAIM_LENGTH),
            },
        }
    }

    /// Whether it ended so long ago that it may be deleted.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        self.until + IDEMPOTENCY_SWEPT_AFTER <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::topic::TopicRecord;

    const MATCHED: MatchCounts = MatchCounts {
        events: 1,
        subscriptions: 2,
    };
    const REPEATED: IdempotencyDecision = IdempotencyDecision::Repeated {
        matched: Some(MATCHED),
    };

    fn digest(body: &str) -> RequestDigest {
        RequestDigest::from_request([], body.as_bytes())
    }

    #[test]
    fn a_key_is_visible_ascii_of_a_bounded_length() {
        let check = |value: &[u8], expected: bool| {
            assert_eq!(IdempotencyKey::parse(value).is_ok(), expected);
        };
        check(b"8e03978e-40d5-43e8-bc93-6894a57f9324", true);
        check(b"\"quoted\"", true);
        check(&[b'~'; 255], true);
        check(&[b'~'; 256], false);
        for bad in [
            &b""[..],
            b" ",
            b"a b",
            b"a\tb",
            b"\x7f",
            "ä".as_bytes(),
            b"\xff",
        ] {
            check(bad, false);
        }
    }

    #[test]
    fn topics_and_keys_have_objects_of_their_own() {
        let object = |key: &str, name: &str, created_at: u64| {
            let record = serde_json::json!({
                "v": 1, "name": name, "key1": "", "key2": "", "createdAt": created_at, "updatedAt": 0,
                "settings": {},
            });
            let topic = TopicRecord::parse(record.to_string().as_bytes())
                .unwrap()
                .compile()
                .unwrap();
            IdempotencyKey::parse(key.as_bytes())
                .unwrap()
                .record_key(&topic)
        };
        assert_eq!(
            object("a", "Orders", 1),
            "idempotency/orders/3b196fd4907bedf51c3090e9835f2f7cb61e7ee1b2299ea3b8fed9b4183a822a"
        );
        assert_ne!(object("a", "orders", 1), object("A", "orders", 1));
        assert_ne!(object("a", "orders", 1), object("a", "others", 1));
        assert_ne!(object("a", "orders", 1), object("a", "orders", 2));
    }

    #[test]
    fn requests_that_say_something_else_differ() {
        let all = [
            RequestDigest::from_request([], b"ab"),
            RequestDigest::from_request([], b"a"),
            RequestDigest::from_request([("ce-id", &b"1"[..])], b"ab"),
            RequestDigest::from_request([("ce-id", &b"2"[..])], b"ab"),
            RequestDigest::from_request([("ce-i", &b"d1"[..])], b"ab"),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(all[..n].iter().all(|other| other != one), "{n}");
        }
        let a = ("a", &b"1"[..]);
        let b = ("b", &b"2"[..]);
        assert_eq!(
            RequestDigest::from_request([a, b], b""),
            RequestDigest::from_request([b, a], b"")
        );
    }

    #[test]
    fn decision_depends_on_the_request_before() {
        let at = |secs: u64| Timestamp::from_millis(1_000_000_000_000 + secs * 1000);
        let claimed = IdempotencyRecord::new_claim(digest("a"), "h".to_owned(), at(0));
        let published = claimed.clone().into_published(MATCHED, at(10));
        let check =
            |record: &IdempotencyRecord, body: &str, now: u64, expected: IdempotencyDecision| {
                assert_eq!(
                    record.decide_request(&digest(body), at(now)),
                    expected,
                    "{record:?} {body} {now}"
                );
            };
        let secs = Duration::from_secs;
        check(
            &claimed,
            "a",
            0,
            IdempotencyDecision::InProgress {
                retry_after: secs(90),
            },
        );
        check(
            &claimed,
            "a",
            89,
            IdempotencyDecision::InProgress {
                retry_after: secs(1),
            },
        );
        check(&claimed, "b", 89, IdempotencyDecision::Reused);
        check(&claimed, "a", 90, IdempotencyDecision::Free);
        check(&claimed, "b", 90, IdempotencyDecision::Free);
        check(
            &claimed.clone().into_given_back(),
            "a",
            0,
            IdempotencyDecision::Free,
        );
        check(&published, "a", 10, REPEATED);
        check(&published, "a", 10 + 86_399, REPEATED);
        check(&published, "b", 10 + 86_399, IdempotencyDecision::Reused);
        check(&published, "a", 10 + 86_400, IdempotencyDecision::Free);
        check(&published, "b", 10 + 86_400, IdempotencyDecision::Free);
    }

    #[test]
    fn clock_far_ahead_blocks_nothing_and_one_slightly_ahead_does() {
        let written = Timestamp::from_millis(9_000_000_000);
        let claimed = IdempotencyRecord::new_claim(digest("a"), "h".to_owned(), written);
        let published = claimed.clone().into_published(MATCHED, written);
        let check = |behind: u64, body: &str, expected: [IdempotencyDecision; 2]| {
            let now = Timestamp::from_millis(written.as_millis() - behind);
            let found =
                [&claimed, &published].map(|record| record.decide_request(&digest(body), now));
            assert_eq!(found, expected, "{behind}");
        };
        let in_progress = IdempotencyDecision::InProgress {
            retry_after: Duration::from_secs(90),
        };
        for behind in [1, 30_000, 300_000] {
            check(behind, "a", [in_progress, REPEATED]);
            check(behind, "b", [IdempotencyDecision::Reused; 2]);
        }
        check(300_001, "a", [IdempotencyDecision::Free; 2]);
    }

    #[test]
    fn a_record_is_forgotten_an_hour_after_it_is_over() {
        let at = |secs: u64| Timestamp::from_millis(1_000_000_000_000 + secs * 1000);
        let claimed = IdempotencyRecord::new_claim(digest("a"), "h".to_owned(), at(0));
        let check = |record: &IdempotencyRecord, now, expected: bool| {
            assert_eq!(record.is_forgotten(at(now)), expected, "{record:?} {now}");
        };
        check(&claimed, 90 + 3599, false);
        check(&claimed, 90 + 3600, true);
        check(
            &claimed.clone().into_published(MATCHED, at(0)),
            86_400 + 3599,
            false,
        );
        check(&claimed.into_published(MATCHED, at(0)), 86_400 + 3600, true);
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record =
            IdempotencyRecord::new_claim(digest("a"), "h".to_owned(), Timestamp::from_millis(1));
        assert_eq!(
            IdempotencyRecord::parse(&record.render()),
            Some(record.clone())
        );
        let text = String::from_utf8(record.render().to_vec()).unwrap();
        assert!(
            text.starts_with("{\"digest\":\"")
                && text.ends_with("\",\"state\":\"claimed\",\"until\":90001,\"holder\":\"h\"}"),
            "{text}"
        );
        assert_eq!(IdempotencyRecord::parse(b"{}"), None);
        let published = record.into_published(MATCHED, Timestamp::from_millis(1));
        assert_eq!(
            IdempotencyRecord::parse(&published.render()),
            Some(published)
        );
    }

    /// Events of a failed request and of its repetition have the same ids.
    #[test]
    fn repeated_request_keeps_its_id_until_it_is_published() {
        let at = Timestamp::from_millis;
        let claim = |holder: &str, body: &str, before: Option<&IdempotencyRecord>| {
            IdempotencyRecord::new_claim(digest(body), holder.to_owned(), at(1)).replacing(before)
        };
        let first = claim("a-1", "a", None);
        assert_eq!(first.request_id(), "a1");
        let failed = first.into_given_back();
        let second = claim("b-2", "a", Some(&failed));
        let third = claim("c-3", "a", Some(&second));
        assert_eq!([second.request_id(), third.request_id()], ["a1", "a1"]);
        assert_eq!(claim("d-4", "b", Some(&failed)).request_id(), "d4");
        let published = third.clone().into_published(MATCHED, at(2));
        assert_eq!(claim("e-5", "a", Some(&published)).request_id(), "e5");
        let read = IdempotencyRecord::parse(&third.render());
        assert_eq!(read, Some(third));
    }

    #[test]
    fn a_record_of_an_older_release_knows_no_matches() {
        let json = r#"{"digest":"d","state":"published","until":86400000,"holder":"h"}"#;
        let record = IdempotencyRecord::parse(json.as_bytes()).unwrap();
        let digest = RequestDigest("d".to_owned());
        assert_eq!(
            record.decide_request(&digest, Timestamp::EPOCH),
            IdempotencyDecision::Repeated { matched: None }
        );
        assert_eq!(record.render(), json);
    }
}
