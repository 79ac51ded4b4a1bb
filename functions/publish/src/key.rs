//! The publish key of a request, or a token that one of them signed: where producers put it, and whether it opens the
//! topic.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use posthaste_core::sas_token::SasToken;
use posthaste_core::time::Timestamp;
use posthaste_core::topic::Topic;

/// The header in which Event Grid's clients send the key.
/// <https://learn.microsoft.com/azure/event-grid/authenticate-with-access-key-shared-access-signature>
const AEG_SAS_KEY: &str = "aeg-sas-key";

/// The header in which they send a shared access signature.
const AEG_SAS_TOKEN: &str = "aeg-sas-token";

/// The schemes of `Authorization`, written in any case: for a key, and for a shared access signature.
const BEARER: &str = "Bearer ";
const SHARED_ACCESS_SIGNATURE: &str = "SharedAccessSignature ";

/// Whether one of the headers carries one of the topic's two keys, or a token signed with one. Every offered key is
/// compared, in constant time, so that the time of the answer tells nothing.
pub(crate) fn opens(topic: &Topic, headers: &HeaderMap, now: Timestamp) -> bool {
    let has_key = [header(headers, AEG_SAS_KEY), authorization(headers, BEARER)]
        .into_iter()
        .flatten()
        .filter(|key| !key.is_empty())
        .fold(false, |opens, key| opens | topic.keys.accept(key));
    let has_token = [header(headers, AEG_SAS_TOKEN), authorization(headers, SHARED_ACCESS_SIGNATURE)]
        .into_iter()
        .flatten()
        .filter_map(SasToken::parse)
        .fold(false, |opens, token| opens | accepts(topic, &token, now));
    has_key | has_token
}

fn accepts(topic: &Topic, token: &SasToken<'_>, now: Timestamp) -> bool {
    let opens = |key| token.opens(key, &topic.name, now);
    opens(&topic.keys.key1) | opens(&topic.keys.key2)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn authorization<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (written, credentials) = value.split_at_checked(scheme.len())?;
    written.eq_ignore_ascii_case(scheme).then(|| credentials.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use posthaste_core::record::TopicRecord;

    fn topic(key1: &str, key2: &str) -> Topic {
        let record = format!(
            r#"{{"v":1,"name":"orders","key1":"{key1}","key2":"{key2}","createdAt":0,"updatedAt":0,"settings":{{}}}}"#
        );
        TopicRecord::parse(record.as_bytes()).unwrap().compile().unwrap()
    }

    fn check(headers: &[(&'static str, &str)], expected: bool) {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        assert_eq!(opens(&topic("first", "second"), &headers.collect(), Timestamp::EPOCH), expected);
    }

    #[test]
    fn either_key_opens_in_either_header() {
        for key in ["first", "second"] {
            check(&[("aeg-sas-key", key)], true);
            check(&[("authorization", &format!("Bearer {key}"))], true);
            check(&[("authorization", &format!("bearer  {key}"))], true);
        }
    }

    #[test]
    fn no_key_and_a_wrong_key_do_not() {
        check(&[], false);
        for wrong in ["", " ", "firs", "firstt", "First", "first second", "ключ"] {
            check(&[("aeg-sas-key", wrong)], false);
            check(&[("authorization", &format!("Bearer {wrong}"))], false);
        }
        for other in ["first", "Basic first", "Bearer", "Bearerfirst", "Bearér first"] {
            check(&[("authorization", other)], false);
        }
    }

    #[test]
    fn a_wrong_key_beside_a_right_one_does_no_harm() {
        check(&[("aeg-sas-key", "wrong"), ("authorization", "Bearer second")], true);
        check(&[("aeg-sas-key", "first"), ("authorization", "Basic d3Jvbmc=")], true);
    }

    #[test]
    fn an_empty_key_of_the_topic_opens_nothing() {
        let headers = [(HeaderName::from_static(AEG_SAS_KEY), HeaderValue::from_static(""))];
        assert!(!opens(&topic("", ""), &headers.into_iter().collect(), Timestamp::EPOCH));
    }
}
