//! A value as a user wrote it, before it is read as settings.

use serde_json::Value;

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
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
    /// The members in their order.
    Object(Vec<(String, Self)>),
}

impl From<&Value> for Written {
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
