//! Attributes as OTLP has them.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use posthaste_core::trace::SpanValue;

/// A text by its name.
pub(crate) fn text_attribute(name: &str, text: &str) -> KeyValue {
    key_value(name, Value::StringValue(text.to_owned()))
}

/// A value of a span by its name.
pub(crate) fn span_attribute((name, value): (&str, SpanValue)) -> KeyValue {
    let value = match value {
        SpanValue::Text(text) => Value::StringValue(text),
        SpanValue::Number(number) => Value::IntValue(number),
    };
    key_value(name, value)
}

fn key_value(name: &str, value: Value) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// The one who measured.
pub(crate) fn instrumentation_scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "posthaste".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}
