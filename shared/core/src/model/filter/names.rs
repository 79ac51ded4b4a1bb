//! The members that the keys of a topic's filters name, as one tree, and the values that an event
//! has under them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::DecimalNumber;
use super::value::{FilterValue, ValueElements};
use crate::model::lossy_text;

/// The names under one member, or at the root those of the event itself.
#[derive(Debug, Default)]
pub(crate) struct NameTree {
    /// The members named here, in the order of their names.
    children: Vec<(Box<str>, NameTree)>,
    /// The slot for this member's value, if it is wanted.
    slot: Option<ValueSlot>,
}

/// The slot for a wanted value, and the way to read the value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueSlot {
    /// The position among the values.
    pub(crate) index: usize,
    /// Whether it is an extension attribute.
    pub(crate) is_extension: bool,
    /// Whether a filter looks into an array here.
    pub(crate) has_arrays: bool,
}

impl NameTree {
    /// Whether nothing is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.children.is_empty() && self.slot.is_none()
    }

    /// Names a member by the names on the way to it.
    pub(crate) fn insert(&mut self, path: &[Box<str>], slot: ValueSlot) {
        let Some((first, rest)) = path.split_first() else {
            self.slot = Some(slot);
            return;
        };
        let at = match self.children.binary_search_by(|(name, _)| name.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                self.children.insert(at, (first.clone(), Self::default()));
                at
            }
        };
        self.children[at].1.insert(rest, slot);
    }

    /// Reads the values here, and under every name, from JSON that was found valid before. Of
    /// members that occur twice the last counts, as it does for most receivers. Members that are
    /// not named are skipped, not decoded.
    pub(crate) fn read_values<'e>(
        &self,
        json: &'e str,
        found: &mut impl FnMut(usize, FilterValue<'e>),
    ) {
        if let Some(slot) = self.slot
            && let Some(value) = slot.read_value(json)
        {
            found(slot.index, value);
        }
        if self.children.is_empty() || !json.starts_with('{') {
            return;
        }
        let members = serde_json::Deserializer::from_str(json).deserialize_map(NamedMembers(self));
        let mut members = members.unwrap_or_default();
        members.sort_by_key(|(at, _)| *at);
        for (at, json) in members
            .chunk_by(|(one, _), (other, _)| one == other)
            .filter_map(<[_]>::last)
        {
            self.children[*at].1.read_values(json, found);
        }
    }
}

impl ValueSlot {
    /// The value; `None` where it is null.
    fn read_value(self, json: &str) -> Option<FilterValue<'_>> {
        if self.is_extension {
            return parse_extension(json);
        }
        match parse_scalar(json)? {
            FilterValue::Opaque if self.has_arrays && json.starts_with('[') => {
                Some(parse_array(json))
            }
            value => Some(value),
        }
    }
}

/// The value by its first character; opaque where it is an array or an object, `None` where it is
/// null.
fn parse_scalar(json: &str) -> Option<FilterValue<'_>> {
    match json.as_bytes().first() {
        Some(b'"') => Some(FilterValue::from_text(lossy_text(json))),
        Some(b't') => Some(FilterValue::Bool(true)),
        Some(b'f') => Some(FilterValue::Bool(false)),
        Some(b'n') => None,
        _ => Some(DecimalNumber::parse(json).map_or(FilterValue::Opaque, FilterValue::Number)),
    }
}

fn parse_extension(json: &str) -> Option<FilterValue<'_>> {
    match json.as_bytes().first() {
        Some(b'n') | None => None,
        Some(b'"') => Some(FilterValue::from_attribute(lossy_text(json))),
        Some(_) => Some(FilterValue::from_attribute(Cow::Borrowed(json))),
    }
}

fn parse_array(json: &str) -> FilterValue<'_> {
    let mut elements = ValueElements::default();
    for element in serde_json::from_str::<Vec<&RawValue>>(json).unwrap_or_default() {
        if let Some(value) = parse_scalar(element.get()) {
            elements.push(value);
        }
    }
    elements.into_array()
}

/// The named members of an object, as positions among the names and their text.
struct NamedMembers<'n>(&'n NameTree);

impl<'e> Visitor<'e> for NamedMembers<'_> {
    type Value = Vec<(usize, &'e str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'e>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(at) = map.next_key_seed(NamePosition(self.0))? {
            match at {
                Some(at) => members.push((at, map.next_value::<&RawValue>()?.get())),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(members)
    }
}

/// A member's position among the names, if it is one of them. A name is compared as bytes: it may
/// hold half of a surrogate pair, and is then no name of the tree.
struct NamePosition<'n>(&'n NameTree);

impl<'e> DeserializeSeed<'e> for NamePosition<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'e>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for NamePosition<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_bytes<E>(self, written: &[u8]) -> Result<Self::Value, E> {
        Ok(self
            .0
            .children
            .binary_search_by(|(name, _)| name.as_bytes().cmp(written))
            .ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the value that is found in `json` under this path, as `Debug` shows it.
    fn check(json: &str, path: &str, expected: &str) {
        let mut names = NameTree::default();
        for (index, path) in ["x", path, "x.y"].iter().enumerate() {
            let path: Vec<Box<str>> = path.split('.').map(Box::from).collect();
            names.insert(
                &path,
                ValueSlot {
                    index,
                    is_extension: false,
                    has_arrays: true,
                },
            );
        }
        let mut shown = "None".to_owned();
        names.read_values(json, &mut |index, value| {
            if index == 1 {
                shown = format!("{value:?}");
            }
        });
        assert_eq!(shown, expected, "{json}");
    }

    #[test]
    fn values_are_found_by_their_path() {
        check(r#"{"a":{"b":"C"}}"#, "a.b", r#"Text("c")"#);
        check(r#"{"a":{"b":true},"x":{"y":1}}"#, "a.b", "Bool(true)");
        check(r#"{"a":{"b":0}}"#, "a.b", "Number(Zero)");
        check(r#"{"a":{"b":{}}}"#, "a.b", "Opaque");
        check(r#"{"a":{"b":null}}"#, "a.b", "None");
        check(r#"{"a":[{"b":1}]}"#, "a.b", "None");
        check(r#"{"a.b":1,"A":{"b":1},"a":{"B":1}}"#, "a.b", "None");
    }

    #[test]
    fn last_of_repeated_members_counts() {
        check(
            r#"{"a":{"b":"1"},"a":{"b":"2","b":"3"}}"#,
            "a.b",
            r#"Text("3")"#,
        );
        check(r#"{"a":{"b":"1"},"a":{}}"#, "a.b", "None");
        check(r#"{"a":{"b":"1"},"a":null}"#, "a.b", "None");
    }

    #[test]
    fn escapes_are_decoded_and_broken_ones_do_no_harm() {
        check(r#"{"\u0061":{"b":"\u0041\n"}}"#, "a.b", "Text(\"a\\n\")");
        check(
            r#"{"\ud800":1,"a":{"\udfff":[],"b":"x\ud800y"}}"#,
            "a.b",
            "Text(\"x\u{fffd}\u{fffd}\u{fffd}y\")",
        );
    }

    #[test]
    fn an_array_is_sorted_by_type() {
        check(
            r#"{"a":["b","A",2,null,{"x":1},[3],true,0,true]}"#,
            "a",
            r#"Array(ValueElements { texts: ["a", "b"], numbers: [Zero, Positive(NumberMagnitude { exponent: 1, head: 2000000000000000000, tail: [] })], bools: [true] })"#,
        );
    }
}
