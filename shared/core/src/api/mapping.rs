//! The input mapping as users write it: the members of Event Grid's `JsonInputSchemaMapping`.
//! <https://learn.microsoft.com/rest/api/eventgrid/controlplane/topics/create-or-update#jsoninputschemamapping>

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The places of the attributes in custom events. An attribute that is left out is made when an
/// event is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InputMappingSettings {
    /// The event's id. A new UUID when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<JsonFieldSettings>,
    /// The event's topic, the `source` of a CloudEvent. `/topics/{topic}` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<JsonFieldSettings>,
    /// The event's time, an RFC 3339 date-time. The time of acceptance when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time: Option<JsonFieldSettings>,
    /// The event's type. `dev.posthaste.custom` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_type: Option<JsonFieldWithDefaultSettings>,
    /// The event's subject. Empty when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<JsonFieldWithDefaultSettings>,
    /// The version of the event's data. Empty when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<JsonFieldWithDefaultSettings>,
}

/// A member of the event. An event without it is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct JsonFieldSettings {
    /// The member's name, or with dots the way to it through nested objects: at most 256 bytes and
    /// 10 levels.
    #[schema(example = "order.id")]
    pub source_field: String,
}

/// A member of the event, a constant, or both: then the constant stands for events without the
/// member. At least one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct JsonFieldWithDefaultSettings {
    /// The member's name, or with dots the way to it through nested objects: at most 256 bytes and
    /// 10 levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_field: Option<String>,
    /// The constant, at most 1024 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
}
