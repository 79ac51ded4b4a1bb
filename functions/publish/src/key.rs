//! The publish key of a request: where producers put it, and whether it opens the topic.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use posthaste_core::topic::TopicKeys;

/// The header in which Event Grid's clients send the key.
/// <https://learn.microsoft.com/azure/event-grid/authenticate-with-access-key-shared-access-signature>
const AEG_SAS_KEY: &str = "aeg-sas-key";

/// The scheme of `Authorization`, written in any case.
const BEARER: &str = "Bearer ";

/// Whether one of the two headers carries one of the topic's two keys. Every offered key is compared, in constant
/// time, so that the time of the answer tells nothing.
pub(crate) fn opens(keys: &TopicKeys, headers: &HeaderMap) -> bool {
    let offered = [headers.get(AEG_SAS_KEY).and_then(|value| value.to_str().ok()), bearer(headers)];
    offered
        .into_iter()
        .flatten()
        .filter(|key| !key.is_empty())
        .fold(false, |opens, key| opens | keys.accept(key))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| key.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use posthaste_core::secret::Secret;

    fn check(headers: &[(&'static str, &str)], expected: bool) {
        let keys = TopicKeys { key1: Secret::new("first"), key2: Secret::new("second") };
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        assert_eq!(opens(&keys, &headers.collect()), expected);
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
        let keys = TopicKeys { key1: Secret::new(""), key2: Secret::new("") };
        let headers = [(HeaderName::from_static(AEG_SAS_KEY), HeaderValue::from_static(""))];
        assert!(!opens(&keys, &headers.into_iter().collect()));
    }
}
