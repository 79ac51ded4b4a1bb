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

use crate::place::Place;
use crate::text::parse;
use crate::text_mistake::TextMistake;

/// The values of a text and their places.
pub(crate) struct Places(Spanned<Node>);

impl Places {
    /// Finds them.
    ///
    /// # Errors
    /// The text is no YAML.
    pub(crate) fn of(text: &[u8]) -> Result<Self, TextMistake> {
        parse(text).map(Self)
    }

    /// The values of `text`, from which these places are.
    pub(crate) fn written(&self, text: &[u8]) -> WrittenValue {
        written(&self.0, text)
    }

    /// The place of the value at `path`, such as `topics.orders.subscriptions.a.schedule[2]`, or
    /// else of the deepest value on the way to it.
    pub(crate) fn of_value(&self, path: &str) -> Place {
        Place::of(self.deepest(path).1.referenced)
    }

    /// The place of the name of the member at `path`, or else of the deepest name on the way to it.
    pub(crate) fn of_name(&self, path: &str) -> Place {
        self.deepest(path).0
    }

    /// The deepest value on the way to `path`, and the place of its name, or of itself in a list.
    fn deepest(&self, path: &str) -> (Place, &Spanned<Node>) {
        let mut at = (Place::of(self.0.referenced), &self.0);
        for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
            let next = match &at.1.value {
                Node::Map(members) => members.get(step).map(|(name, value)| (*name, value)),
                Node::Sequence(items) => {
                    let item = step.parse().ok().and_then(|index: usize| items.get(index));
                    item.map(|item| (Place::of(item.referenced), item))
                }
                Node::Scalar(_) => None,
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }
}

enum Node {
    /// Values by name, with the places of the names.
    Map(BTreeMap<String, (Place, Spanned<Node>)>),
    Sequence(Vec<Spanned<Node>>),
    /// `None` for a number that only YAML has, such as `.inf`: it is a text of its characters.
    Scalar(Option<Value>),
}

fn written(node: &Spanned<Node>, text: &[u8]) -> WrittenValue {
    match &node.value {
        Node::Map(members) => {
            let member = |(name, (_, value)): (&String, &(_, Spanned<Node>))| {
                (name.clone(), written(value, text))
            };
            WrittenValue::Object(members.iter().map(member).collect())
        }
        Node::Sequence(items) => {
            WrittenValue::List(items.iter().map(|item| written(item, text)).collect())
        }
        Node::Scalar(value) => {
            let text = characters(node.defined, text);
            let value = value
                .clone()
                .unwrap_or_else(|| text.clone().unwrap_or_default().into());
            WrittenValue::Scalar { value, text }
        }
    }
}

/// The characters of a scalar at a place of a text.
fn characters(at: Location, text: &[u8]) -> Option<String> {
    let begin = usize::try_from(at.span().byte_offset()?).ok()?;
    let end = begin.checked_add(usize::try_from(at.span().byte_len()?).ok()?)?;
    let characters = std::str::from_utf8(text.get(begin..end)?).ok()?;
    Some(characters.trim().to_owned())
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<Node, E> {
            Ok(Node::Scalar(Some(value.into())))
        })*
    };
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str);

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Number::from_f64(value).map(Value::Number)))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Some(Value::Null)))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Some(Value::Null)))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Node::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<Spanned<String>, _>()? {
            members.insert(name.value, (Place::of(name.referenced), value));
        }
        Ok(Node::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places::of(b"topics:\n  a:\n    list: [1, two, {x: ~}]\n").unwrap()
    }

    #[test]
    fn the_deepest_value_on_the_way_is_found() {
        let check = |path, (line, column): (u64, u64)| {
            assert_eq!(places().of_value(path), Place { line, column }, "{path}");
        };
        check("topics.a.list[1]", (3, 15));
        check("topics.a.list[2].x", (3, 24));
        check("topics.a.list[9]", (3, 11));
        check("topics.a.none.deeper", (3, 5));
    }

    #[test]
    fn a_name_has_a_place_of_its_own() {
        let check = |path, (line, column): (u64, u64)| {
            assert_eq!(places().of_name(path), Place { line, column }, "{path}");
        };
        check("topics.a", (2, 3));
        check("topics.a.list", (3, 5));
        check("topics.a.list[1]", (3, 15));
        check("topics.a.list[2].x", (3, 21));
        check("", (1, 1));
    }
}
