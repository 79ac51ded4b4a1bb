//! Reads a tree through serde, with faults as errors.

use serde::Deserializer;
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use super::fault::ValueFault;
use super::tree::{InputNode, NodeContent};

/// The language in which a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputNotation {
    /// JSON: every value has one kind.
    Json,
    /// YAML: a text without quotes may look like a number or boolean, and nothing is an empty list
    /// or object.
    Yaml,
    /// The query or path of a request: every value is a text.
    Query,
    /// The JSON answer of a server that may be newer: members that are not known are left out.
    Answer,
}

/// A node, as serde reads it.
#[derive(Clone, Copy)]
pub(super) struct NodeReader<'a> {
    node: &'a InputNode,
    notation: InputNotation,
}

impl<'a> NodeReader<'a> {
    /// Reads a node.
    pub(super) fn for_node(node: &'a InputNode, notation: InputNotation) -> Self {
        Self { node, notation }
    }

    fn is_null(self) -> bool {
        matches!(self.node.content, NodeContent::Scalar(Value::Null, _))
    }

    fn is_empty_in_yaml(self) -> bool {
        self.notation == InputNotation::Yaml && self.is_null()
    }

    fn value_kind(self) -> &'static str {
        match &self.node.content {
            NodeContent::Scalar(Value::Null, _) => "nothing",
            NodeContent::Scalar(Value::Bool(_), _) => "a boolean",
            NodeContent::Scalar(Value::Number(_), _) => "a number",
            NodeContent::Scalar(Value::String(_), _) => "a text",
            NodeContent::Scalar(Value::Array(_), _) | NodeContent::List => "a list",
            NodeContent::Scalar(Value::Object(_), _) | NodeContent::Object { .. } => "an object",
        }
    }

    /// The text of a scalar, if its notation allows one here.
    fn scalar_text(self) -> Option<String> {
        match &self.node.content {
            NodeContent::Scalar(Value::String(text), _) => Some(text.clone()),
            NodeContent::Scalar(value @ (Value::Bool(_) | Value::Number(_)), text)
                if self.notation == InputNotation::Yaml =>
            {
                Some(text.clone().unwrap_or_else(|| value.to_string()))
            }
            NodeContent::Scalar(..) | NodeContent::List | NodeContent::Object { .. } => None,
        }
    }

    /// The number or boolean that a text is where one is expected.
    fn text_as_scalar(self) -> Option<Value> {
        let NodeContent::Scalar(Value::String(text), _) = &self.node.content else {
            return None;
        };
        match self.notation {
            InputNotation::Json | InputNotation::Answer => None,
            InputNotation::Yaml => plain_yaml(text),
            InputNotation::Query => parse_plain(text),
        }
    }
}

fn plain_yaml(text: &str) -> Option<Value> {
    match text.to_ascii_lowercase().as_str() {
        "y" | "yes" | "on" => Some(true.into()),
        "n" | "no" | "off" => Some(false.into()),
        text => parse_plain(text),
    }
}

fn parse_plain(text: &str) -> Option<Value> {
    serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| value.is_boolean() || value.is_number())
}

fn visit_scalar<'de, V: Visitor<'de>>(value: &Value, visitor: V) -> Result<V::Value, ValueFault> {
    match value {
        Value::Bool(value) => visitor.visit_bool(*value),
        Value::String(text) => visitor.visit_str(text),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), _, _) => visitor.visit_u64(number),
            (None, Some(number), _) => visitor.visit_i64(number),
            (None, None, number) => visitor.visit_f64(number.unwrap_or_default()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => visitor.visit_unit(),
    }
}

/// Reads a number or boolean, which YAML may have as a text.
macro_rules! plain_scalars {
    ($($deserialize:ident)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
            match self.text_as_scalar() {
                Some(value) => visit_scalar(&value, visitor),
                None => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for NodeReader<'de> {
    type Error = ValueFault;

    plain_scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        let children = self.node.children.iter();
        match &self.node.content {
            NodeContent::Scalar(value, _) => visit_scalar(value, visitor),
            NodeContent::List => {
                let items = children.map(|node| Self { node, ..self });
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            NodeContent::Object { .. } => {
                let members = children.map(|node| (node.name(), Self { node, ..self }));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        match self.scalar_text() {
            Some(text) => visitor.visit_string(text),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        if self.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        if self.is_empty_in_yaml() {
            return visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<Self>()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        if self.is_empty_in_yaml() {
            return visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, Self)>()));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueFault> {
        match &self.node.content {
            // Serde would take the items of a list as the members, in their order.
            NodeContent::List => Err(ValueFault::invalid_type(Unexpected::Seq, &"a map")),
            NodeContent::Object { .. } => {
                let is_there = |node: &&InputNode| {
                    if known.contains(&node.name()) {
                        !node.is_left_out()
                    } else {
                        self.notation != InputNotation::Answer
                    }
                };
                let members = self.node.children.iter().filter(is_there);
                let members = members.map(|node| (node.name(), Self { node, ..self }));
                visitor.visit_map(MapDeserializer::new(members))
            }
            NodeContent::Scalar(..) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueFault> {
        match self.scalar_text() {
            Some(word) => visitor.visit_enum(StrDeserializer::new(&word)),
            None => Err(ValueFault::NoWord {
                found: self.value_kind(),
                known,
            }),
        }
    }
}

impl<'de> IntoDeserializer<'de, ValueFault> for NodeReader<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
