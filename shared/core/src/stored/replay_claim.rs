//! The claim of a selection for one replay, so that the same replay is not asked for twice.
//!
//! Key `claims/{digest}`, where the digest is of the subscription, its creation and the selection.
//! Version 1; written and read by manage, and by wake for a request that was cut, by conditional
//! put. A claim counts as long as its replay has not ended, and is written over then. It is deleted with the replays, after
//! [`REPLAY_KEPT`]. Fixture: `replay-claim-v1.json`.
//!
//! [`REPLAY_KEPT`]: crate::model::REPLAY_KEPT

use serde::{Deserialize, Serialize};

use super::ReplayRecord;
use super::format::versioned_object;
use super::selection::{in_order, selection_key};
use crate::api::ReplayRequest;
use crate::model::Timestamp;

/// The prefix of all claims.
pub const CLAIMS: &str = "claims/";

versioned_object!(ReplayClaim, 1, "the claim of a replay");

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayClaim {
    /// The id of the replay.
    pub replay: String,
    /// The time of the claim. The replay itself is written right after it.
    pub claimed_at: Timestamp,
}

/// The claim of what a replay selects. The rate is no part of it, and neither is the order in which
/// keys and types are named.
pub fn replay_claim_key(replay: &ReplayRecord) -> String {
    let request = &replay.request;
    let selection = ReplayRequest {
        types: in_order(&request.types),
        keys: in_order(&request.keys),
        letters: in_order(&request.letters),
        status: request
            .status
            .as_ref()
            .map(|text| text.to_ascii_lowercase()),
        dry_run: false,
        rate_per_second: None,
        ..request.clone()
    };
    let of = (
        replay.topic.folded(),
        replay.subscription.folded(),
        replay.identity,
        selection,
    );
    if replay.recovery.is_some() {
        // One recovery of a subscription at a time, whatever its letters.
        let (topic, subscription, identity, _) = of;
        return selection_key(CLAIMS, &(topic, subscription, identity, "recovery"));
    }
    selection_key(CLAIMS, &of)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{FormatError, SubscriptionCreation, SubscriptionName, TopicName};

    const FIXTURE: &str = include_str!("fixtures/replay-claim-v1.json");

    fn claim_of(subscription: &str, request: Value) -> String {
        let request = serde_json::from_value(request).unwrap();
        replay_claim_key(&ReplayRecord::new(
            "x".to_owned(),
            TopicName::parse("orders").unwrap(),
            (
                SubscriptionName::parse(subscription).unwrap(),
                &SubscriptionCreation::UNKNOWN,
            ),
            request,
            Timestamp::EPOCH,
        ))
    }

    #[test]
    fn claim_is_written_as_its_fixture_and_read_back() {
        let claim = ReplayClaim {
            replay: "20261121T101500Z-0b8b9c5e".to_owned(),
            claimed_at: Timestamp::parse("2026-11-21T10:15:00Z").unwrap(),
        };
        assert_eq!(claim.render(), FIXTURE.trim_end());
        assert_eq!(ReplayClaim::parse(FIXTURE.as_bytes()).unwrap(), claim);
        assert!(matches!(
            ReplayClaim::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
    }

    fn of_letters(places: &[usize]) -> Value {
        let letters = places.iter();
        let letters = letters.map(|index| json!({ "object": "a", "index": index }));
        json!({ "letters": letters.collect::<Vec<_>>() })
    }

    #[test]
    fn letters_have_one_claim_in_whatever_order() {
        assert_eq!(
            claim_of("billing", of_letters(&[0, 1])),
            claim_of("billing", of_letters(&[1, 0, 1]))
        );
    }

    #[test]
    fn same_selection_has_one_claim_however_it_is_written() {
        let all = claim_of("billing", json!({}));
        for same in [
            json!({ "ratePerSecond": 5 }),
            json!({ "source": "deadLetters" }),
            json!({ "keys": [], "types": [] }),
        ] {
            assert_eq!(claim_of("Billing", same.clone()), all, "{same}");
        }
        let of_two = claim_of("billing", json!({ "types": ["a", "b"] }));
        assert_eq!(
            claim_of("billing", json!({ "types": ["b", "a", "b"] })),
            of_two
        );
        let claims = [
            all,
            of_two,
            claim_of("crm", json!({})),
            claim_of("billing", json!({ "includeResolved": true })),
            claim_of("billing", of_letters(&[0, 1])),
            claim_of("billing", of_letters(&[0])),
            claim_of("billing", json!({ "source": "log" })),
            claim_of("billing", json!({ "source": "log", "status": "5xx" })),
            claim_of("billing", json!({ "from": "2026-11-21T10:15:00Z" })),
        ];
        let mut different = claims.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), claims.len(), "{claims:?}");
    }
}
