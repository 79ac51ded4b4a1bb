//! Attributes as OTLP has them.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use posthaste_core::trace::SpanValue;

/// An attribute with a text as its value.
pub(crate) fn text_attribute(name: &str, text: &str) -> KeyValue {
    key_value(name, Value::StringValue(text.to_owned()))
}

/// An attribute with a value of a span.
pub(crate) fn span_attribute(name: &str, value: SpanValue) -> KeyValue {
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

/// The instrumentation scope of posthaste, as the origin of spans and metrics.
pub(crate) fn instrumentation_scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "posthaste".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}
