//! Filters that decide which events of a topic a subscription receives: by type, by subject, and by
//! Event Grid's advanced filters.

mod fold;
mod key;
mod names;
mod number;
mod operator;
mod rule;
mod set;
mod test;
#[cfg(test)]
mod tests;
mod value;

pub use self::key::{FilterKey, FilterKeyError};
pub use self::number::{DecimalNumber, NumberMagnitude};
pub use self::operator::FilterOperator;
pub use self::rule::{Filter, FilterCondition};
pub use self::set::{FilterMatches, FilterSet};
pub use self::test::{FilterTest, FoldedText, NumberTest, TextFinder, TextTest};
