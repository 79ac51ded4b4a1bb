//! An object of a JSON text that another program wrote.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// A `T` that is written as an object. Serde would also take a list, whose items it reads as the
/// members in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonObject<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = JsonObject<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(JsonObject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Named<'a> {
        name: &'a str,
    }

    #[test]
    fn list_is_no_object() {
        let read = |text| serde_json::from_str::<JsonObject<Named<'_>>>(text);
        assert_eq!(
            read(r#"{"name": "a"}"#).unwrap(),
            JsonObject(Named { name: "a" })
        );
        assert_eq!(
            read(r#"["a"]"#).unwrap_err().to_string(),
            "invalid type: sequence, expected an object at line 1 column 0"
        );
    }
}
