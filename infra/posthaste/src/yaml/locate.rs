//! The place of a member in a YAML text. Rules are checked on parsed settings, which have no places; so the
//! text is parsed again, as a tree with places, when an error needs one.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// The place of the value at `path`, such as `topics.orders.subscriptions.a.schedule[2]`, or else of the
/// deepest value on the way to it.
pub(super) fn locate(text: &[u8], path: &str) -> Option<Place> {
    let root: Spanned<Node> = serde_saphyr::from_slice(text).ok()?;
    let mut at = &root;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let next = match &at.value {
            Node::Map(members) => members.get(step),
            Node::Sequence(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
            Node::Scalar => None,
        };
        let Some(next) = next else { break };
        at = next;
    }
    Some(Place { line: at.referenced.line(), column: at.referenced.column() })
}

enum Node {
    Map(BTreeMap<String, Spanned<Node>>),
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
        while let Some((key, value)) = map.next_entry()? {
            members.insert(key, value);
        }
        Ok(Node::Map(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_value_on_the_way_is_found() {
        let text = b"topics:\n  a:\n    list: [1, two, {x: ~}]\n";
        let check = |path, expected: (u64, u64)| {
            let place = locate(text, path).unwrap();
            assert_eq!((place.line, place.column), expected, "{path}");
        };
        check("topics.a.list[1]", (3, 15));
        check("topics.a.list[2].x", (3, 24));
        check("topics.a.list[9]", (3, 11));
        check("topics.a.none.deeper", (3, 5));
    }
}
