//! Which events a subscription receives, as users write it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::model::filter::FilterOperator;

/// The events that a subscription receives: those that pass every member.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FilterSettings {
    /// The event types. All when left out or empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included_event_types: Vec<String>,
    /// The beginning of the subject.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject_begins_with: String,
    /// The end of the subject.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject_ends_with: String,
    /// Whether case matters in `subjectBeginsWith` and `subjectEndsWith`.
    #[serde(default)]
    pub is_subject_case_sensitive: bool,
    /// Event Grid's advanced filters, at most 25; an event must pass all of them. They hold at
    /// most 25 values together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advanced_filters: Vec<AdvancedFilterSettings>,
    /// Whether advanced filters look into arrays: one element that fits is then enough. False when
    /// left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enable_advanced_filtering_on_arrays: bool,
}

/// An advanced filter. Some operators take `value`, some `values`, some neither.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AdvancedFilterSettings {
    /// The comparison.
    pub operator_type: FilterOperator,
    /// The member of the event that is compared, such as `subject`, an extension attribute of a
    /// CloudEvent, or a member of the data, such as `data.order.amount`.
    #[schema(example = "data.order.amount")]
    pub key: String,
    /// The number or boolean that the member is compared with. For `BoolEquals` and
    /// `Number…Than…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 100)]
    pub value: Option<Value>,
    /// The values that the member is compared with: numbers, strings of at most 512 characters, or
    /// ranges `[from, to]` of numbers. One that fits is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Value>>,
}
