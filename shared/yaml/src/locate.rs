//! The place of a member in a YAML text. Rules are checked on parsed settings, which have no places; so the
//! text is parsed again, as a tree with places, when an error needs one.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// The places of all values of a text.
pub(crate) struct Places(Spanned<Node>);

impl Places {
    /// Finds them. `None` if the text is no YAML.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        serde_saphyr::from_slice(text).ok().map(Self)
    }

    /// The place of the value at `path`, such as `topics.orders.subscriptions.a.schedule[2]`, or else of the
    /// deepest value on the way to it.
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
                Node::Scalar => None,
            };
            let Some(next) = next else { break };
            at = next;
        }
        at
    }
}

impl Place {
    fn of(location: Location) -> Self {
        Self { line: location.line(), column: location.column() }
    }
}

enum Node {
    /// Values by name, with the places of the names.
    Map(BTreeMap<String, (Place, Spanned<Node>)>),
    Sequence(Vec<Spanned<Node>>),
    Scalar,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

/// Makes the same node of every scalar, because only its place matters.
macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Node, E> {
            Ok(Node::Scalar)
        })*
    };
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
    scalars!(visit_str: &str, visit_bytes: &[u8]);

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Node::Scalar)
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
