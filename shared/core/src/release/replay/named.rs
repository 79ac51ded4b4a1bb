//! The objects, or single letters of objects, that a request names.

use std::collections::{BTreeMap, BTreeSet};

use super::request_error::{NamedKey, ReplayRequestError};
use crate::api::ReplayRequest;
use crate::model::{REPLAY_KEYS_MAX, REPLAY_LETTERS_MAX, is_object_key};
use crate::stored::layout;

/// Objects by their keys, each with the places of the letters that are meant; `None` where all are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedObjects(BTreeMap<String, Option<BTreeSet<usize>>>);

impl NamedObjects {
    /// The objects that a request names of a subscription, whose keys begin with `prefix`; `None`
    /// if it names nothing.
    pub(super) fn check_request(
        request: &ReplayRequest,
        prefix: &str,
    ) -> Result<Option<Self>, ReplayRequestError> {
        if request.keys.len() > REPLAY_KEYS_MAX {
            return Err(ReplayRequestError::Keys(request.keys.len()));
        }
        if request.letters.len() > REPLAY_LETTERS_MAX {
            return Err(ReplayRequestError::Letters(request.letters.len()));
        }
        if !request.keys.is_empty() && !request.letters.is_empty() {
            return Err(ReplayRequestError::KeysAndLetters);
        }
        for (named, key) in named_keys(request) {
            if key.starts_with(layout::MALFORMED) {
                return Err(ReplayRequestError::Malformed(named));
            }
            if !key.starts_with(prefix) {
                return Err(ReplayRequestError::Foreign {
                    key: named,
                    prefix: prefix.to_owned(),
                });
            }
        }
        let mut objects: BTreeMap<_, _> =
            request.keys.iter().map(|key| (key.clone(), None)).collect();
        for letter in &request.letters {
            let places = objects
                .entry(letter.object.clone())
                .or_insert_with(|| Some(BTreeSet::new()));
            places.get_or_insert_default().insert(letter.index);
        }
        Ok((!objects.is_empty()).then_some(Self(objects)))
    }

    /// Checks that each key is one that an object can have.
    pub(super) fn check_keys(request: &ReplayRequest) -> Result<(), ReplayRequestError> {
        match named_keys(request).find(|(_, key)| !is_object_key(key)) {
            Some((named, _)) => Err(ReplayRequestError::NoObject(named)),
            None => Ok(()),
        }
    }

    /// The keys, in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The places of the letters of an object that are meant; `None` where all are.
    pub(super) fn letters_of(&self, object: &str) -> Option<&BTreeSet<usize>> {
        self.0.get(object)?.as_ref()
    }
}

fn named_keys(request: &ReplayRequest) -> impl Iterator<Item = (NamedKey, &str)> {
    let keys = request.keys.iter().enumerate();
    let keys = keys.map(|(index, key)| (NamedKey::Object(index), key.as_str()));
    let letters = request.letters.iter().enumerate();
    keys.chain(letters.map(|(index, it)| (NamedKey::Letter(index), it.object.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const OWN: &str = "ORDERS/BILLING/2026/3/7/4/a.json";

    fn named(request: Value) -> Result<Option<NamedObjects>, ReplayRequestError> {
        let request: ReplayRequest = serde_json::from_value(request).unwrap();
        NamedObjects::check_keys(&request)?;
        NamedObjects::check_request(&request, "ORDERS/BILLING/")
    }

    #[test]
    fn letters_of_one_object_are_gathered() {
        let letters = json!({ "letters": [
            { "object": OWN, "index": 7 }, { "object": OWN, "index": 0 }, { "object": OWN, "index": 7 },
        ] });
        let named = named(letters).unwrap().unwrap();
        assert_eq!(named.keys().collect::<Vec<_>>(), [OWN]);
        assert_eq!(named.letters_of(OWN), Some(&BTreeSet::from([0, 7])));
        assert_eq!(named.letters_of("other"), None);
    }

    #[test]
    fn named_object_has_all_its_letters() {
        let of_object = named(json!({ "keys": [OWN] })).unwrap().unwrap();
        assert_eq!(of_object.letters_of(OWN), None);
        assert_eq!(named(json!({})).unwrap(), None);
    }

    /// Letters of two subscriptions are refused, and the one that is not this one's is named.
    #[test]
    fn impossible_letters_name_their_member() {
        let check = |request: Value, member: &str, message: &str| {
            let error = named(request).unwrap_err();
            assert_eq!(
                (error.member().as_str(), error.to_string().as_str()),
                (member, message)
            );
        };
        let letter = |object: &str| json!({ "object": object, "index": 0 });
        check(
            json!({ "letters": [letter(OWN), letter("ORDERS/OTHER/2026/3/7/4/a.json")] }),
            "letters[1].object",
            "not a dead letter of this subscription: its keys begin with ORDERS/BILLING/",
        );
        check(
            json!({ "letters": [letter("ORDERS/BILLING/../a.json")] }),
            "letters[0].object",
            "no object can have this key",
        );
        check(
            json!({ "letters": [letter("MALFORMED/2026/3/7/4/x")] }),
            "letters[0].object",
            "what lies under MALFORMED/ could not be read as a message and cannot be replayed",
        );
        check(
            json!({ "letters": [letter(OWN)], "keys": [OWN] }),
            "letters",
            "a request has keys or letters, not both",
        );
        check(
            json!({ "letters": vec![letter(OWN); REPLAY_LETTERS_MAX + 1] }),
            "letters",
            "1001 letters, expected at most 1000",
        );
    }
}
