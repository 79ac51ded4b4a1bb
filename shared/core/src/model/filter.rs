//! Filters of subscriptions as data: keys, tests, and the filters of a topic together.

mod fold;
mod key;
mod names;
mod number;
mod operator;
mod rule;
mod set;
mod test;
mod value;

pub(crate) use self::key::KeyAttribute;
pub use self::key::{FilterKey, FilterKeyError};
pub use self::number::{DecimalNumber, NumberMagnitude};
pub use self::operator::FilterOperator;
pub use self::rule::{Filter, FilterCondition};
pub use self::set::FilterSet;
pub(crate) use self::set::{FilterQuestion, PreparedFilter};
pub use self::test::{FilterTest, FoldedText, NumberTest, TextFinder, TextTest};
pub(crate) use self::value::FilterValue;
