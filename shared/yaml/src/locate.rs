//! A YAML text as a tree whose values know their places. Settings are read from the tree: settings
//! that were read have no places, and a reader of YAML for each of their types would make a large
//! program.

use std::collections::BTreeMap;
use std::fmt;

use posthaste_core::api::WrittenValue;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{Location, Spanned};

use crate::place::TextPlace;
use crate::text::parse;
use crate::text_mistake::TextMistake;

/// The values of a text and their places.
pub(crate) struct ValuePlaces(Spanned<YamlNode>);

impl ValuePlaces {
    /// Finds the places of all values of a text.
    ///
    /// # Errors
    /// The text is no YAML.
    pub(crate) fn find(text: &[u8]) -> Result<Self, TextMistake> {
        parse(text).map(Self)
    }

    /// The values of `text`, from which these places are.
    pub(crate) fn to_written(&self, text: &[u8]) -> WrittenValue {
        written_node(&self.0, text)
    }

    /// The place of the value at `path`, such as `topics.orders.subscriptions.a.schedule[2]`, or
    /// else of the deepest value on the way to it.
    pub(crate) fn place_of_value(&self, path: &str) -> TextPlace {
        TextPlace::from_location(self.deepest_value(path).1.referenced)
    }

    /// The place of the name of the member at `path`, or else of the deepest name on the way to it.
    pub(crate) fn place_of_name(&self, path: &str) -> TextPlace {
        self.deepest_value(path).0
    }

    /// The deepest value on the way to `path`, and the place of its name, or of itself in a list.
    fn deepest_value(&self, path: &str) -> (TextPlace, &Spanned<YamlNode>) {
        let mut at = (TextPlace::from_location(self.0.referenced), &self.0);
        for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
            let next = match &at.1.value {
                YamlNode::Map(members) => members.get(step).map(|(name, value)| (*name, value)),
                YamlNode::Sequence(items) => {
                    let item = step.parse().ok().and_then(|index: usize| items.get(index));
                    item.map(|item| (TextPlace::from_location(item.referenced), item))
                }
                YamlNode::Scalar(_) => None,
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }
}

enum YamlNode {
    /// Values by name, with the places of the names.
    Map(BTreeMap<String, (TextPlace, Spanned<YamlNode>)>),
    Sequence(Vec<Spanned<YamlNode>>),
    /// `None` for a number that only YAML has, such as `.inf`: it is a text of its characters.
    Scalar(Option<Value>),
}

fn written_node(node: &Spanned<YamlNode>, text: &[u8]) -> WrittenValue {
    match &node.value {
        YamlNode::Map(members) => {
            let members = members
                .iter()
                .map(|(name, (_, value))| (name.clone(), written_node(value, text)));
            WrittenValue::Object(members.collect())
        }
        YamlNode::Sequence(items) => {
            WrittenValue::List(items.iter().map(|item| written_node(item, text)).collect())
        }
        YamlNode::Scalar(value) => {
            let text = scalar_text(node.defined, text);
            let value = value
                .clone()
                .unwrap_or_else(|| text.clone().unwrap_or_default().into());
            WrittenValue::Scalar { value, text }
        }
    }
}

/// The characters of a scalar at a place of a text.
fn scalar_text(at: Location, text: &[u8]) -> Option<String> {
    let begin = usize::try_from(at.span().byte_offset()?).ok()?;
    let end = begin.checked_add(usize::try_from(at.span().byte_len()?).ok()?)?;
    let characters = std::str::from_utf8(text.get(begin..end)?).ok()?;
    Some(characters.trim().to_owned())
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<YamlNode, E> {
            Ok(YamlNode::Scalar(Some(value.into())))
        })*
    };
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str);

    fn visit_f64<E>(self, value: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Number::from_f64(value).map(Value::Number)))
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Some(Value::Null)))
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Some(Value::Null)))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<Spanned<String>, _>()? {
            members.insert(
                name.value,
                (TextPlace::from_location(name.referenced), value),
            );
        }
        Ok(YamlNode::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> ValuePlaces {
        ValuePlaces::find(b"topics:\n  a:\n    list: [1, two, {x: ~}]\n").unwrap()
    }

    #[test]
    fn the_deepest_value_on_the_way_is_found() {
        let check = |path, (line, column): (u64, u64)| {
            assert_eq!(
                places().place_of_value(path),
                TextPlace { line, column },
                "{path}"
            );
        };
        check("topics.a.list[1]", (3, 15));
        check("topics.a.list[2].x", (3, 24));
        check("topics.a.list[9]", (3, 11));
        check("topics.a.none.deeper", (3, 5));
    }

    #[test]
    fn a_name_has_a_place_of_its_own() {
        let check = |path, (line, column): (u64, u64)| {
            assert_eq!(
                places().place_of_name(path),
                TextPlace { line, column },
                "{path}"
            );
        };
        check("topics.a", (2, 3));
        check("topics.a.list", (3, 5));
        check("topics.a.list[1]", (3, 15));
        check("topics.a.list[2].x", (3, 21));
        check("", (1, 1));
    }
}
