//! The place in which a text ends to be JSON. Texts of events are never read as values: only where
//! one is refused, the way to its fault is looked for.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// The way to the value at which `error` was found in `text`, such as `[1].data.id`. `None` where
/// it is in no value below the whole.
pub(super) fn fault_path(text: &str, error: &serde_json::Error) -> Option<String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let found = serde_path_to_error::deserialize::<_, DiscardedValue>(&mut json).err()?;
    // A string that is no text is found here, and is none of the faults of the text. Within a
    // string, one reader stops before the character at fault and the other behind it.
    let is_same = error_offset(text, found.inner()).abs_diff(error_offset(text, error)) <= 1;
    let path = found.path().to_string();
    (is_same && path != "." && !path.contains('?')).then_some(path)
}

/// Bytes of the text before the place of an error.
fn error_offset(text: &str, error: &serde_json::Error) -> usize {
    let lines = text.split_inclusive('\n');
    let before = lines.take(error.line().saturating_sub(1));
    before.map(str::len).sum::<usize>() + error.column()
}

/// A value that was read and not kept.
struct DiscardedValue;

impl<'de> Deserialize<'de> for DiscardedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DiscardedValueVisitor)
    }
}

struct DiscardedValueVisitor;

macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<DiscardedValue, E> {
            Ok(DiscardedValue)
        })*
    };
}

impl<'de> Visitor<'de> for DiscardedValueVisitor {
    type Value = DiscardedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<DiscardedValue, E> {
        Ok(DiscardedValue)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<DiscardedValue, A::Error> {
        while sequence.next_element::<DiscardedValue>()?.is_some() {}
        Ok(DiscardedValue)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DiscardedValue, A::Error> {
        while map.next_entry::<Cow<'de, str>, DiscardedValue>()?.is_some() {}
        Ok(DiscardedValue)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn found(text: &str) -> Option<String> {
        let error = serde_json::from_str::<&RawValue>(text).unwrap_err();
        fault_path(text, &error)
    }

    #[test]
    fn fault_is_found_in_the_deepest_value() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(found(text).as_deref(), expected, "{text}");
        };
        check(r#"[{}, {"a": {"b": .5}}]"#, Some("[1].a.b"));
        check(r#"{"id": undefined}"#, Some("id"));
        check(r#"{"data": [1, 2, ]}"#, Some("data"));
        check(r#"[{"id": "1}]"#, Some("[0].id"));
        check("[{\"id\": \"a\tb\"}]", Some("[0].id"));
        check(
            "{\"a\": 1,\n\"data\": {\"text\": \"a\nb\"}}",
            Some("data.text"),
        );
        check("[{}", None);
        check("{'id': 1}", None);
        // The string is no text, which is not the fault that stops the reader of values.
        check(r#"{"a": "\ud800", "b": .5}"#, None);
    }
}
