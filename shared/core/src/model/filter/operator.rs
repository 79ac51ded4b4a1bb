//! The operators of advanced filters, by Event Grid's names.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The comparison of an advanced filter. Strings are compared without regard to case (Unicode's
/// simple case folding), numbers without loss. A key that is missing, or whose value has another
/// type, passes the negations (`…Not…`) and no other operator.
/// <https://learn.microsoft.com/azure/event-grid/event-filtering#operators>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum FilterOperator {
    /// The number is one of `values`.
    NumberIn,
    /// The number is none of `values`.
    NumberNotIn,
    /// The number is less than `value`.
    NumberLessThan,
    /// The number is greater than `value`.
    NumberGreaterThan,
    /// The number is less than or equal to `value`.
    NumberLessThanOrEquals,
    /// The number is greater than or equal to `value`.
    NumberGreaterThanOrEquals,
    /// The number is in one of `values`, each of which is a range `[from, to]`, borders included.
    NumberInRange,
    /// The number is in none of the ranges.
    NumberNotInRange,
    /// The boolean is `value`.
    BoolEquals,
    /// The string contains one of `values`.
    StringContains,
    /// The string contains none of them.
    StringNotContains,
    /// The string begins with one of `values`.
    StringBeginsWith,
    /// The string begins with none of them.
    StringNotBeginsWith,
    /// The string ends with one of `values`.
    StringEndsWith,
    /// The string ends with none of them.
    StringNotEndsWith,
    /// The string is one of `values`.
    StringIn,
    /// The string is none of them.
    StringNotIn,
    /// The key is missing, or null.
    IsNullOrUndefined,
    /// The key is there, and not null.
    IsNotNull,
}
