//! A value as a user wrote it, before it is read as settings.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenValue {
    /// No list and no object.
    Scalar {
        /// The value that the notation gives it.
        value: Value,
        /// The characters, where they may be meant as a text: `1.10` in YAML is a number, or the
        /// text `1.10`.
        text: Option<String>,
    },
    /// The items in their order.
    List(Vec<Self>),
    /// The members in their order. A name may be there twice.
    Object(Vec<(String, Self)>),
}

impl From<&Value> for WrittenValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), value.into()))
                    .collect(),
            ),
            scalar => Self::Scalar {
                value: scalar.clone(),
                text: None,
            },
        }
    }
}

impl WrittenValue {
    /// A text of a notation in which every value is one, such as that of a query.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::from_scalar(Value::String(text.into()))
    }

    /// The member of this name, of an object that has it.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let found = members.iter().find(|(it, _)| it == name);
        found.map(|(_, member)| member)
    }

    /// Whether it is nothing.
    pub fn is_null(&self) -> bool {
        matches!(
            self,
            Self::Scalar {
                value: Value::Null,
                ..
            }
        )
    }

    fn from_scalar(value: Value) -> Self {
        Self::Scalar { value, text: None }
    }
}

impl<'de> Deserialize<'de> for WrittenValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenVisitor)
    }
}

struct WrittenVisitor;

macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<WrittenValue, E> {
            Ok(WrittenValue::from_scalar(value.into()))
        })*
    };
}

impl<'de> Visitor<'de> for WrittenVisitor {
    type Value = WrittenValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_str: &str, visit_string: String);

    fn visit_f64<E>(self, value: f64) -> Result<WrittenValue, E> {
        Ok(WrittenValue::from_scalar(
            Number::from_f64(value).map_or(Value::Null, Value::Number),
        ))
    }

    fn visit_unit<E>(self) -> Result<WrittenValue, E> {
        Ok(WrittenValue::from_scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<WrittenValue, E> {
        Ok(WrittenValue::from_scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<WrittenValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(WrittenValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenValue, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(WrittenValue::Object(members))
    }
}
