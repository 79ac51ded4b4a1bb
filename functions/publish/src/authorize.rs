//! Authorization: the tier to which a publish key, or a token that was signed with one, opens the
//! topic.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use posthaste_core::model::topic::most_privileged;
use posthaste_core::model::{SasToken, Timestamp, Topic};
use posthaste_core::pressure::ProducerTier;

use crate::error::PublishError;
use crate::headers::TIER_HEADER;

/// The header in which Event Grid's clients send the key.
/// <https://learn.microsoft.com/azure/event-grid/authenticate-with-access-key-shared-access-signature>
const AEG_SAS_KEY: &str = "aeg-sas-key";

/// The header in which Event Grid's clients send a shared access signature.
const AEG_SAS_TOKEN: &str = "aeg-sas-token";

/// The schemes of `Authorization`, written in any case: for a key, and for a shared access
/// signature.
const BEARER: &str = "Bearer ";
const SHARED_ACCESS_SIGNATURE: &str = "SharedAccessSignature ";

/// The tier to which a key or token in the headers opens the topic.
pub(crate) fn authorize(
    topic: &Topic,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<ProducerTier, PublishError> {
    if let Some(tier) = offered_tier(topic, headers, now) {
        return Ok(tier);
    }
    Err(if has_expired_token(topic, headers, now) {
        PublishError::Expired
    } else {
        PublishError::Unauthorized
    })
}

/// Tells whether one of the headers carries anything that may be a key or a token.
pub(crate) fn shows_key(headers: &HeaderMap) -> bool {
    [AEG_SAS_KEY, AEG_SAS_TOKEN, AUTHORIZATION.as_str()]
        .iter()
        .any(|name| headers.get(*name).is_some_and(|value| !value.is_empty()))
}

/// The tier that a producer declares, written in any case. An unknown one is refused: a producer
/// that meant to step back would publish like the others, and never learn it.
pub(crate) fn declared_tier(headers: &HeaderMap) -> Result<Option<ProducerTier>, PublishError> {
    let Some(value) = headers.get(TIER_HEADER).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let tier = value
        .to_str()
        .ok()
        .and_then(|text| ProducerTier::parse(&text.to_ascii_lowercase()));
    tier.map(Some).ok_or(PublishError::Tier)
}

/// The tier whose key, or a token signed with it, one of the headers carries: the most privileged
/// one where several do, and `None` where none does. Every offered key is compared with every key
/// of the topic, in constant time, so that the time of the answer tells nothing.
fn offered_tier(topic: &Topic, headers: &HeaderMap, now: Timestamp) -> Option<ProducerTier> {
    let by_key = [
        header_text(headers, AEG_SAS_KEY),
        auth_credentials(headers, BEARER),
    ]
    .into_iter()
    .flatten()
    .filter(|key| !key.is_empty())
    .map(|key| topic.keys.tier_of(key));
    let by_token = offered_tokens(headers).map(|token| {
        topic
            .keys
            .tier_where(|key| token.is_valid_for(key, &topic.name, now))
    });
    by_key.chain(by_token).fold(None, most_privileged)
}

/// Tells whether one of the headers carries a token that was signed with a key of the topic, and
/// whose time is over.
fn has_expired_token(topic: &Topic, headers: &HeaderMap, now: Timestamp) -> bool {
    offered_tokens(headers).any(|token| {
        let tier = topic
            .keys
            .tier_where(|key| token.has_expired(key, &topic.name, now));
        tier.is_some()
    })
}

fn offered_tokens(headers: &HeaderMap) -> impl Iterator<Item = SasToken<'_>> {
    let offered = [
        header_text(headers, AEG_SAS_TOKEN),
        auth_credentials(headers, SHARED_ACCESS_SIGNATURE),
    ];
    offered.into_iter().flatten().filter_map(SasToken::parse)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn auth_credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (written, credentials) = value.split_at_checked(scheme.len())?;
    written
        .eq_ignore_ascii_case(scheme)
        .then(|| credentials.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use posthaste_core::api::{KeyName, SecretText};
    use posthaste_core::stored::TopicRecord;
    use serde_json::json;

    const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

    /// A token of Azure's Python client, which opens until 20:30:
    /// `generate_sas("http://127.0.0.1:8080/topics/orders/events", KEY, datetime(2026, 11, 21, 20, 30))`.
    const TOKEN: &str = concat!(
        "r=http%3A%2F%2F127.0.0.1%3A8080%2Ftopics%2Forders%2Fevents%3FapiVersion%3D2018-01-01",
        "&e=2026-11-21%2020%3A30%3A00&s=vcZhK0Xkxmc%2FHk9OTE3aLl%2FSwYXMGAztv7ZCN083%2FoY%3D",
    );

    const INTERNAL: Option<ProducerTier> = Some(ProducerTier::Internal);
    const STANDARD: Option<ProducerTier> = Some(ProducerTier::Standard);
    const BULK: Option<ProducerTier> = Some(ProducerTier::Bulk);

    fn record(key1: &str, key2: &str) -> TopicRecord {
        let record = json!({
            "v": 2, "name": "orders", "key1": key1, "key2": key2,
            "createdAt": 0, "updatedAt": 0, "settings": {},
            "tierKeys": {
                "internalKey1": "inner", "internalKey2": "within", "bulkKey1": "much", "bulkKey2": "more",
            },
        });
        TopicRecord::parse(record.to_string().as_bytes()).unwrap()
    }

    fn topic(key1: &str, key2: &str) -> Topic {
        record(key1, key2).compile().unwrap()
    }

    fn check(headers: &[(&'static str, &str)], expected: Option<ProducerTier>) {
        let headers = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )
        });
        assert_eq!(
            offered_tier(
                &topic("first", "second"),
                &headers.collect(),
                Timestamp::EPOCH
            ),
            expected
        );
    }

    #[test]
    fn every_key_opens_its_tier_in_either_header() {
        for (keys, tier) in [
            (["first", "second"], STANDARD),
            (["inner", "within"], INTERNAL),
            (["much", "more"], BULK),
        ] {
            for key in keys {
                check(&[("aeg-sas-key", key)], tier);
                check(&[("authorization", &format!("Bearer {key}"))], tier);
                check(&[("authorization", &format!("bearer  {key}"))], tier);
            }
        }
    }

    #[test]
    fn most_privileged_of_several_right_keys_counts() {
        check(
            &[("aeg-sas-key", "first"), ("authorization", "Bearer inner")],
            INTERNAL,
        );
        check(
            &[("aeg-sas-key", "inner"), ("authorization", "Bearer much")],
            INTERNAL,
        );
        check(
            &[("aeg-sas-key", "more"), ("authorization", "Bearer second")],
            STANDARD,
        );
    }

    #[test]
    fn missing_and_wrong_keys_do_not_authorize() {
        check(&[], None);
        for wrong in ["", " ", "firs", "firstt", "First", "first second", "ключ"] {
            check(&[("aeg-sas-key", wrong)], None);
            check(&[("authorization", &format!("Bearer {wrong}"))], None);
        }
        for other in [
            "first",
            "Basic first",
            "Bearer",
            "Bearerfirst",
            "Bearér first",
        ] {
            check(&[("authorization", other)], None);
        }
    }

    #[test]
    fn a_wrong_key_beside_a_right_one_does_no_harm() {
        check(
            &[("aeg-sas-key", "wrong"), ("authorization", "Bearer second")],
            STANDARD,
        );
        check(
            &[
                ("aeg-sas-key", "first"),
                ("authorization", "Basic d3Jvbmc="),
            ],
            STANDARD,
        );
    }

    #[test]
    fn an_empty_key_of_the_topic_opens_nothing() {
        let headers = [(
            HeaderName::from_static(AEG_SAS_KEY),
            HeaderValue::from_static(""),
        )];
        assert_eq!(
            offered_tier(
                &topic("", ""),
                &headers.into_iter().collect(),
                Timestamp::EPOCH
            ),
            None
        );
    }

    #[test]
    fn a_token_has_the_tier_of_the_key_that_signed_it() {
        let now = Timestamp::parse("2026-11-21T20:00:00Z").unwrap();
        let headers = [
            (AEG_SAS_TOKEN, TOKEN.to_owned()),
            ("authorization", format!("SharedAccessSignature {TOKEN}")),
        ];
        for (name, value) in headers {
            let value = HeaderValue::try_from(value).unwrap();
            let headers: HeaderMap = [(HeaderName::from_static(name), value)]
                .into_iter()
                .collect();
            let signed = |name: KeyName| {
                let mut record = record("first", "second");
                record.set_key(name, SecretText::new(KEY));
                offered_tier(&record.compile().unwrap(), &headers, now)
            };
            for name in KeyName::ALL {
                assert_eq!(signed(name), Some(name.tier()), "{name}");
            }
            assert_eq!(offered_tier(&topic("first", "second"), &headers, now), None);
        }
    }

    #[test]
    fn a_token_that_has_expired_is_told_from_a_wrong_one() {
        let check = |key: &str, time: &str, expected: (Option<ProducerTier>, bool)| {
            let headers = [(
                HeaderName::from_static(AEG_SAS_TOKEN),
                HeaderValue::from_static(TOKEN),
            )];
            let topic = record(key, "second").compile().unwrap();
            let headers = headers.into_iter().collect();
            let now = Timestamp::parse(time).unwrap();
            let found = (
                offered_tier(&topic, &headers, now),
                has_expired_token(&topic, &headers, now),
            );
            assert_eq!(found, expected, "{time}");
        };
        check(KEY, "2026-11-21T20:29:59Z", (STANDARD, false));
        check(KEY, "2026-11-21T20:30:00Z", (None, true));
        check("b3RoZXI=", "2026-11-21T20:30:00Z", (None, false));
    }
}
