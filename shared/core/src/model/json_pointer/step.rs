//! One step of a pointer: into a member of an object or an item of an array.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The JSON of a member or item; `None` where there is none, or the text is no JSON.
pub(super) fn descend_into<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    match json.trim_ascii_start().as_bytes().first()? {
        b'{' => deserializer.deserialize_map(MemberFinder(name)).ok()?,
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            items.get(parse_index(name)?).map(|item| item.get())
        }
        _ => None,
    }
}

/// An index as RFC 6901 writes it: digits, without zeros in front.
fn parse_index(name: &str) -> Option<usize> {
    let is_plain = name == "0" || !name.starts_with(['0', '+']);
    if is_plain { name.parse().ok() } else { None }
}

struct MemberFinder<'n>(&'n str);

impl<'de> Visitor<'de> for MemberFinder<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(NameMatch(self.0))? {
            if is_it {
                found = Some(map.next_value::<&'de RawValue>()?.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a member's name is this one. It is compared in bytes, so that a lone surrogate in the
/// name of a neighbour does not end the reading.
struct NameMatch<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for NameMatch<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for NameMatch<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<bool, E> {
        Ok(name == self.0.as_bytes())
    }
}
