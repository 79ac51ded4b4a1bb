//! The event schemas a topic accepts and a subscription receives.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A form of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
pub enum Schema {
    /// CloudEvents 1.0 in its JSON format.
    #[default]
    CloudEvents,
    /// Azure Event Grid's own schema.
    EventGrid,
}

/// How one CloudEvent lies in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentMode {
    /// The whole event is the body.
    #[default]
    Structured,
    /// Attributes are `ce-*` headers, the body is the data alone.
    Binary,
}
